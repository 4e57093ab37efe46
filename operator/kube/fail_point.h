// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <functional>

namespace outrigger::controller::kube {

// For tests of restarts: with OUTRIGGER_FAILPOINT="after-write:<n>" in the environment, returns
// what HttpApi::Options::after_write takes: a function that kills this process (SIGKILL) when it is
// called for the n-th time, that is right after the API server has accepted the n-th write that is
// neither of a Lease nor a review. Without the variable: an empty function. INVALID_ARGUMENT: the
// variable says something else. Called by main(); the function is thread-safe.
absl::StatusOr<std::function<void()>> FailPointFromEnvironment();

}  // namespace outrigger::controller::kube
