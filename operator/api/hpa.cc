// SPDX-License-Identifier: Apache-2.0
#include "operator/api/hpa.h"

#include <absl/strings/str_cat.h>

#include <utility>

#include "host/base/status.h"
#include "operator/api/object_reader.h"

namespace outrigger::controller::api {
namespace {

namespace json = boost::json;

// The member of a metric that describes its source: "external", "resource", "containerResource".
const char* SourceMember(absl::string_view type) {
  if (type == kExternalMetric) return "external";
  if (type == kResourceMetric) return "resource";
  if (type == kContainerResourceMetric) return "containerResource";
  return nullptr;
}

// A quantity may be written as a string or, by hand, as a number.
void ReadQuantity(ObjectReader& reader, absl::string_view key, std::optional<Quantity>& out) {
  const json::value* value = reader.Find(key);
  if (value == nullptr) return;
  if (value->is_int64()) {
    out = Quantity::FromInt(value->get_int64());
    return;
  }
  std::string text;
  reader.Read(key, text);
  if (!reader.status().ok()) return;
  absl::StatusOr<Quantity> quantity = Quantity::Parse(text);
  if (quantity.ok()) {
    out = *std::move(quantity);
  } else {
    reader.Merge(host::Annotate(quantity.status(), reader.PathOf(key)));
  }
}

absl::Status ReadTarget(ObjectReader& source, HpaMetricTarget& out) {
  const json::value* value = source.FindObject("target");
  if (value == nullptr) return source.status();
  std::string type;
  ObjectReader reader(source.PathOf("target"), *value);
  reader.Read("type", type);
  ReadQuantity(reader, "averageValue", out.average_value);
  ReadQuantity(reader, "value", out.value);
  reader.Read("averageUtilization", out.average_utilization);
  RETURN_IF_ERROR(reader.status());
  for (MetricTargetType known : {MetricTargetType::kAverageValue, MetricTargetType::kValue,
                                 MetricTargetType::kUtilization}) {
    if (type == MetricTargetTypeName(known)) {
      out.type = known;
      return absl::OkStatus();
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      reader.PathOf("type"), ": want AverageValue, Value or Utilization, got \"", type, "\""));
}

absl::Status ReadExternalMetric(ObjectReader& source, HpaMetric& out) {
  const json::value* value = source.FindObject("metric");
  if (value == nullptr) return source.status();
  ObjectReader metric(source.PathOf("metric"), *value);
  metric.Read("name", out.name);
  if (const json::value* selector = metric.FindObject("selector"); selector != nullptr) {
    ObjectReader reader(metric.PathOf("selector"), *selector);
    reader.Read("matchLabels", out.match_labels);
    const json::array* expressions = reader.FindArray("matchExpressions");
    out.has_match_expressions = expressions != nullptr && !expressions->empty();
    metric.Merge(reader.status());
  }
  return metric.status();
}

absl::StatusOr<HpaMetric> ParseMetric(std::string path, const json::value& value) {
  HpaMetric metric;
  ObjectReader reader(std::move(path), value);
  reader.Read("type", metric.type);
  RETURN_IF_ERROR(reader.status());
  const char* member = SourceMember(metric.type);
  if (member == nullptr) return metric;  // Pods, Object: somebody else's, kept as "another metric"
  const json::value* source_value = reader.FindObject(member);
  RETURN_IF_ERROR(reader.status());
  if (source_value == nullptr) return metric;
  ObjectReader source(reader.PathOf(member), *source_value);
  if (metric.type == kExternalMetric) {
    source.Merge(ReadExternalMetric(source, metric));
  } else {
    source.Read("name", metric.name);
    source.Read("container", metric.container);
  }
  source.Merge(ReadTarget(source, metric.target));
  RETURN_IF_ERROR(source.status());
  return metric;
}

absl::Status ReadMetrics(ObjectReader& spec, std::vector<HpaMetric>& out) {
  const json::array* items = spec.FindArray("metrics");
  if (items == nullptr) return spec.status();
  for (size_t i = 0; i < items->size(); ++i) {
    ASSIGN_OR_RETURN(HpaMetric metric,
                     ParseMetric(spec.PathOf(absl::StrCat("metrics[", i, "]")), (*items)[i]));
    out.push_back(std::move(metric));
  }
  return absl::OkStatus();
}

absl::Status ReadScaleTargetRef(ObjectReader& spec, CrossVersionObjectReference& out) {
  const json::value* value = spec.FindObject("scaleTargetRef");
  if (value == nullptr) return spec.status();
  ObjectReader reader(spec.PathOf("scaleTargetRef"), *value);
  reader.Read("apiVersion", out.api_version);
  reader.Read("kind", out.kind);
  reader.Read("name", out.name);
  return reader.status();
}

absl::Status ReadSpec(const json::value& value, HpaSpec& out) {
  ObjectReader reader("spec", value);
  reader.Merge(ReadScaleTargetRef(reader, out.scale_target_ref));
  reader.Read("minReplicas", out.min_replicas);
  reader.Read("maxReplicas", out.max_replicas);
  reader.Merge(ReadMetrics(reader, out.metrics));
  if (const json::value* behavior = reader.FindObject("behavior"); behavior != nullptr)
    out.behavior = *behavior;
  return reader.status();
}

absl::Status ReadStatus(const json::value& value, HpaStatus& out) {
  ObjectReader reader("status", value);
  reader.Read("currentReplicas", out.current_replicas);
  reader.Read("desiredReplicas", out.desired_replicas);
  const json::value* conditions = reader.Find("conditions");
  RETURN_IF_ERROR(reader.status());
  if (conditions == nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(out.conditions, ParseConditions("status.conditions", *conditions));
  return absl::OkStatus();
}

json::object TargetToJson(const HpaMetricTarget& target) {
  json::object object{{"type", std::string(MetricTargetTypeName(target.type))}};
  if (target.average_value.has_value()) object["averageValue"] = target.average_value->ToString();
  if (target.value.has_value()) object["value"] = target.value->ToString();
  if (target.average_utilization.has_value())
    object["averageUtilization"] = *target.average_utilization;
  return object;
}

json::object MetricToJson(const HpaMetric& metric) {
  json::object source;
  if (metric.type == kExternalMetric) {
    json::object labels;
    for (const auto& [key, value] : metric.match_labels) labels[key] = value;
    source["metric"] =
        json::object{{"name", metric.name}, {"selector", json::object{{"matchLabels", labels}}}};
  } else {
    source["name"] = metric.name;
    if (metric.type == kContainerResourceMetric) source["container"] = metric.container;
  }
  source["target"] = TargetToJson(metric.target);
  json::object object{{"type", metric.type}};
  if (const char* member = SourceMember(metric.type); member != nullptr)
    object[member] = std::move(source);
  return object;
}

json::object SpecToJson(const HpaSpec& spec) {
  json::object object;
  object["scaleTargetRef"] = json::object{{"apiVersion", spec.scale_target_ref.api_version},
                                          {"kind", spec.scale_target_ref.kind},
                                          {"name", spec.scale_target_ref.name}};
  if (spec.min_replicas.has_value()) object["minReplicas"] = *spec.min_replicas;
  object["maxReplicas"] = spec.max_replicas;
  json::array metrics;
  for (const HpaMetric& metric : spec.metrics) metrics.push_back(MetricToJson(metric));
  object["metrics"] = std::move(metrics);
  if (!spec.behavior.is_null()) object["behavior"] = spec.behavior;
  return object;
}

}  // namespace

absl::string_view MetricTargetTypeName(MetricTargetType type) {
  switch (type) {
    case MetricTargetType::kAverageValue:
      return "AverageValue";
    case MetricTargetType::kValue:
      return "Value";
    case MetricTargetType::kUtilization:
      return "Utilization";
  }
  return "";
}

absl::StatusOr<HorizontalPodAutoscaler> ParseHpa(const json::value& object) {
  HorizontalPodAutoscaler hpa;
  ASSIGN_OR_RETURN(hpa.meta, ParseObjectMeta(object));
  ObjectReader reader("", object);
  const json::value* spec = reader.FindObject("spec");
  const json::value* status = reader.FindObject("status");
  RETURN_IF_ERROR(reader.status());
  if (spec != nullptr) RETURN_IF_ERROR(ReadSpec(*spec, hpa.spec));
  if (status != nullptr) RETURN_IF_ERROR(ReadStatus(*status, hpa.status));
  return hpa;
}

json::object HpaToJson(const HorizontalPodAutoscaler& hpa) {
  json::object metadata = ObjectMetaToJson(hpa.meta);
  metadata.erase("generation");
  metadata.erase("creationTimestamp");
  metadata.erase("deletionTimestamp");
  return {{"apiVersion", kHpaApiVersion},
          {"kind", kHpaKind},
          {"metadata", std::move(metadata)},
          {"spec", SpecToJson(hpa.spec)}};
}

}  // namespace outrigger::controller::api
