// SPDX-License-Identifier: Apache-2.0
#include "operator/scaling/hpa_diff.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "operator/scaling/hpa_behavior.h"

namespace outrigger::controller::scaling {
namespace {

using Difference = std::optional<std::string>;

template <typename T>
Difference Compare(absl::string_view field, const T& wanted, const T& found) {
  if (wanted == found) return std::nullopt;
  return absl::StrCat(field, ": want ", wanted, ", found ", found);
}

Difference CompareTarget(const api::CrossVersionObjectReference& wanted,
                         const api::CrossVersionObjectReference& found) {
  if (wanted == found) return std::nullopt;
  const auto text = [](const api::CrossVersionObjectReference& ref) {
    return absl::StrCat(ref.api_version, " ", ref.kind, " ", ref.name);
  };
  return absl::StrCat("spec.scaleTargetRef: want ", text(wanted), ", found ", text(found));
}

std::string Describe(const api::HpaMetric& metric) {
  std::string text = absl::StrCat(metric.type, " ", metric.name);
  if (!metric.container.empty()) absl::StrAppend(&text, " of container ", metric.container);
  absl::StrAppend(&text, " ", api::MetricTargetTypeName(metric.target.type));
  if (metric.target.average_value.has_value())
    absl::StrAppend(&text, " ", metric.target.average_value->ToString());
  if (metric.target.value.has_value()) absl::StrAppend(&text, " ", metric.target.value->ToString());
  if (metric.target.average_utilization.has_value())
    absl::StrAppend(&text, " ", *metric.target.average_utilization);
  return text;
}

// The order of metrics means nothing to the HPA, so another order is no difference.
Difference CompareMetrics(const std::vector<api::HpaMetric>& wanted,
                          std::vector<api::HpaMetric> found) {
  for (const api::HpaMetric& metric : wanted) {
    const auto same = std::find(found.begin(), found.end(), metric);
    if (same == found.end())
      return absl::StrCat("spec.metrics: want ", Describe(metric), ", not found as such");
    found.erase(same);
  }
  if (found.empty()) return std::nullopt;
  return absl::StrCat("spec.metrics: found ", Describe(found.front()), ", which is not wanted");
}

Difference CompareBehavior(const boost::json::value& wanted, const boost::json::value& found) {
  if (HpaBehavior::WithDefaults(wanted) == HpaBehavior::WithDefaults(found)) return std::nullopt;
  return "spec.behavior: the found one differs from the wanted one, defaults considered";
}

Difference CompareOurs(absl::string_view field, const std::map<std::string, std::string>& wanted,
                       const std::map<std::string, std::string>& found) {
  for (const auto& [key, value] : wanted) {
    const auto entry = found.find(key);
    if (entry == found.end())
      return absl::StrCat(field, "[", key, "]: want \"", value, "\", found nothing");
    if (entry->second != value) {
      return absl::StrCat(field, "[", key, "]: want \"", value, "\", found \"", entry->second,
                          "\"");
    }
  }
  return std::nullopt;
}

Difference CompareOwner(const api::HorizontalPodAutoscaler& desired,
                        const api::HorizontalPodAutoscaler& found) {
  const api::OwnerReference* wanted = api::ControllerOf(desired.meta);
  const api::OwnerReference* owner = api::ControllerOf(found.meta);
  if (wanted == nullptr || (owner != nullptr && *owner == *wanted)) return std::nullopt;
  const auto text = [](const api::OwnerReference& ref) {
    return absl::StrCat(ref.kind, " ", ref.name, " ", ref.uid);
  };
  return absl::StrCat("metadata.ownerReferences: want controller ", text(*wanted), ", found ",
                      owner == nullptr ? "none" : text(*owner));
}

}  // namespace

std::optional<std::string> HpaDifference(const api::HorizontalPodAutoscaler& desired,
                                         const api::HorizontalPodAutoscaler& found) {
  const api::HpaSpec& wanted = desired.spec;
  if (Difference d = CompareTarget(wanted.scale_target_ref, found.spec.scale_target_ref)) return d;
  if (Difference d = Compare("spec.minReplicas", wanted.min_replicas.value_or(1),
                             found.spec.min_replicas.value_or(1))) {
    return d;
  }
  if (Difference d = Compare("spec.maxReplicas", wanted.max_replicas, found.spec.max_replicas))
    return d;
  if (Difference d = CompareMetrics(wanted.metrics, found.spec.metrics)) return d;
  if (Difference d = CompareBehavior(wanted.behavior, found.spec.behavior)) return d;
  if (Difference d = CompareOurs("metadata.labels", desired.meta.labels, found.meta.labels))
    return d;
  if (Difference d =
          CompareOurs("metadata.annotations", desired.meta.annotations, found.meta.annotations))
    return d;
  return CompareOwner(desired, found);
}

api::HorizontalPodAutoscaler MergeForUpdate(const api::HorizontalPodAutoscaler& desired,
                                            const api::HorizontalPodAutoscaler& found) {
  api::HorizontalPodAutoscaler update = desired;
  update.meta.uid = found.meta.uid;
  update.meta.resource_version = found.meta.resource_version;
  update.meta.finalizers = found.meta.finalizers;
  for (const api::OwnerReference& owner : found.meta.owner_references) {
    // There is one controller at most: ours.
    const bool is_ours =
        !update.meta.owner_references.empty() && owner.uid == update.meta.owner_references[0].uid;
    if (!owner.controller && !is_ours) update.meta.owner_references.push_back(owner);
  }
  return update;
}

}  // namespace outrigger::controller::scaling
