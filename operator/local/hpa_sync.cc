// SPDX-License-Identifier: Apache-2.0
#include "operator/local/hpa_sync.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

#include "host/base/status.h"

namespace outrigger::controller::local {
namespace {

namespace json = boost::json;

constexpr char kAbleToScale[] = "AbleToScale";
constexpr char kScalingLimited[] = "ScalingLimited";

// Sets conditions of an HPA, which carry no generation.
class ConditionSetter {
 public:
  ConditionSetter(api::Conditions& conditions, absl::Time now)
      : conditions_(conditions), now_(now) {}
  void Set(absl::string_view type, const HpaVerdict& verdict) {
    api::SetCondition(conditions_, type, verdict.value ? api::kTrue : api::kFalse, verdict.reason,
                      verdict.message, now_, 0);
  }

 private:
  api::Conditions& conditions_;
  const absl::Time now_;
};

struct MetricResult {
  int32_t replicas = 0;
  std::string name;
  json::object status;
};

absl::string_view FailureReason(absl::string_view type) {
  if (type == api::kExternalMetric) return "FailedGetExternalMetric";
  if (type == api::kResourceMetric) return "FailedGetResourceMetric";
  if (type == api::kContainerResourceMetric) return "FailedGetContainerResourceMetric";
  if (type == "Pods") return "FailedGetPodsMetric";
  if (type == "Object") return "FailedGetObjectMetric";
  return "InvalidMetricSourceType";
}

// How the error of a metric is introduced in the sync's own error.
std::string FailureContext(const api::HpaMetric& metric) {
  if (metric.type == api::kExternalMetric) {
    return absl::StrCat("failed to get ", metric.name, " external metric value");
  }
  if (metric.type == api::kResourceMetric) {
    return absl::StrCat("failed to get ", metric.name, " resource metric value");
  }
  return absl::StrCat("failed to get ", metric.type, " metric value");
}

json::object ExternalStatus(const api::HpaMetric& metric, const char* member, int64_t milli) {
  json::object identifier{{"name", metric.name}};
  if (!metric.match_labels.empty()) {
    json::object labels;
    for (const auto& [key, value] : metric.match_labels) labels[key] = value;
    identifier["selector"] = json::object{{"matchLabels", std::move(labels)}};
  }
  json::object external{
      {"metric", std::move(identifier)},
      {"current", json::object{{member, api::Quantity::FromMilli(milli).ToString()}}}};
  return {{"type", metric.type}, {"external", std::move(external)}};
}

absl::StatusOr<MetricResult> ComputeMetric(const MetricReading& reading, const ScaleState& scale,
                                           HpaTolerances tolerances) {
  RETURN_IF_ERROR(reading.values_milli.status());
  const api::HpaMetric& metric = reading.spec;
  const std::string name =
      absl::StrCat("external metric ", metric.name, "(", SelectorText(metric), ")");
  if (metric.target.average_value.has_value()) {
    const MetricWish wish =
        ExternalPerPodWish(scale.status_replicas, metric.target.average_value->AsMilli(),
                           *reading.values_milli, tolerances);
    return MetricResult{wish.replicas, name,
                        ExternalStatus(metric, "averageValue", wish.usage_milli)};
  }
  if (!metric.target.value.has_value()) {
    return absl::InvalidArgumentError(
        "invalid external metric source: neither a value target nor an average value target was "
        "set");
  }
  const MetricWish wish =
      ExternalValueWish(scale.spec_replicas, scale.ready_replicas, metric.target.value->AsMilli(),
                        *reading.values_milli, tolerances);
  const bool counts_pods = scale.spec_replicas != 0 && wish.replicas != scale.spec_replicas;
  if (counts_pods && scale.status_replicas == 0) {
    return absl::FailedPreconditionError(
        "unable to calculate ready pods: no pods returned by selector while calculating replica "
        "count");
  }
  return MetricResult{wish.replicas, name, ExternalStatus(metric, "value", wish.usage_milli)};
}

struct MetricsOutcome {
  std::optional<int32_t> replicas;  // absent: nothing can be done
  std::string name;
  absl::Status error;
  HpaVerdict scaling_active;
  json::array statuses;
};

// The largest wish. A metric that failed may not be what keeps the target up: with one, the target
// is never scaled down.
MetricsOutcome ComputeMetrics(const std::vector<MetricReading>& readings, const ScaleState& scale,
                              HpaTolerances tolerances) {
  MetricsOutcome outcome;
  size_t invalid = 0;
  absl::Status first_error;
  HpaVerdict first_verdict;
  int32_t replicas = 0;
  for (const MetricReading& reading : readings) {
    absl::StatusOr<MetricResult> result = ComputeMetric(reading, scale, tolerances);
    if (!result.ok()) {
      outcome.statuses.push_back(json::object{{"type", ""}});
      if (invalid++ > 0) continue;
      const absl::string_view message = result.status().message();
      first_verdict = {false, std::string(FailureReason(reading.spec.type)),
                       absl::StrCat("the HPA was unable to compute the replica count: ", message)};
      first_error = host::Annotate(result.status(), FailureContext(reading.spec));
      continue;
    }
    outcome.statuses.push_back(std::move(result->status));
    if (replicas == 0 || result->replicas > replicas) {
      replicas = result->replicas;
      outcome.name = std::move(result->name);
    }
  }
  if (invalid > 0) {
    outcome.error =
        absl::Status(first_error.code(),
                     absl::StrCat("invalid metrics (", invalid, " invalid out of ", readings.size(),
                                  "), first error is: ", first_error.message()));
  }
  if (invalid >= readings.size() || (invalid > 0 && replicas < scale.spec_replicas)) {
    outcome.scaling_active = std::move(first_verdict);
    return outcome;
  }
  outcome.scaling_active = {true, "ValidMetricFound",
                            absl::StrCat("the HPA was able to successfully calculate a replica "
                                         "count from ",
                                         outcome.name)};
  outcome.replicas = replicas;
  return outcome;
}

std::string ReasonOf(int32_t desired, int32_t current, const std::string& metric) {
  if (desired > current) return absl::StrCat(metric, " above target");
  return desired < current ? "All metrics below target" : "";
}

void DecideByMetrics(const HpaLimits& limits, HpaTolerances tolerances, const ScaleState& scale,
                     const std::vector<MetricReading>& readings, ConditionSetter& conditions,
                     host::SteadyTime now, HpaHistory& history, HpaDecision& decision) {
  if (scale.selector.empty()) {
    conditions.Set(api::kScalingActive,
                   {false, "InvalidSelector", "the HPA target's scale is missing a selector"});
    decision.keeps_desired = true;
    decision.error = absl::FailedPreconditionError("selector is required");
    return;
  }
  MetricsOutcome outcome = ComputeMetrics(readings, scale, tolerances);
  conditions.Set(api::kScalingActive, outcome.scaling_active);
  decision.current_metrics = std::move(outcome.statuses);
  decision.error = std::move(outcome.error);
  if (!outcome.replicas.has_value()) {
    decision.keeps_desired = true;
    return;
  }
  const int32_t current = scale.spec_replicas;
  const int32_t wish = std::max(*outcome.replicas, 0);
  decision.rescale_reason = ReasonOf(wish, current, outcome.name);
  const NormalizedReplicas normalized = NormalizeReplicas(limits, current, wish, now, history);
  conditions.Set(kAbleToScale, normalized.able_to_scale);
  conditions.Set(kScalingLimited, normalized.scaling_limited);
  if (normalized.replicas != current) decision.rescale_to = normalized.replicas;
}

}  // namespace

std::string SelectorText(const api::HpaMetric& metric) {
  if (metric.match_labels.empty()) return "nil";
  std::string labels;
  for (const auto& [key, value] : metric.match_labels)
    absl::StrAppend(&labels, key, ": ", value, ",");
  return absl::StrCat("&LabelSelector{MatchLabels:map[string]string{", labels,
                      "},MatchExpressions:[]LabelSelectorRequirement{},}");
}

bool NeedsMetrics(const api::HpaSpec& spec, const ScaleState& scale) {
  return scale.spec_replicas != 0 && scale.spec_replicas <= spec.max_replicas &&
         scale.spec_replicas >= spec.min_replicas.value_or(1);
}

HpaDecision DecideHpa(const api::HpaSpec& spec, const HpaLimits& limits, HpaTolerances tolerances,
                      const ScaleState& scale, const std::vector<MetricReading>& readings,
                      api::Conditions conditions, absl::Time wall_now, host::SteadyTime now,
                      HpaHistory& history) {
  HpaDecision decision;
  decision.conditions = std::move(conditions);
  ConditionSetter setter(decision.conditions, wall_now);
  setter.Set(kAbleToScale, {true, "SucceededGetScale",
                            "the HPA controller was able to get the target's current scale"});
  if (history.recommendations.empty()) {
    history.recommendations.push_back({scale.spec_replicas, now});
  }
  if (scale.spec_replicas == 0) {
    setter.Set(api::kScalingActive,
               {false, "ScalingDisabled",
                "scaling is disabled since the replica count of the target is zero"});
  } else if (scale.spec_replicas > spec.max_replicas) {
    decision.rescale_to = spec.max_replicas;
    decision.rescale_reason = "Current number of replicas above Spec.MaxReplicas";
  } else if (scale.spec_replicas < limits.min_replicas) {
    decision.rescale_to = limits.min_replicas;
    decision.rescale_reason = "Current number of replicas below Spec.MinReplicas";
  } else {
    DecideByMetrics(limits, tolerances, scale, readings, setter, now, history, decision);
  }
  return decision;
}

}  // namespace outrigger::controller::local
