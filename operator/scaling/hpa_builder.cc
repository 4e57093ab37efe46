// SPDX-License-Identifier: Apache-2.0
#include "operator/scaling/hpa_builder.h"

#include <absl/strings/ascii.h>
#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "host/base/status.h"
#include "operator/api/scale_target.h"
#include "operator/scaling/metric_name.h"

namespace outrigger::controller::scaling {
namespace {

constexpr char kManagedBy[] = "keda-operator";  // what users' selectors and dashboards look for
constexpr size_t kLongestLabelValue = 63;

// An HPA may have a longer name than a label value may be.
std::string AsLabelValue(absl::string_view name) {
  if (name.size() <= kLongestLabelValue) return std::string(name);
  name = name.substr(0, kLongestLabelValue);
  while (!name.empty() && !absl::ascii_isalnum(static_cast<unsigned char>(name.back())))
    name.remove_suffix(1);
  return std::string(name);
}

// As KEDA reads it: not trimmed, so "a, b" excludes "a" and " b".
std::set<std::string> ExcludedLabels(const api::ObjectMeta& meta) {
  const auto annotation = meta.annotations.find(api::kHpaExcludedLabelsAnnotation);
  if (annotation == meta.annotations.end()) return {};
  return absl::StrSplit(annotation->second, ',');
}

std::map<std::string, std::string> LabelsOf(const api::ScaledObject& object) {
  std::map<std::string, std::string> labels = {
      {"app.kubernetes.io/name", AsLabelValue(object.HpaName())},
      {"app.kubernetes.io/part-of", object.meta.name},
      {"app.kubernetes.io/managed-by", kManagedBy},
  };
  std::map<std::string, std::string> own = object.meta.labels;
  own[api::kScaledObjectNameLabel] =
      object.meta.name;  // the reconciler puts it on the ScaledObject too
  const std::set<std::string> excluded = ExcludedLabels(object.meta);
  for (const auto& [key, value] : own) {
    if (!excluded.contains(key)) labels[key] = value;
  }
  return labels;
}

api::OwnerReference OwnerOf(const api::ScaledObject& object) {
  return {.api_version = api::kKedaApiVersion,
          .kind = api::kScaledObjectKind,
          .name = object.meta.name,
          .uid = object.meta.uid,
          .controller = true,
          .block_owner_deletion = true};
}

std::string TriggerPath(const api::ScaledObject& object, size_t index) {
  return absl::StrCat("spec.triggers[", index, "] (", object.spec.triggers[index].type, ")");
}

// The HPA controller reads targets as int64 thousandths; 0 and what is beyond cannot be meant.
absl::StatusOr<api::Quantity> TargetQuantity(double target) {
  const double largest = static_cast<double>(std::numeric_limits<int64_t>::max()) / 1000;
  if (!std::isfinite(target) || target <= 0 || target >= largest) {
    return absl::InvalidArgumentError(
        absl::StrCat("target: want a number > 0 and < 9.2e15, got ", target));
  }
  api::Quantity quantity = api::Quantity::FromDouble(target);
  if (quantity.IsZero()) {
    return absl::InvalidArgumentError(absl::StrCat("target: want at least 0.001, got ", target));
  }
  return quantity;
}

absl::Status CheckMetricName(absl::string_view name) {
  // What the API server allows: the name becomes a path segment of the metrics API.
  if (!name.empty() && name.find_first_of("/%") == absl::string_view::npos) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "metric name: want text without '/' and '%', got \"", absl::CHexEscape(name), "\""));
}

absl::StatusOr<api::HpaMetric> ExternalMetric(const api::ScaledObject& object,
                                              int32_t trigger_index, const MetricSpec& spec) {
  RETURN_IF_ERROR(CheckMetricName(spec.name));
  if (spec.type == api::MetricTargetType::kUtilization) {
    return absl::InvalidArgumentError("metric type: want AverageValue or Value, got Utilization");
  }
  ASSIGN_OR_RETURN(api::Quantity target, TargetQuantity(spec.target));
  api::HpaMetric metric;
  metric.type = api::kExternalMetric;
  metric.name = ExternalMetricName(trigger_index, spec.name);
  metric.match_labels[api::kScaledObjectNameLabel] = object.meta.name;
  metric.target.type = spec.type;
  if (spec.type == api::MetricTargetType::kValue) {
    metric.target.value = std::move(target);
  } else {
    metric.target.average_value = std::move(target);
  }
  return metric;
}

const TriggerSpecs* FindSpecs(const std::vector<TriggerSpecs>& external, size_t trigger_index) {
  for (const TriggerSpecs& specs : external) {
    if (specs.trigger_index == static_cast<int32_t>(trigger_index) && !specs.specs.empty())
      return &specs;
  }
  return nullptr;
}

// Metrics by source type, each in trigger order; KEDA's HPAs list them in the order of the types'
// names.
class MetricList {
 public:
  absl::Status Add(api::HpaMetric metric) {
    if (metric.type == api::kExternalMetric) {
      // The metrics API finds a metric without regard to case.
      if (!names_.insert(absl::AsciiStrToLower(metric.name)).second) {
        return absl::InvalidArgumentError(
            absl::StrCat("metric name: want one that no other metric has, got ", metric.name));
      }
    }
    by_type_[metric.type].push_back(std::move(metric));
    return absl::OkStatus();
  }

