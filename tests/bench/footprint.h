// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace outrigger::bench {

// What a process has used so far, as /proc tells it. NOT_FOUND when it has ended.
struct Usage {
  double cpu_seconds = 0;  // user and system, of all its threads
  double rss_kb = 0;
};
absl::StatusOr<Usage> UsageOf(pid_t pid);

// What an image with these executables would have to hold besides libc: the executables, stripped,
// and every shared library that one of them loads, once.
struct Closure {
  int64_t executable_bytes = 0;
  int64_t library_bytes = 0;
  int libraries = 0;
};
absl::StatusOr<Closure> ClosureOf(const std::vector<std::string>& executables);

}  // namespace outrigger::bench
