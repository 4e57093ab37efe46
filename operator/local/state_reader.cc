// SPDX-License-Identifier: Apache-2.0
#include "operator/local/state_reader.h"

#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <absl/strings/strip.h>

#include <algorithm>
#include <utility>

#include "operator/scaling/metric_name.h"

namespace outrigger::controller::local {
namespace {

// "ScaledObjectCheckFailed: message", or nothing while nobody has judged it yet.
std::string NotReady(const api::ScaledObject& object) {
  const api::Condition* ready = api::FindCondition(object.status.conditions, api::kReady);
  if (ready == nullptr || ready->status == api::kTrue || ready->reason.empty()) return "";
  return absl::StrCat(ready->reason, ": ", ready->message);
}

PluginView ViewOf(const host::PluginStatus& plugin, const PluginProcesses& processes) {
  return {.name = plugin.name,
          .state = host::PluginStateName(plugin.state),
          .reason = plugin.reason,
          .since = plugin.since,
          .restarts = processes.RestartsOf(plugin.name)};
}

}  // namespace

void StateReader::OnHpaEvent(const HpaEvent& event) {
  if (event.reason != "SuccessfulRescale") return;
  absl::string_view rest = event.message;  // "New size: 5; reason: …"
  Rescale rescale{.message = WithoutSelector(event.message)};
  if (!absl::ConsumePrefix(&rest, "New size: ") ||
      !absl::SimpleAtoi(rest.substr(0, rest.find(';')), &rescale.replicas)) {
    return;
  }
  rescales_[event.hpa] = std::move(rescale);
}

LocalState StateReader::Read() {
  LocalState state{.now = p_.clock.WallNow()};
  for (const host::PluginStatus& plugin : p_.scalers.Plugins()) {
    state.plugins.push_back(ViewOf(plugin, p_.plugins));
  }
  if (p_.core.term() != nullptr) {
    for (const api::NamespacedName& key : p_.core.ScaledObjectKeys()) {
      const auto object = p_.core.view().ScaledObject(key);
      if (object != nullptr) state.objects.push_back(ReadObject(*object));
    }
  }
  for (ObjectView& object : state.objects) object.since = SinceWhen(object, state.now);
  const auto by_name = [](const auto& a, const auto& b) { return a.name < b.name; };
  std::sort(state.plugins.begin(), state.plugins.end(), by_name);
  std::sort(state.objects.begin(), state.objects.end(), by_name);
  return state;
}

absl::Time StateReader::SinceWhen(const ObjectView& object, absl::Time now) {
  const std::string said = absl::StrCat(object.replicas, WithoutNumbers(object.outcome),
                                        object.hpa_message, object.not_ready);
  Said& last = said_[object.name];
  if (last.text != said) last = {.text = said, .since = now};
  return last.since;
}

ObjectView StateReader::ReadObject(const api::ScaledObject& object) const {
  const api::NamespacedName target{object.meta.namespace_name, object.spec.scale_target_ref.name};
  ObjectView view{.name = object.Key().ToString(),
                  .target = target.name,
                  .active = api::StatusOf(object.status.conditions, api::kActive),
                  .not_ready = NotReady(object)};
  const auto workload = p_.core.view().Workload("Deployment", target);
  if (workload != nullptr) view.replicas = workload->replicas;
  view.running = p_.deployments.CountsOf(target).ready;
  const auto rescale = rescales_.find({object.meta.namespace_name, object.HpaName()});
  if (rescale != rescales_.end()) {
    view.hpa_message = rescale->second.message;
    view.hpa_replicas = rescale->second.replicas;
  }
  const polling::TrackedObject* tracked = p_.core.term()->registry().Find(object.Key());
  if (tracked != nullptr) ReadDecision(*tracked, view);
  return view;
}

void StateReader::ReadDecision(const polling::TrackedObject& tracked, ObjectView& view) const {
  for (const polling::TrackedTrigger& trigger : tracked.triggers) {
    if (trigger.specs.empty()) view.triggers.push_back(ReadTrigger(tracked, trigger, nullptr));
    for (const scaling::MetricSpec& spec : trigger.specs) {
      view.triggers.push_back(ReadTrigger(tracked, trigger, &spec));
    }
  }
  view.explanation = tracked.last_decision.explanation;
  view.outcome = tracked.last_decision.outcome;
  view.scaled_because = tracked.scaled_because;
}

TriggerView StateReader::ReadTrigger(const polling::TrackedObject& tracked,
                                     const polling::TrackedTrigger& trigger,
                                     const scaling::MetricSpec* spec) const {
  TriggerView view{.metric = trigger.resolved.type};
  if (trigger.resolved.resource) return view;
  view.failed = !trigger.resolved.error.ok() || !trigger.refused.ok();
  if (spec == nullptr) return view;
  view.metric =
      scaling::ExternalMetricName(static_cast<int32_t>(trigger.resolved.index), spec->name);
  view.target = spec->target;
  const host::HealthRecord* record =
      p_.core.health().Find(tracked.HealthKeyOf(trigger, spec->name));
  if (record == nullptr) return view;
  view.value = record->value;
  view.active = record->active;
  view.failed = view.failed || !record->status.ok();
  return view;
}

}  // namespace outrigger::controller::local
