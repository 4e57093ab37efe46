// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "operator/api/hpa.h"
#include "operator/api/resource_trigger.h"
#include "operator/api/scaled_object.h"

namespace outrigger::controller::scaling {

// What a plugin said that one metric of a trigger should be.
struct MetricSpec {
  std::string name;   // without the s<index>- prefix
  double target = 0;  // > 0, finite
  api::MetricTargetType type = api::MetricTargetType::kAverageValue;  // AverageValue or Value

  friend bool operator==(const MetricSpec&, const MetricSpec&) = default;
};

struct TriggerSpecs {
  int32_t trigger_index = 0;  // in spec.triggers
  std::vector<MetricSpec> specs;

  friend bool operator==(const TriggerSpecs&, const TriggerSpecs&) = default;
};

// The HPA that a ScaledObject asks for. `external` holds the specs of each trigger other than cpu
// and memory: an HPA is built only when all of them are known, so a missing or empty one is
// FAILED_PRECONDITION naming the trigger. INVALID_ARGUMENT: a cpu or memory trigger that
// ParseResourceTrigger refuses, a spec with a target that is not a positive number, a type that an
// external metric cannot have, or two metrics of one name. Pure; the same input gives the same
// output, metric order included. Source: spec/scaledobject.md sections 10 and 11; no version label.
absl::StatusOr<api::HorizontalPodAutoscaler> BuildHpa(const api::ScaledObject& object,
                                                      const std::vector<TriggerSpecs>& external,
                                                      const api::GroupVersionKindResource& target);

// The metric type of a trigger as an external metric has it: "" is AverageValue. Violation:
// Utilization or unknown.
absl::StatusOr<api::MetricTargetType> ExternalMetricType(const api::Trigger& trigger,
                                                         int32_t trigger_index);

// What existing HPA entries say about a trigger's metrics: its last good spec after a restart of
// the operator. Empty when the HPA has none of this trigger.
TriggerSpecs SpecsFromHpa(const api::HorizontalPodAutoscaler& hpa, int32_t trigger_index);

// status.externalMetricNames, in trigger order, and status.resourceMetricNames (Resource form
// only).
std::vector<std::string> ExternalMetricNames(const std::vector<TriggerSpecs>& external);
std::vector<std::string> ResourceMetricNames(const api::HorizontalPodAutoscaler& hpa);

}  // namespace outrigger::controller::scaling
