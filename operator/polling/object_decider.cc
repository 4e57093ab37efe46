// SPDX-License-Identifier: Apache-2.0
#include "operator/polling/object_decider.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

#include "host/base/status.h"
#include "operator/api/scale_target.h"
#include "operator/scaling/fallback.h"
#include "operator/scaling/metric_name.h"

namespace outrigger::controller::polling {
namespace {

using api::NamespacedName;
using scaling::ScaleEvent;

NamespacedName TargetKey(const api::ScaledObject& object) {
  return {object.meta.namespace_name, object.spec.scale_target_ref.name};
}

// HPAActive as spec/scaledobject.md section 6 has it; nothing when the HPA has not said anything
// yet.
std::optional<scaling::ConditionChange> HpaActiveOf(const api::HorizontalPodAutoscaler& hpa) {
  const api::Condition* scaling_active =
      api::FindCondition(hpa.status.conditions, api::kScalingActive);
  if (scaling_active == nullptr) return std::nullopt;
  if (scaling_active->status == api::kTrue) {
    return scaling::ConditionChange{api::kTrue, api::reason::kHpaActive, "The HPA is scaling"};
  }
  if (scaling_active->reason == api::reason::kScalingDisabled) {
    return scaling::ConditionChange{api::kTrue, api::reason::kScalingDisabled,
                                    scaling_active->message};
  }
  return scaling::ConditionChange{
      api::kFalse,
      scaling_active->reason.empty() ? api::reason::kHpaMetricsUnavailable : scaling_active->reason,
      absl::StrCat("The HPA is not scaling: ", scaling_active->message)};
}

}  // namespace

int32_t PublishedFailures(const api::ScaledObjectSpec& spec, int32_t failed_cycles) {
  int32_t published =
      failed_cycles >= scaling::kUnhealthyFailures ? scaling::kUnhealthyFailures : 0;
  if (scaling::FallbackConfigured(spec)) {
    const int32_t threshold = scaling::FallbackThreshold(*spec.fallback);
    if (failed_cycles >= threshold) published = std::max(published, threshold);
  }
  return published;
}

std::vector<scaling::TriggerFacts> ObjectDecider::FactsOf(const TrackedObject& object) const {
  std::vector<scaling::TriggerFacts> facts;
  for (const TrackedTrigger& trigger : object.triggers) {
    if (trigger.resolved.resource) continue;
    for (const host::HealthKey& key : object.HealthKeysOf(trigger)) {
      scaling::TriggerFacts fact;
      fact.trigger_index = static_cast<int32_t>(trigger.resolved.index);
      fact.type = trigger.resolved.type;
      if (!key.metric.empty())
        fact.metric_name = scaling::ExternalMetricName(fact.trigger_index, key.metric);
      for (const scaling::MetricSpec& spec : trigger.specs) {
        if (spec.name == key.metric) fact.target = spec.target;
      }
      const host::HealthRecord* record = health_.Find(key);
      if (record == nullptr) {
        fact.status = trigger.resolved.error.ok() ? absl::UnavailableError("was not asked yet")
                                                  : trigger.resolved.error;
      } else {
        fact.status = record->status;
        fact.active = record->active;
        fact.value = record->value;
        fact.failed_cycles = record->failed_cycles;
      }
      if (!trigger.refused.ok()) fact.status = trigger.refused;
      fact.misconfigured = absl::IsInvalidArgument(fact.status);
      facts.push_back(std::move(fact));
    }
  }
  return facts;
}

api::ScaledObject ObjectDecider::Snapshot(const TrackedObject& object) const {
  api::ScaledObject snapshot = *object.object;
  if (const api::ScaledObjectStatus* wanted = status_.Wanted(snapshot.Key()))
    snapshot.status = *wanted;
  return snapshot;
}

scaling::DecisionInputs ObjectDecider::InputsOf(const TrackedObject& object,
                                                int32_t replicas) const {
  scaling::DecisionInputs inputs;
  inputs.current_replicas = replicas;
  inputs.hpa_exists =
      view_.Hpa({object.object->meta.namespace_name, object.object->HpaName()}) != nullptr;
  inputs.triggers = FactsOf(object);
  inputs.has_resource_triggers =
      std::any_of(object.triggers.begin(), object.triggers.end(),
                  [](const TrackedTrigger& trigger) { return trigger.resolved.resource; });
  inputs.last_active = object.last_active;
  inputs.now = clock_.WallNow();
  return inputs;
}

runtime::EventTarget ObjectDecider::EventTargetOf(const TrackedObject& object) const {
  return {.key = object.object->Key(), .uid = object.uid()};
}

host::Task<void> ObjectDecider::Decide(NamespacedName key) {
  TrackedObject* object = registry_.Find(key);
  if (object == nullptr) co_return;
  object->decide_again = true;
  if (object->deciding) co_return;  // the one that runs looks again
  const std::string uid = object->uid();
  object->deciding = true;
  while (true) {
    object = registry_.Find(key);
    if (object == nullptr || object->uid() != uid) co_return;
    if (!object->decide_again) break;
    object->decide_again = false;
    co_await DecideOnce(key, uid);
  }
  object->deciding = false;
}

host::Task<void> ObjectDecider::DecideOnce(NamespacedName key, std::string uid) {
  const host::SteadyTime start = clock_.SteadyNow();
  TrackedObject* object = registry_.Find(key);
  const int64_t generation = object->object->meta.generation;
  const host::Deadline deadline = host::Deadline::After(clock_, options_.act_timeout);
  const absl::StatusOr<int32_t> replicas =
      co_await scaler_.CurrentReplicas(object->target, TargetKey(*object->object), deadline);
  object = registry_.Find(key);
  if (object == nullptr || object->uid() != uid || !may_act_()) co_return;
  if (object->object->meta.generation != generation) {  // of another target, perhaps
    object->decide_again = true;
    co_return;
  }
  scaling::Decision decision;
  absl::Status acted;
  if (replicas.ok()) {
    scaling::DecisionInputs inputs = InputsOf(*object, *replicas);
    decision = scaling::Decide(Snapshot(*object), inputs);
    metrics_.Step(runtime::LoopStep::kDecide, clock_.SteadyNow() - start);
    if (decision.scale_to) acted = co_await Act(key, uid, decision, std::move(inputs));
  } else {
    const bool again = object->decided_at.has_value() && object->decided_replicas < 0;
    decision = scaling::DecideWithoutReplicas(replicas.status(), again);
  }
  object = registry_.Find(key);
  if (object == nullptr || object->uid() != uid) co_return;
  if (decision.scale_to && acted.ok()) object->scaled_because = decision.explanation;
  if (decision.update_last_active && acted.ok()) object->last_active = clock_.WallNow();
  if (object->object->meta.generation != generation) {  // decided on a spec that is gone
    object->decide_again = true;
    co_return;
  }
  object->decided_at = clock_.WallNow();
  object->decided_replicas = replicas.ok() ? *replicas : -1;
  object->last_decision = decision;
  Publish(*object, decision);
}

// A target changes all the time under us (its controller writes its status), so a conflict is
// normal and tried again at once; one that stays is no failure either: the next look decides on
// what is there then.
host::Task<absl::Status> ObjectDecider::Act(NamespacedName key, std::string uid,
                                            scaling::Decision& decision,
                                            scaling::DecisionInputs inputs) {
  const host::SteadyTime start = clock_.SteadyNow();
  const host::Deadline deadline = host::Deadline::After(clock_, options_.act_timeout);
  absl::Status status;
  for (int attempt = 0; attempt <= options_.conflict_retries; ++attempt) {
    const TrackedObject* object = registry_.Find(key);
    if (object == nullptr || object->uid() != uid) co_return absl::OkStatus();
    const runtime::EventTarget about = EventTargetOf(*object);
    status = co_await ActOnce(*object, decision, inputs, deadline);
    if (absl::IsAborted(status)) continue;
    AnnounceScaling(about, decision, status);
    break;
  }
  metrics_.Step(runtime::LoopStep::kWrite, clock_.SteadyNow() - start);
  co_return status;
}

// Reads the target live and decides again on that: what the cache says may be behind what the HPA
// did. Without scale_to afterwards there was nothing to do.
host::Task<absl::Status> ObjectDecider::ActOnce(const TrackedObject& object,
                                                scaling::Decision& decision,
                                                scaling::DecisionInputs& inputs,
                                                host::Deadline deadline) {
  const api::GroupVersionKindResource target = object.target;
  const NamespacedName target_key = TargetKey(*object.object);
  const api::ScaledObject snapshot = Snapshot(object);  // `object` may go while we wait
  absl::StatusOr<ScaleReading> live = co_await scaler_.ReadLive(target, target_key, deadline);
  if (!live.ok()) co_return live.status();
  inputs.current_replicas = live->spec_replicas;
  decision = scaling::Decide(snapshot, inputs);
  if (!may_act_()) decision.scale_to.reset();
  if (!decision.scale_to) co_return absl::OkStatus();
  co_return co_await scaler_.SetReplicas(target, target_key, *std::move(live), *decision.scale_to,
                                         deadline);
}

void ObjectDecider::AnnounceScaling(const runtime::EventTarget& about,
                                    const scaling::Decision& decision, const absl::Status& status) {
  const bool up = decision.event != ScaleEvent::kDeactivated;
  if (!status.ok()) {
    log_.Warning("scaling failed",
                 {{"object", about.key.ToString()}, {"error", host::Describe(status)}});
    events_.Record(about, "Warning",
                   up ? "KEDAScaleTargetActivationFailed" : "KEDAScaleTargetDeactivationFailed",
                   host::Describe(status));
    return;
  }
  if (!decision.scale_to) return;
  log_.Info("scaled", {{"object", about.key.ToString()}, {"why", decision.explanation}});
  if (decision.event == ScaleEvent::kNone) return;
  events_.Record(about, "Normal", up ? "KEDAScaleTargetActivated" : "KEDAScaleTargetDeactivated",
                 decision.event_note);
}

void ObjectDecider::PublishHealth(const TrackedObject& object, api::ScaledObjectStatus& status) {
  status.health.clear();
  status.triggers_activity.clear();
  for (const TrackedTrigger& trigger : object.triggers) {
    if (trigger.resolved.resource) continue;
    for (const scaling::MetricSpec& spec : trigger.specs) {
      const host::HealthKey key = object.HealthKeyOf(trigger, spec.name);
      const std::string name =
          scaling::ExternalMetricName(static_cast<int32_t>(trigger.resolved.index), spec.name);
      const host::HealthRecord* record = health_.Find(key);
      const int32_t published = PublishedFailures(object.object->spec, health_.FailedCycles(key));
      // Through a failure that is not told yet, activity keeps its last good value.
      const bool told = record != nullptr && published == 0;
      status.health[name] = {.number_of_failures = published,
                             .status = published > 0 ? api::kFailing : api::kHappy};
      status.triggers_activity[name] = told && record->active;
    }
  }
}

void ObjectDecider::Publish(TrackedObject& object, const scaling::Decision& decision) {
  const NamespacedName key = object.object->Key();
  const int64_t generation = object.object->meta.generation;
  const absl::Time now = clock_.WallNow();
  status_.Update(key, [&](api::ScaledObjectStatus& status) {
    const api::ScaledObjectStatus before = status;
    auto set = [&](const char* type, const std::optional<scaling::ConditionChange>& change) {
      if (change)
        api::SetCondition(status.conditions, type, change->status, change->reason, change->message,
                          now, generation);
    };
    const std::string was_active = api::StatusOf(status.conditions, api::kActive);
    if (!object.ready_is_reconcilers) set(api::kReady, decision.ready);
    set(api::kActive, decision.active);
    set(api::kFallback, decision.fallback);
    if (object.last_active && api::StatusOf(status.conditions, api::kActive) != was_active) {
      status.last_active_time = absl::FromUnixSeconds(absl::ToUnixSeconds(*object.last_active));
    }
    PublishHealth(object, status);
    if (const auto hpa = view_.Hpa({key.namespace_name, object.object->HpaName()}))
      ObserveAgreement(object, *hpa, status);
    Announce(object, before, status);
  });
}

void ObjectDecider::Announce(const TrackedObject& object, const api::ScaledObjectStatus& before,
                             const api::ScaledObjectStatus& after) {
  const runtime::EventTarget about = EventTargetOf(object);
  for (const auto& [metric, health] : after.health) {
    auto was = before.health.find(metric);
    const int32_t failures_before = was == before.health.end() ? 0 : was->second.number_of_failures;
    if (health.number_of_failures < scaling::kUnhealthyFailures ||
        failures_before >= scaling::kUnhealthyFailures)
      continue;
    std::string why;
    for (const scaling::TriggerFacts& fact : FactsOf(object)) {
      if (fact.metric_name == metric) why = host::Describe(fact.status);
    }
    events_.Record(about, "Warning", "KEDAScalerFailed",
                   absl::StrCat(metric, " could not be read in ", health.number_of_failures,
                                " poll cycles: ", why));
  }
  const bool fell_back = api::StatusOf(before.conditions, api::kFallback) == api::kTrue;
  const bool falls_back = api::StatusOf(after.conditions, api::kFallback) == api::kTrue;
  if (falls_back && !fell_back) {
    events_.Record(about, "Normal", "ScaledObjectFallbackActivated",
                   absl::StrCat("Fallback to ", object.object->spec.fallback->replicas,
                                " replicas: a trigger cannot be read"));
  } else if (fell_back && !falls_back) {
    events_.Record(about, "Normal", "ScaledObjectFallbackDeactivated",
                   "Fallback ended: the triggers can be read again");
  }
}

void ObjectDecider::ObserveAgreement(TrackedObject& object, const api::HorizontalPodAutoscaler& hpa,
                                     api::ScaledObjectStatus& status) {
  const absl::Time now = clock_.WallNow();
  const int64_t generation = object.object->meta.generation;
  if (const auto active = HpaActiveOf(hpa)) {
    api::SetCondition(status.conditions, api::kHpaActive, active->status, active->reason,
                      active->message, now, generation);
  }
  std::vector<scaling::ExternalReading> readings;
  for (const scaling::TriggerFacts& fact : FactsOf(object)) {
    if (fact.status.ok() && fact.value)
      readings.push_back({.metric_name = fact.metric_name, .value = *fact.value});
  }
  if (!object.agreement) return;
  const scaling::HpaAgreement::Verdict verdict =
      object.agreement->Observe(hpa, readings, clock_.SteadyNow());
  if (!verdict.changed || verdict.state == scaling::HpaAgreement::State::kUnknown) return;
  const bool agrees = verdict.state == scaling::HpaAgreement::State::kInSync;
  if (agrees) {
    api::SetCondition(status.conditions, api::kHpaInSync, api::kTrue, api::reason::kHpaAgrees,
                      "The HPA wants what the scalers' values ask for", now, generation);
    return;
  }
  api::SetCondition(status.conditions, api::kHpaInSync, api::kFalse, api::reason::kHpaDisagrees,
                    verdict.message, now, generation);
  events_.Record(EventTargetOf(object), "Warning", api::reason::kHpaDisagrees, verdict.message);
}

void ObjectDecider::ObserveHpa(const NamespacedName& key) {
  TrackedObject* object = registry_.Find(key);
  if (object == nullptr || !may_act_()) return;
  const auto hpa = view_.Hpa({key.namespace_name, object->object->HpaName()});
  if (hpa == nullptr) return;
  status_.Update(key,
                 [&](api::ScaledObjectStatus& status) { ObserveAgreement(*object, *hpa, status); });
}

}  // namespace outrigger::controller::polling
