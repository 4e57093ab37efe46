// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "host/base/clock.h"
#include "operator/api/hpa.h"
#include "operator/local/hpa_algorithm.h"

namespace outrigger::controller::local {

// The target of an HPA, as its scale subresource and status tell it.
struct ScaleState {
  int32_t spec_replicas = 0;
  int32_t status_replicas = 0;
  int32_t ready_replicas = 0;  // the target's status.readyReplicas stands for its ready pods
  std::string selector;
};

// One entry of spec.metrics with what was read for it.
struct MetricReading {
  api::HpaMetric spec;
  // The values of an External metric in thousandths; the error is what the condition will say.
  absl::StatusOr<std::vector<int64_t>> values_milli;
};

// What one sync of an HPA decides.
struct HpaDecision {
  api::Conditions conditions;
  boost::json::value current_metrics;  // array, or null: none was computed
  std::optional<int32_t> rescale_to;   // write this to /scale
  std::string rescale_reason;          // "external metric s0-redis-orders above target"
  absl::Status error;                  // of the metrics; a rescale may go with it
  bool keeps_desired = false;  // status.desiredReplicas stays as it is: nothing could be computed
};

// True when a sync needs the metrics: neither 0 replicas nor outside of min and max.
bool NeedsMetrics(const api::HpaSpec& spec, const ScaleState& scale);

// The decision part of reconcileAutoscaler: which metrics count (one that fails never scales down),
// the wish, its limits, and the conditions. Pure but for `history`. `conditions` are the HPA's
// present ones. Source: k8s.io/kubernetes v1.36 pkg/controller/podautoscaler/horizontal.go.
HpaDecision DecideHpa(const api::HpaSpec& spec, const HpaLimits& limits, HpaTolerances tolerances,
                      const ScaleState& scale, const std::vector<MetricReading>& readings,
                      api::Conditions conditions, absl::Time wall_now, host::SteadyTime now,
                      HpaHistory& history);

// "&LabelSelector{…}", as Go prints the selector of an External metric.
std::string SelectorText(const api::HpaMetric& metric);

}  // namespace outrigger::controller::local
