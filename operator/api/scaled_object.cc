// SPDX-License-Identifier: Apache-2.0
#include "operator/api/scaled_object.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <utility>

#include "host/base/status.h"
#include "operator/api/object_reader.h"

namespace outrigger::controller::api {
namespace {

namespace json = boost::json;

absl::Status ReadScaleTargetRef(ObjectReader& spec, ScaleTargetRef& out) {
  const json::value* value = spec.FindObject("scaleTargetRef");
  if (value == nullptr) return spec.status();
  ObjectReader reader(spec.PathOf("scaleTargetRef"), *value);
  reader.Read("name", out.name);
  reader.Read("apiVersion", out.api_version);
  reader.Read("kind", out.kind);
  reader.Read("envSourceContainerName", out.env_source_container_name);
  return reader.status();
}

absl::Status ReadAuthenticationRef(ObjectReader& trigger, std::optional<AuthenticationRef>& out) {
  const json::value* value = trigger.FindObject("authenticationRef");
  if (value == nullptr) return trigger.status();
  AuthenticationRef ref;
  ObjectReader reader(trigger.PathOf("authenticationRef"), *value);
  reader.Read("name", ref.name);
  reader.Read("kind", ref.kind);
  out = std::move(ref);
  return reader.status();
}

absl::StatusOr<Trigger> ParseTrigger(std::string path, const json::value& value) {
  Trigger trigger;
  ObjectReader reader(std::move(path), value);
  reader.Read("type", trigger.type);
  reader.Read("name", trigger.name);
  reader.Read("metadata", trigger.metadata);
  reader.Read("useCachedMetrics", trigger.use_cached_metrics);
  reader.Read("metricType", trigger.metric_type);
  reader.Merge(ReadAuthenticationRef(reader, trigger.authentication_ref));
  RETURN_IF_ERROR(reader.status());
  return trigger;
}

absl::Status ReadTriggers(ObjectReader& spec, std::vector<Trigger>& out) {
  const json::array* items = spec.FindArray("triggers");
  if (items == nullptr) return spec.status();
  for (size_t i = 0; i < items->size(); ++i) {
    ASSIGN_OR_RETURN(Trigger trigger,
                     ParseTrigger(spec.PathOf(absl::StrCat("triggers[", i, "]")), (*items)[i]));
    out.push_back(std::move(trigger));
  }
  return absl::OkStatus();
}

absl::Status ReadFallback(ObjectReader& spec, std::optional<Fallback>& out) {
  const json::value* value = spec.FindObject("fallback");
  if (value == nullptr) return spec.status();
  Fallback fallback;
  ObjectReader reader(spec.PathOf("fallback"), *value);
  reader.Read("failureThreshold", fallback.failure_threshold);
  reader.Read("replicas", fallback.replicas);
  reader.Read("behavior", fallback.behavior);
  out = std::move(fallback);
  return reader.status();
}

absl::Status ReadHpaConfig(ObjectReader& advanced, Advanced& out) {
  const json::value* value = advanced.FindObject("horizontalPodAutoscalerConfig");
  if (value == nullptr) return advanced.status();
  ObjectReader reader(advanced.PathOf("horizontalPodAutoscalerConfig"), *value);
  reader.Read("name", out.hpa_name);
  if (const json::value* behavior = reader.FindObject("behavior"); behavior != nullptr)
    out.hpa_behavior = *behavior;
  return reader.status();
}

absl::Status ReadScalingModifiers(ObjectReader& advanced, std::optional<ScalingModifiers>& out) {
  const json::value* value = advanced.FindObject("scalingModifiers");
  if (value == nullptr) return advanced.status();
  ScalingModifiers modifiers;
  ObjectReader reader(advanced.PathOf("scalingModifiers"), *value);
  reader.Read("formula", modifiers.formula);
  reader.Read("target", modifiers.target);
  reader.Read("activationTarget", modifiers.activation_target);
  reader.Read("metricType", modifiers.metric_type);
  out = std::move(modifiers);
  return reader.status();
}

absl::Status ReadAdvanced(ObjectReader& spec, Advanced& out) {
  const json::value* value = spec.FindObject("advanced");
  if (value == nullptr) return spec.status();
  ObjectReader reader(spec.PathOf("advanced"), *value);
  reader.Read("restoreToOriginalReplicaCount", out.restore_to_original_replica_count);
  reader.Merge(ReadHpaConfig(reader, out));
  reader.Merge(ReadScalingModifiers(reader, out.scaling_modifiers));
  return reader.status();
}

absl::StatusOr<ScaledObjectSpec> ParseSpec(const json::value& value) {
  ScaledObjectSpec spec;
  ObjectReader reader("spec", value);
  reader.Merge(ReadScaleTargetRef(reader, spec.scale_target_ref));
  reader.Read("pollingInterval", spec.polling_interval_seconds);
  reader.Read("initialCooldownPeriod", spec.initial_cooldown_period_seconds);
  reader.Read("cooldownPeriod", spec.cooldown_period_seconds);
  reader.Read("idleReplicaCount", spec.idle_replica_count);
  reader.Read("minReplicaCount", spec.min_replica_count);
  reader.Read("maxReplicaCount", spec.max_replica_count);
  reader.Merge(ReadTriggers(reader, spec.triggers));
  reader.Merge(ReadFallback(reader, spec.fallback));
  reader.Merge(ReadAdvanced(reader, spec.advanced));
  RETURN_IF_ERROR(reader.status());
  return spec;
}

bool HasScalingModifiers(const ScaledObjectSpec& spec) {
  if (!spec.advanced.scaling_modifiers.has_value()) return false;
  const ScalingModifiers& modifiers = *spec.advanced.scaling_modifiers;
  return !modifiers.formula.empty() || !modifiers.target.empty() ||
         !modifiers.activation_target.empty() || !modifiers.metric_type.empty();
}

// Comma joined, each once, in order of first appearance.
template <typename Get>
std::string JoinUnique(const std::vector<Trigger>& triggers, Get get) {
  std::vector<std::string> names;
  for (const Trigger& trigger : triggers) {
    const std::string name = get(trigger);
    if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
  }
  return absl::StrJoin(names, ",");
}

}  // namespace

absl::Duration ScaledObjectSpec::PollingInterval() const {
  return absl::Seconds(
      std::max(1, polling_interval_seconds.value_or(kDefaultPollingIntervalSeconds)));
}

absl::Duration ScaledObjectSpec::InitialCooldownPeriod() const {
  return absl::Seconds(initial_cooldown_period_seconds.value_or(0));
}

absl::Duration ScaledObjectSpec::CooldownPeriod() const {
  return absl::Seconds(cooldown_period_seconds.value_or(kDefaultCooldownPeriodSeconds));
}

bool SameButStatus(const ScaledObject& a, const ScaledObject& b) {
  return a.meta.uid == b.meta.uid && a.meta.generation == b.meta.generation &&
         a.meta.deletion_timestamp.has_value() == b.meta.deletion_timestamp.has_value() &&
         a.meta.labels == b.meta.labels && a.meta.annotations == b.meta.annotations &&
         a.meta.finalizers == b.meta.finalizers;
}

std::string ScaledObject::HpaName() const {
  return spec.advanced.hpa_name.empty() ? absl::StrCat("keda-hpa-", meta.name)
                                        : spec.advanced.hpa_name;
}

bool IsResourceTrigger(const Trigger& trigger) {
  return trigger.type == "cpu" || trigger.type == "memory";
}

std::string TriggersTypes(const ScaledObjectSpec& spec) {
  return JoinUnique(spec.triggers, [](const Trigger& trigger) { return trigger.type; });
}

std::string AuthenticationsTypes(const ScaledObjectSpec& spec) {
  return JoinUnique(spec.triggers, [](const Trigger& trigger) {
    return trigger.authentication_ref.has_value() ? trigger.authentication_ref->name
                                                  : std::string();
  });
}

absl::StatusOr<ScaledObject> ParseScaledObject(const json::value& object) {
  ScaledObject parsed;
  ASSIGN_OR_RETURN(parsed.meta, ParseObjectMeta(object));
  ObjectReader reader("", object);
  std::string kind;
  reader.Read("kind", kind);
  const json::value* spec = reader.FindObject("spec");
  RETURN_IF_ERROR(reader.status());
  if (!kind.empty() && kind != kScaledObjectKind) {
    return absl::InvalidArgumentError(
        absl::StrCat("kind: want ", kScaledObjectKind, ", got \"", kind, "\""));
  }
  if (spec == nullptr) return absl::InvalidArgumentError("spec: want an object, got nothing");
  ASSIGN_OR_RETURN(parsed.spec, ParseSpec(*spec));
  if (const json::value* status = reader.Find("status"); status != nullptr) {
    absl::StatusOr<ScaledObjectStatus> read = ParseScaledObjectStatus(*status);
    if (read.ok()) parsed.status = *std::move(read);
  }
  return parsed;
}

std::optional<std::string> UnsupportedField(const ScaledObject& object) {
  const ScaledObjectSpec& spec = object.spec;
  if (HasScalingModifiers(spec)) return "spec.advanced.scalingModifiers";
  if (spec.idle_replica_count.has_value()) return "spec.idleReplicaCount";
  if (spec.fallback.has_value() && !spec.fallback->behavior.empty() &&
      spec.fallback->behavior != "static") {
    return absl::StrCat("spec.fallback.behavior: ", spec.fallback->behavior);
  }
  if (spec.advanced.restore_to_original_replica_count)
    return "spec.advanced.restoreToOriginalReplicaCount";
  for (const char* annotation :
       {kPausedReplicasAnnotation, kPausedAnnotation, kPausedScaleInAnnotation,
        kPausedScaleOutAnnotation, kForceActivationAnnotation}) {
    const auto found = object.meta.annotations.find(annotation);
    if (found == object.meta.annotations.end()) continue;
    // Go's false texts switch the boolean ones off; a count has no off.
    const std::string& text = found->second;
    const bool off = text == "0" || text == "f" || text == "F" || text == "false" ||
                     text == "False" || text == "FALSE";
    if (off && annotation != kPausedReplicasAnnotation) continue;
    return absl::StrCat("metadata.annotations[", annotation, "]");
  }
  const auto transfer = object.meta.annotations.find(kTransferHpaOwnershipAnnotation);
  if (transfer != object.meta.annotations.end() && transfer->second == "true") {
    return absl::StrCat("metadata.annotations[", kTransferHpaOwnershipAnnotation, "]");
  }
  return std::nullopt;
}

}  // namespace outrigger::controller::api