  std::vector<api::HpaMetric> Take() && {
    std::vector<api::HpaMetric> all;
    for (auto& [type, metrics] : by_type_)
      std::move(metrics.begin(), metrics.end(), std::back_inserter(all));
    return all;
  }

 private:
  std::map<std::string, std::vector<api::HpaMetric>> by_type_;
  std::set<std::string> names_;
};

absl::Status AddTriggerMetrics(const api::ScaledObject& object, size_t index,
                               const std::vector<TriggerSpecs>& external, MetricList& list) {
  const api::Trigger& trigger = object.spec.triggers[index];
  if (api::IsResourceTrigger(trigger)) {
    api::ResourceTrigger parsed = api::ParseResourceTrigger(trigger, static_cast<int32_t>(index));
    RETURN_IF_ERROR(api::ViolationsToStatus(parsed.violations));
    return list.Add(std::move(parsed.metric));
  }
  const TriggerSpecs* specs = FindSpecs(external, index);
  if (specs == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(
        TriggerPath(object, index),
        ": want its metric specs before the HPA is built, got none from its scaler yet"));
  }
  for (const MetricSpec& spec : specs->specs) {
    absl::StatusOr<api::HpaMetric> metric = ExternalMetric(object, specs->trigger_index, spec);
    const absl::Status added = metric.ok() ? list.Add(*std::move(metric)) : metric.status();
    RETURN_IF_ERROR(host::Annotate(added, TriggerPath(object, index)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<api::HorizontalPodAutoscaler> BuildHpa(const api::ScaledObject& object,
                                                      const std::vector<TriggerSpecs>& external,
                                                      const api::GroupVersionKindResource& target) {
  MetricList metrics;
  for (size_t i = 0; i < object.spec.triggers.size(); ++i) {
    RETURN_IF_ERROR(AddTriggerMetrics(object, i, external, metrics));
  }
  api::HorizontalPodAutoscaler hpa;
  hpa.meta.name = object.HpaName();
  hpa.meta.namespace_name = object.meta.namespace_name;
  hpa.meta.labels = LabelsOf(object);
  hpa.meta.annotations = object.meta.annotations;
  hpa.meta.owner_references = {OwnerOf(object)};
  hpa.spec.scale_target_ref = {.api_version = api::ApiVersionOf(target),
                               .kind = target.kind,
                               .name = object.spec.scale_target_ref.name};
  hpa.spec.min_replicas = object.spec.HpaMinReplicas();
  hpa.spec.max_replicas = object.spec.MaxReplicas();
  hpa.spec.behavior = object.spec.advanced.hpa_behavior;
  hpa.spec.metrics = std::move(metrics).Take();
  if (hpa.spec.metrics.empty()) {
    // The API server would fill in "cpu 80 %".
    return absl::FailedPreconditionError(
        "spec.triggers: want at least one metric for the HPA, got none");
  }
  return hpa;
}

absl::StatusOr<api::MetricTargetType> ExternalMetricType(const api::Trigger& trigger,
                                                         int32_t trigger_index) {
  if (trigger.metric_type.empty() || trigger.metric_type == "AverageValue")
    return api::MetricTargetType::kAverageValue;
  if (trigger.metric_type == "Value") return api::MetricTargetType::kValue;
  return absl::InvalidArgumentError(absl::StrCat(
      "spec.triggers[", trigger_index, "].metricType: want AverageValue or ", "Value for a ",
      trigger.type, " trigger, got \"", absl::CHexEscape(trigger.metric_type), "\""));
}

TriggerSpecs SpecsFromHpa(const api::HorizontalPodAutoscaler& hpa, int32_t trigger_index) {
  TriggerSpecs found{.trigger_index = trigger_index};
  for (const api::HpaMetric& metric : hpa.spec.metrics) {
    if (metric.type != api::kExternalMetric) continue;
    const std::optional<IndexedMetricName> name = ParseExternalMetricName(metric.name);
    if (!name.has_value() || name->trigger_index != trigger_index) continue;
    const std::optional<api::Quantity>& target = metric.target.type == api::MetricTargetType::kValue
                                                     ? metric.target.value
                                                     : metric.target.average_value;
    if (!target.has_value()) continue;
    found.specs.push_back(
        {.name = name->name, .target = target->AsDouble(), .type = metric.target.type});
  }
  return found;
}

std::vector<std::string> ExternalMetricNames(const std::vector<TriggerSpecs>& external) {
  std::map<int32_t, std::vector<std::string>> by_trigger;
  for (const TriggerSpecs& specs : external) {
    for (const MetricSpec& spec : specs.specs) {
      by_trigger[specs.trigger_index].push_back(ExternalMetricName(specs.trigger_index, spec.name));
    }
  }
  std::vector<std::string> names;
  for (auto& [index, of_trigger] : by_trigger)
    std::move(of_trigger.begin(), of_trigger.end(), std::back_inserter(names));
  return names;
}

std::vector<std::string> ResourceMetricNames(const api::HorizontalPodAutoscaler& hpa) {
  std::vector<std::string> names;
  for (const api::HpaMetric& metric : hpa.spec.metrics) {
    if (metric.type == api::kResourceMetric) names.push_back(metric.name);
  }
  return names;
}

}  // namespace outrigger::controller::scaling
