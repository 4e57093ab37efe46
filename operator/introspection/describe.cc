// SPDX-License-Identifier: Apache-2.0
#include "operator/introspection/describe.h"

#include <absl/strings/str_cat.h>
#include <absl/time/time.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "host/base/status.h"
#include "operator/scaling/fallback.h"
#include "operator/scaling/metric_name.h"

namespace outrigger::controller::introspection {
namespace {

namespace pb = ::outrigger::introspection::v1;

constexpr char kHpaController[] = "the HPA controller";

void SetTime(absl::Time time, google::protobuf::Timestamp& out) {
  out.set_seconds(absl::ToUnixSeconds(time));
  out.set_nanos(
      static_cast<int32_t>(absl::ToInt64Nanoseconds(time - absl::FromUnixSeconds(out.seconds()))));
}

pb::Plugin DescribePlugin(const host::PluginStatus& status) {
  pb::Plugin plugin;
  plugin.set_name(status.name);
  plugin.set_address(status.address);
  plugin.set_state(host::PluginStateName(status.state));
  plugin.set_reason(status.reason);
  SetTime(status.since, *plugin.mutable_since());
  plugin.set_version(status.version);
  for (const std::string& type : status.trigger_types) plugin.add_trigger_types(type);
  for (const std::string& type : status.ignored_types) plugin.add_ignored_types(type);
  plugin.set_waiting_calls(status.waiting_calls);
  return plugin;
}

void FillRecord(const host::HealthRecord& record, pb::TriggerState& state) {
  if (record.value) {
    state.set_value(*record.value);
    SetTime(record.measured_at, *state.mutable_measured_at());
    state.set_active(record.active);
  }
  state.set_failed_cycles(static_cast<uint32_t>(record.failed_cycles));
  if (!record.status.ok()) state.set_error(host::Describe(record.status));
}

void FillFallback(const api::ScaledObjectSpec& spec, const host::HealthRecord* record,
                  pb::TriggerState& state) {
  if (!scaling::FallbackConfigured(spec)) return;
  state.set_fallback_threshold(scaling::FallbackThreshold(*spec.fallback));
  if (record != nullptr && !record->status.ok() && scaling::FallsBack(spec, record->failed_cycles))
    state.set_fallback_replicas(spec.fallback->replicas);
}

void FillSpec(const polling::TrackedTrigger& trigger, const std::string& metric,
              pb::TriggerState& state) {
  for (const scaling::MetricSpec& spec : trigger.specs) {
    if (spec.name != metric) continue;
    state.set_target(spec.target);
    state.set_metric_type(std::string(api::MetricTargetTypeName(spec.type)));
  }
}

// One entry for each metric of a trigger; a trigger that never gave a spec has one without a name.
void DescribeTrigger(const ObjectSources& sources, const polling::TrackedObject& object,
                     const polling::TrackedTrigger& trigger, pb::Object& out) {
  const polling::ResolvedTrigger& resolved = trigger.resolved;
  if (resolved.resource) {
    pb::TriggerState& state = *out.add_triggers();
    state.set_index(resolved.index);
    state.set_type(resolved.type);
    state.set_metric(resolved.type);
    state.set_plugin(kHpaController);
    return;
  }
  for (const host::HealthKey& key : object.HealthKeysOf(trigger)) {
    pb::TriggerState& state = *out.add_triggers();
    state.set_index(resolved.index);
    state.set_type(resolved.type);
    if (!key.metric.empty())
      state.set_metric(
          scaling::ExternalMetricName(static_cast<int32_t>(resolved.index), key.metric));
    state.set_plugin(sources.scalers.PluginFor(resolved.type).value_or(""));
    FillSpec(trigger, key.metric, state);
    if (const host::HealthRecord* record = sources.health.Find(key)) FillRecord(*record, state);
    FillFallback(object.object->spec, sources.health.Find(key), state);
    // What keeps it from being asked at all says more than its last answer.
    if (!resolved.error.ok()) state.set_error(host::Describe(resolved.error));
    if (!trigger.refused.ok()) state.set_error(host::Describe(trigger.refused));
  }
}

void FillObject(const api::ScaledObject& scaled, pb::Object& object) {
  object.set_kind("ScaledObject");
  object.set_namespace_(scaled.meta.namespace_name);
  object.set_name(scaled.meta.name);
  object.set_uid(scaled.meta.uid);
  const api::ScaleTargetRef& target = scaled.spec.scale_target_ref;
  object.set_target(
      absl::StrCat(target.kind.empty() ? "Deployment" : target.kind, " ", target.name));
  object.set_min_replicas(scaled.spec.MinReplicas());
  object.set_max_replicas(scaled.spec.MaxReplicas());
  object.set_ready(api::StatusOf(scaled.status.conditions, api::kReady));
  const api::Condition* ready = api::FindCondition(scaled.status.conditions, api::kReady);
  if (ready != nullptr && !ready->reason.empty()) {
    object.set_ready_message(absl::StrCat(ready->reason, ": ", ready->message));
  }
}

pb::Object DescribeObject(const ObjectSources& sources, const polling::TrackedObject& tracked) {
  pb::Object object;
  FillObject(*tracked.object, object);
  for (const polling::TrackedTrigger& trigger : tracked.triggers)
    DescribeTrigger(sources, tracked, trigger, object);
  if (!tracked.decided_at) return object;
  pb::Decision& decision = *object.mutable_decision();
  SetTime(*tracked.decided_at, *decision.mutable_at());
  if (tracked.decided_replicas >= 0) decision.set_current_replicas(tracked.decided_replicas);
  if (tracked.last_decision.scale_to) decision.set_set_replicas(*tracked.last_decision.scale_to);
  decision.set_explanation(tracked.last_decision.explanation);
  decision.set_outcome(tracked.last_decision.outcome);
  return object;
}

bool Matches(const std::string& wanted, const std::string& got) {
  return wanted.empty() || wanted == got;
}

}  // namespace

pb::ListPluginsResponse DescribePlugins(const host::ScalerService& scalers) {
  std::vector<host::PluginStatus> plugins = scalers.Plugins();
  std::sort(plugins.begin(), plugins.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  pb::ListPluginsResponse response;
  for (const host::PluginStatus& plugin : plugins) *response.add_plugins() = DescribePlugin(plugin);
  return response;
}

pb::ListObjectsResponse DescribeObjects(const ObjectSources& sources,
                                        const std::string& namespace_name,
                                        const std::string& name) {
  std::vector<api::NamespacedName> keys = sources.registry.Keys();
  std::sort(keys.begin(), keys.end());
  pb::ListObjectsResponse response;
  for (const api::NamespacedName& key : keys) {
    if (!Matches(namespace_name, key.namespace_name) || !Matches(name, key.name)) continue;
    if (const polling::TrackedObject* tracked = sources.registry.Find(key))
      *response.add_objects() = DescribeObject(sources, *tracked);
  }
  return response;
}

}  // namespace outrigger::controller::introspection
