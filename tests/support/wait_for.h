// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>
#include <absl/time/time.h>

#include <functional>
#include <string>

namespace outrigger::tests {

// Waits until `condition` holds: asks at once and then every 20 ms of real time. For what real
// processes do; whatever runs on a Clock is woken by FakeClock instead.
//
// DEADLINE_EXCEEDED after `timeout`, with `what` was waited for and what `describe` last saw:
//   ASSERT_TRUE(WaitFor([&] { return replicas() == 5; }, absl::Seconds(30), "5 replicas",
//                       [&] { return absl::StrCat(replicas()); }).ok());
absl::Status WaitFor(const std::function<bool()>& condition, absl::Duration timeout,
                     absl::string_view what, const std::function<std::string()>& describe);

// The same for a step that says itself why it is not there yet: waits until it returns OK.
absl::Status WaitForOk(const std::function<absl::Status()>& step, absl::Duration timeout,
                       absl::string_view what);

}  // namespace outrigger::tests
