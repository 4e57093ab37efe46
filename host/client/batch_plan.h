// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/time/time.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "host/client/scaler_service.h"
#include "outrigger/scaler/v1/scaler.pb.h"

namespace outrigger::host {

// Cuts many questions into BatchGetMetrics calls that a plugin can take: at most `max_entries` and
// `max_bytes` each, with each set of credentials once per call. Pure.

struct BatchLimits {
  size_t max_entries = 200;
  size_t max_bytes = 1 << 20;
};

// What the plugin announced, never above the contract's own limits; 0 means those.
BatchLimits LimitsOf(const scaler::v1::Limits& announced);

struct PlannedCall {
  scaler::v1::BatchGetMetricsRequest request;
  std::vector<size_t> items;  // the item of each entry
};

struct BatchPlan {
  std::vector<PlannedCall> calls;
  // Items that fit into no call at all, with the reason.
  std::vector<std::pair<size_t, absl::Status>> refused;
};

// `timeouts[i]`: what the plugin is told for items[i].
BatchPlan PlanBatch(const std::vector<BatchItem>& items,
                    const std::vector<absl::Duration>& timeouts, const BatchLimits& limits);

// The request of one item alone.
scaler::v1::GetMetricsRequest MakeRequest(const BatchItem& item);

}  // namespace outrigger::host
