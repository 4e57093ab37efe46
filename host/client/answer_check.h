// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <optional>
#include <string>
#include <vector>

#include "host/client/scaler_service.h"
#include "outrigger/scaler/v1/scaler.pb.h"

namespace outrigger::host {

// What a plugin says is checked before anybody believes it: a plugin that lies costs its own
// triggers only, and an outage is never read as "no work". All errors are INTERNAL (the plugin
// broke the contract) and say what was wanted and what came; the caller adds the plugin's name.
// Pure.

inline constexpr int kMaxValuesPerTrigger = 1000;
inline constexpr absl::Duration kMaxRetryAfter = absl::Seconds(30);

// Values finite, at most 1,000, of the metric asked for, and at least one unless a selector may
// have left none. Negative values pass: what they mean is the caller's business.
absl::StatusOr<MetricsAnswer> CheckAnswer(scaler::v1::GetMetricsResponse response,
                                          const MetricQuery& query);

// At least one; names not empty and different; targets finite and > 0.
absl::StatusOr<std::vector<scaler::v1::MetricSpec>> CheckSpecs(
    scaler::v1::GetMetricSpecForScalingResponse response);

// Speaks revision 1; trigger types and their parameters have names, each once.
absl::Status CheckDescription(const scaler::v1::DescribeResponse& response);

// An entry's error with its own code; `retry_after` travels with it (see RetryAfter()).
absl::Status EntryStatus(const scaler::v1::EntryError& error);

// The delay of a google.rpc.RetryInfo in the details of a unary call's error (a serialised
// google.rpc.Status), cut to 30 s; nullopt: there is none, or the details are no such message.
std::optional<absl::Duration> RetryInfoDelay(const std::string& error_details);

}  // namespace outrigger::host
