// SPDX-License-Identifier: Apache-2.0
#include <absl/strings/str_cat.h>

#include <utility>

#include "host/base/status.h"
#include "operator/api/object_reader.h"
#include "operator/api/scaled_object.h"

namespace outrigger::controller::api {
namespace {

namespace json = boost::json;

constexpr char kRunning[] = "Running";
constexpr char kQuotaExceeded[] = "QuotaExceeded";

void PutText(json::object& object, const char* key, const std::string& text) {
  if (!text.empty()) object[key] = text;
}

json::array ToArray(const std::vector<std::string>& texts) {
  return json::array(texts.begin(), texts.end());
}

json::object HealthToJson(const std::map<std::string, MetricHealth>& health) {
  json::object object;
  for (const auto& [metric, entry] : health) {
    object[metric] =
        json::object{{"numberOfFailures", entry.number_of_failures}, {"status", entry.status}};
  }
  return object;
}

json::object ActivityToJson(const std::map<std::string, bool>& activity) {
  json::object object;
  for (const auto& [metric, active] : activity) object[metric] = json::object{{"isActive", active}};
  return object;
}

json::object GvkrToJson(const GroupVersionKindResource& gvkr) {
  return {{"group", gvkr.group},
          {"version", gvkr.version},
          {"kind", gvkr.kind},
          {"resource", gvkr.resource}};
}

absl::Status ReadGvkr(ObjectReader& status, std::optional<GroupVersionKindResource>& out) {
  const json::value* value = status.FindObject("scaleTargetGVKR");
  if (value == nullptr) return status.status();
  GroupVersionKindResource gvkr;
  ObjectReader reader(status.PathOf("scaleTargetGVKR"), *value);
  reader.Read("group", gvkr.group);
  reader.Read("version", gvkr.version);
  reader.Read("kind", gvkr.kind);
  reader.Read("resource", gvkr.resource);
  out = std::move(gvkr);
  return reader.status();
}

absl::Status ReadHealth(ObjectReader& status, std::map<std::string, MetricHealth>& out) {
  const json::value* value = status.FindObject("health");
  if (value == nullptr) return status.status();
  for (const json::key_value_pair& entry : value->get_object()) {
    const std::string metric(entry.key().data(), entry.key().size());
    ObjectReader reader(absl::StrCat(status.PathOf("health"), "[", metric, "]"), entry.value());
    MetricHealth& health = out[metric];
    reader.Read("numberOfFailures", health.number_of_failures);
    reader.Read("status", health.status);
    RETURN_IF_ERROR(reader.status());
  }
  return absl::OkStatus();
}

absl::Status ReadActivity(ObjectReader& status, std::map<std::string, bool>& out) {
  const json::value* value = status.FindObject("triggersActivity");
  if (value == nullptr) return status.status();
  for (const json::key_value_pair& entry : value->get_object()) {
    const std::string metric(entry.key().data(), entry.key().size());
    ObjectReader reader(absl::StrCat(status.PathOf("triggersActivity"), "[", metric, "]"),
                        entry.value());
    reader.Read("isActive", out[metric]);
    RETURN_IF_ERROR(reader.status());
  }
  return absl::OkStatus();
}

absl::Status ReadConditions(ObjectReader& status, Conditions& out) {
  const json::value* value = status.Find("conditions");
  if (value == nullptr) return status.status();
  ASSIGN_OR_RETURN(out, ParseConditions(status.PathOf("conditions"), *value));
  return absl::OkStatus();
}

Phase PhaseOf(absl::string_view name) {
  if (name == kRunning) return Phase::kRunning;
  if (name == kQuotaExceeded) return Phase::kQuotaExceeded;
  return Phase::kNone;
}

}  // namespace

absl::string_view PhaseName(Phase phase) {
  switch (phase) {
    case Phase::kNone:
      return "";
    case Phase::kRunning:
      return kRunning;
    case Phase::kQuotaExceeded:
      return kQuotaExceeded;
  }
  return "";
}

json::object StatusToJson(const ScaledObjectStatus& status) {
  json::object object;
  if (status.observed_generation != 0) object["observedGeneration"] = status.observed_generation;
  PutText(object, "phase", std::string(PhaseName(status.phase)));
  PutText(object, "scaleTargetKind", status.scale_target_kind);
  if (status.scale_target_gvkr.has_value())
    object["scaleTargetGVKR"] = GvkrToJson(*status.scale_target_gvkr);
  if (status.original_replica_count.has_value())
    object["originalReplicaCount"] = *status.original_replica_count;
  if (status.last_active_time.has_value())
    object["lastActiveTime"] = FormatTimestamp(*status.last_active_time);
  if (!status.external_metric_names.empty())
    object["externalMetricNames"] = ToArray(status.external_metric_names);
  if (!status.resource_metric_names.empty())
    object["resourceMetricNames"] = ToArray(status.resource_metric_names);
  PutText(object, "compositeScalerName", status.composite_scaler_name);
  if (!status.conditions.empty()) object["conditions"] = ConditionsToJson(status.conditions);
  if (!status.health.empty()) object["health"] = HealthToJson(status.health);
  if (!status.triggers_activity.empty())
    object["triggersActivity"] = ActivityToJson(status.triggers_activity);
  if (status.paused_replica_count.has_value())
    object["pausedReplicaCount"] = *status.paused_replica_count;
  PutText(object, "hpaName", status.hpa_name);
  PutText(object, "triggersTypes", status.triggers_types);
  PutText(object, "authenticationsTypes", status.authentications_types);
  return object;
}

absl::StatusOr<ScaledObjectStatus> ParseScaledObjectStatus(const json::value& value) {
  ScaledObjectStatus status;
  if (value.is_null()) return status;
  ObjectReader reader("status", value);
  std::string phase;
  reader.Read("observedGeneration", status.observed_generation);
  reader.Read("phase", phase);
  reader.Read("scaleTargetKind", status.scale_target_kind);
  reader.Merge(ReadGvkr(reader, status.scale_target_gvkr));
  reader.Read("originalReplicaCount", status.original_replica_count);
  reader.Read("lastActiveTime", status.last_active_time);
  reader.Read("externalMetricNames", status.external_metric_names);
  reader.Read("resourceMetricNames", status.resource_metric_names);
  reader.Read("compositeScalerName", status.composite_scaler_name);
  reader.Merge(ReadConditions(reader, status.conditions));
  reader.Merge(ReadHealth(reader, status.health));
  reader.Merge(ReadActivity(reader, status.triggers_activity));
  reader.Read("pausedReplicaCount", status.paused_replica_count);
  reader.Read("hpaName", status.hpa_name);
  reader.Read("triggersTypes", status.triggers_types);
  reader.Read("authenticationsTypes", status.authentications_types);
  RETURN_IF_ERROR(reader.status());
  status.phase = PhaseOf(phase);
  return status;
}

}  // namespace outrigger::controller::api
