// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/fail_point.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <memory>

namespace outrigger::controller::kube {

absl::StatusOr<std::function<void()>> FailPointFromEnvironment() {
  const char* const text = std::getenv("OUTRIGGER_FAILPOINT");
  if (text == nullptr || *text == '\0') return std::function<void()>();
  absl::string_view count = text;
  int writes = 0;
  if (!absl::ConsumePrefix(&count, "after-write:") || !absl::SimpleAtoi(count, &writes) ||
      writes < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("OUTRIGGER_FAILPOINT: want after-write:<n> with n > 0, got \"", text, "\""));
  }
  auto left = std::make_shared<std::atomic<int>>(writes);
  return std::function<void()>([left] {
    if (--*left == 0) kill(getpid(), SIGKILL);
  });
}

}  // namespace outrigger::controller::kube
