// SPDX-License-Identifier: Apache-2.0
#include "tests/support/wait_for.h"

#include <absl/strings/str_cat.h>

#include <chrono>
#include <thread>

namespace outrigger::tests {
namespace {

constexpr std::chrono::milliseconds kStep{20};

}  // namespace

absl::Status WaitForOk(const std::function<absl::Status()>& step, absl::Duration timeout,
                       absl::string_view what) {
  const auto end = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(timeout);
  while (true) {
    absl::Status last = step();
    if (last.ok()) return last;
    if (std::chrono::steady_clock::now() >= end) {
      return absl::DeadlineExceededError(absl::StrCat(
          "waited ", absl::FormatDuration(timeout), " for ", what, ", last saw: ", last.message()));
    }
    std::this_thread::sleep_for(kStep);
  }
}

absl::Status WaitFor(const std::function<bool()>& condition, absl::Duration timeout,
                     absl::string_view what, const std::function<std::string()>& describe) {
  return WaitForOk(
      [&] { return condition() ? absl::OkStatus() : absl::UnavailableError(describe()); }, timeout,
      what);
}

}  // namespace outrigger::tests
