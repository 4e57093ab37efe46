// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "operator/api/condition.h"
#include "operator/api/object_meta.h"
#include "operator/api/quantity.h"

namespace outrigger::controller::api {

inline constexpr char kHpaApiVersion[] = "autoscaling/v2";
inline constexpr char kHpaKind[] = "HorizontalPodAutoscaler";
inline constexpr char kScalingActive[] =
    "ScalingActive";  // condition of an HPA: it can read its metrics

inline constexpr char kExternalMetric[] = "External";
inline constexpr char kResourceMetric[] = "Resource";
inline constexpr char kContainerResourceMetric[] = "ContainerResource";

struct CrossVersionObjectReference {
  std::string api_version;
  std::string kind;
  std::string name;

  friend bool operator==(const CrossVersionObjectReference&,
                         const CrossVersionObjectReference&) = default;
};

enum class MetricTargetType { kAverageValue, kValue, kUtilization };
absl::string_view MetricTargetTypeName(
    MetricTargetType type);  // "AverageValue", "Value", "Utilization"

// What one metric should be. Exactly the member of its type is set; quantities are equal by value.
struct HpaMetricTarget {
  MetricTargetType type = MetricTargetType::kAverageValue;
  std::optional<Quantity> average_value;
  std::optional<Quantity> value;
  std::optional<int32_t> average_utilization;  // percent of the requests

  friend bool operator==(const HpaMetricTarget&, const HpaMetricTarget&) = default;
};

struct HpaMetric {
  std::string type;  // kExternalMetric, kResourceMetric, kContainerResourceMetric; others (Pods,
                     // Object) never by us
  std::string name;  // External: the metric's name; else "cpu" or "memory"
  std::string container;                            // ContainerResource only
  std::map<std::string, std::string> match_labels;  // External only
  bool has_match_expressions = false;               // External only; never by us
  HpaMetricTarget target;

  friend bool operator==(const HpaMetric&, const HpaMetric&) = default;
};

struct HpaSpec {
  CrossVersionObjectReference scale_target_ref;
  std::optional<int32_t> min_replicas;
  int32_t max_replicas = 0;
  std::vector<HpaMetric> metrics;
  boost::json::value behavior;  // object, copied through; null: absent
};

struct HpaStatus {
  int32_t current_replicas = 0;
  int32_t desired_replicas = 0;
  Conditions conditions;
};

// A HorizontalPodAutoscaler of autoscaling/v2, as far as the operator writes and reads it.
struct HorizontalPodAutoscaler {
  ObjectMeta meta;
  HpaSpec spec;
  HpaStatus status;

  NamespacedName Key() const { return meta.Key(); }
};

// INVALID_ARGUMENT with path, wanted and got, when a member that we read has the wrong type.
absl::StatusOr<HorizontalPodAutoscaler> ParseHpa(const boost::json::value& object);

// apiVersion, kind, metadata and spec: ready to be created, or to replace the one whose
// resourceVersion it carries.
boost::json::object HpaToJson(const HorizontalPodAutoscaler& hpa);

}  // namespace outrigger::controller::api
