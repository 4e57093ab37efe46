// SPDX-License-Identifier: Apache-2.0
#include "operator/scaling/hpa_agreement.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "operator/scaling/hpa_behavior.h"
#include "operator/scaling/metric_name.h"

namespace outrigger::controller::scaling {
namespace {

// What the controller waits before it scales in, where behavior does not say
// (--horizontal-pod-autoscaler-downscale- stabilization).
constexpr absl::Duration kDefaultScaleDownWindow = absl::Minutes(5);
constexpr int kSyncsOfPatience = 2;

int32_t CeilToReplicas(double count) {
  constexpr double kMost = std::numeric_limits<int32_t>::max();
  if (!(count > 0)) return 0;
  return static_cast<int32_t>(std::min(std::ceil(count), kMost));
}

bool IsWithin(double usage_ratio, const HpaTolerance& tolerance) {
  return usage_ratio >= 1 - tolerance.down && usage_ratio <= 1 + tolerance.up;
}

HpaTolerance ToleranceOf(const HpaBehavior& behavior) {
  HpaTolerance tolerance;
  if (behavior.scale_up.tolerance.has_value())
    tolerance.up = behavior.scale_up.tolerance->AsDouble();
  if (behavior.scale_down.tolerance.has_value())
    tolerance.down = behavior.scale_down.tolerance->AsDouble();
  return tolerance;
}

const ExternalReading* FindReading(const std::vector<ExternalReading>& readings,
                                   absl::string_view metric_name) {
  for (const ExternalReading& reading : readings) {
    if (SameMetricName(reading.metric_name, metric_name)) return &reading;
  }
  return nullptr;
}

struct Wish {
  int32_t replicas = 0;     // clamped
  std::string metric_name;  // whose wish it is
};

std::optional<Wish> LargestWish(const api::HorizontalPodAutoscaler& hpa,
                                const std::vector<ExternalReading>& readings) {
  const HpaTolerance tolerance = ToleranceOf(HpaBehavior::WithDefaults(hpa.spec.behavior));
  std::optional<Wish> largest;
  for (const api::HpaMetric& metric : hpa.spec.metrics) {
    if (metric.type != api::kExternalMetric) continue;
    const ExternalReading* reading = FindReading(readings, metric.name);
    if (reading == nullptr) return std::nullopt;
    const std::optional<int32_t> wanted =
        WantedByMetric(metric.target, reading->value, hpa.status.current_replicas, tolerance);
    if (!wanted.has_value()) return std::nullopt;
    if (!largest.has_value() || *wanted > largest->replicas) largest = Wish{*wanted, metric.name};
  }
  if (largest.has_value()) {
    const int32_t min = hpa.spec.min_replicas.value_or(1);
    largest->replicas = std::max(min, std::min(largest->replicas, hpa.spec.max_replicas));
  }
  return largest;
}

bool HasOtherMetrics(const api::HorizontalPodAutoscaler& hpa) {
  return std::any_of(
      hpa.spec.metrics.begin(), hpa.spec.metrics.end(),
      [](const api::HpaMetric& metric) { return metric.type != api::kExternalMetric; });
}

bool IsScaling(const api::HorizontalPodAutoscaler& hpa) {
  return api::StatusOf(hpa.status.conditions, api::kScalingActive) == api::kTrue;
}

std::string Disagreement(const api::HorizontalPodAutoscaler& hpa, const Wish& wish) {
  return absl::StrCat("HPA ", hpa.meta.name, " wants ", hpa.status.desired_replicas,
                      " replicas, but ", wish.metric_name, " asks for ", wish.replicas, " (min ",
                      hpa.spec.min_replicas.value_or(1), ", max ", hpa.spec.max_replicas, ")");
}

}  // namespace

std::optional<int32_t> WantedByMetric(const api::HpaMetricTarget& target, double value,
                                      int32_t current_replicas, const HpaTolerance& tolerance) {
  const bool per_pod = target.type == api::MetricTargetType::kAverageValue;
  const std::optional<api::Quantity>& quantity = per_pod ? target.average_value : target.value;
  if (!quantity.has_value() || quantity->IsZero() || quantity->IsNegative()) return std::nullopt;
  const double pods = std::max(current_replicas, 0);
  const double ratio = value / quantity->AsDouble();  // AverageValue: in pods; Value: of the target
  if (pods == 0) return CeilToReplicas(ratio);
  if (IsWithin(per_pod ? ratio / pods : ratio, tolerance)) return current_replicas;
  return CeilToReplicas(per_pod ? ratio : ratio * pods);
}

std::optional<int32_t> WantedReplicas(const api::HorizontalPodAutoscaler& hpa,
                                      const std::vector<ExternalReading>& readings) {
  const std::optional<Wish> wish = LargestWish(hpa, readings);
  if (!wish.has_value()) return std::nullopt;
  return wish->replicas;
}

HpaAgreement::Verdict HpaAgreement::Report(State state,
                                           std::optional<host::SteadyTime> recheck_at) {
  const bool changed = state != state_;
  state_ = state;
  return {.state = state_, .changed = changed, .message = message_, .recheck_at = recheck_at};
}

HpaAgreement::Verdict HpaAgreement::Observe(const api::HorizontalPodAutoscaler& hpa,
                                            const std::vector<ExternalReading>& readings,
                                            host::SteadyTime now) {
  const int32_t desired = hpa.status.desired_replicas;
  const int32_t desired_before = std::exchange(desired_replicas_, desired);
  const std::optional<Wish> wish = LargestWish(hpa, readings);
  if (!IsScaling(hpa) || !wish.has_value()) {
    side_ = Side::kNone;
    if (IsScaling(hpa)) return Report(state_, std::nullopt);
    message_.clear();
    return Report(State::kUnknown, std::nullopt);
  }

  const HpaBehavior behavior = HpaBehavior::WithDefaults(hpa.spec.behavior);
  Side side = desired < wish->replicas   ? Side::kBelow
              : desired > wish->replicas ? Side::kAbove
                                         : Side::kNone;
  if (side == Side::kBelow && behavior.scale_up.Disabled()) side = Side::kNone;
  if (side == Side::kAbove && (behavior.scale_down.Disabled() || HasOtherMetrics(hpa)))
    side = Side::kNone;
  const Side side_before = std::exchange(side_, side);
  if (side == Side::kNone) {
    message_.clear();
    return Report(State::kInSync, std::nullopt);
  }

  const bool approaches =
      side == Side::kBelow ? desired > desired_before : desired < desired_before;
  if (side != side_before || approaches) since_ = now;
  const HpaBehavior::Rules& rules = side == Side::kBelow ? behavior.scale_up : behavior.scale_down;
  const absl::Duration window = rules.stabilization_window_seconds.has_value()
                                    ? absl::Seconds(*rules.stabilization_window_seconds)
                                    : kDefaultScaleDownWindow;
  const absl::Duration patience =
      window + std::max(rules.LongestPeriod(), kSyncsOfPatience * options_.hpa_sync_period);
  if (now - since_ < patience) {
    return Report(state_ == State::kUnknown ? State::kInSync : state_, since_ + patience);
  }
  if (state_ != State::kDisagrees) message_ = Disagreement(hpa, *wish);
  return Report(State::kDisagrees, std::nullopt);
}

}  // namespace outrigger::controller::scaling
