// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/scaled_object_reconciler.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <set>
#include <utility>

#include "host/base/status.h"
#include "operator/api/scale_target.h"
#include "operator/api/validation.h"
#include "operator/polling/answer_recorder.h"
#include "operator/scaling/hpa_builder.h"
#include "operator/scaling/metric_name.h"

namespace outrigger::controller::reconcile {
namespace {

using api::NamespacedName;
using polling::TrackedObject;
using polling::TrackedTrigger;
using runtime::Result;
namespace json = boost::json;

bool HasFinalizer(const api::ScaledObject& object) {
  const auto& finalizers = object.meta.finalizers;
  return std::find(finalizers.begin(), finalizers.end(), api::kFinalizer) != finalizers.end();
}

bool HasNameLabel(const api::ScaledObject& object) {
  auto it = object.meta.labels.find(api::kScaledObjectNameLabel);
  return it != object.meta.labels.end() && it->second == object.meta.name;
}

json::object MetadataPatch(const api::ScaledObject& object, json::object metadata) {
  metadata["uid"] = object.meta.uid;
  metadata["resourceVersion"] = object.meta.resource_version;
  json::object patch;
  patch["metadata"] = std::move(metadata);
  return patch;
}

json::array WithoutFinalizer(const api::ScaledObject& object) {
  json::array list;
  for (const std::string& finalizer : object.meta.finalizers) {
    if (finalizer != api::kFinalizer) list.emplace_back(finalizer);
  }
  return list;
}

// Specs of all triggers but cpu and memory; FAILED_PRECONDITION naming the first that has none.
absl::StatusOr<std::vector<scaling::TriggerSpecs>> AllSpecs(const TrackedObject& tracked) {
  std::vector<scaling::TriggerSpecs> all;
  for (const TrackedTrigger& trigger : tracked.triggers) {
    if (trigger.resolved.resource) continue;
    if (trigger.specs.empty()) {
      const absl::Status why = !trigger.refused.ok() ? trigger.refused : trigger.resolved.error;
      return absl::FailedPreconditionError(absl::StrCat(
          "spec.triggers[", trigger.resolved.index, "] (", trigger.resolved.type, "): ",
          why.ok() ? std::string("its metric spec is not known yet, so no HPA is made")
                   : std::string(why.message())));
    }
    all.push_back(
        {.trigger_index = static_cast<int32_t>(trigger.resolved.index), .specs = trigger.specs});
  }
  return all;
}

// The API server refused for lack of quota (403), not for lack of time (429).
bool IsQuotaRefusal(const absl::Status& status) {
  const std::optional<kube::ApiError> error = kube::GetApiError(status);
  return absl::IsResourceExhausted(status) && error && error->http_code == 403;
}

// Passes by itself; says nothing about the ScaledObject, so Ready keeps its value.
bool IsTransient(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kCancelled:
      return true;
    case absl::StatusCode::kResourceExhausted:
      return !IsQuotaRefusal(status);
    default:
      return false;
  }
}

// A fault of the API server itself, or of a webhook of it: nothing that an object can be blamed
// for.
bool IsServerFault(const absl::Status& status) {
  const std::optional<kube::ApiError> error = kube::GetApiError(status);
  return error && error->http_code >= 500;
}

bool NeedsAChange(const TrackedObject& tracked) {
  return std::any_of(
      tracked.triggers.begin(), tracked.triggers.end(), [](const TrackedTrigger& trigger) {
        return !trigger.refused.ok() || absl::IsInvalidArgument(trigger.resolved.error);
      });
}

// Of an object that is not polled any more: a failure that nobody can take back would stop the
// reads of its HPA, or keep it at its fallback, for ever.
void ForgetVerdict(api::ScaledObjectStatus& status, absl::Time now, int64_t generation) {
  status.health.clear();
  status.triggers_activity.clear();
  if (api::StatusOf(status.conditions, api::kFallback) == api::kTrue) {
    api::SetCondition(status.conditions, api::kFallback, api::kFalse, api::reason::kNoFallbackFound,
                      "The triggers are not polled", now, generation);
  }
}

}  // namespace

host::Task<absl::StatusOr<Result>> ScaledObjectReconciler::Reconcile(NamespacedName key,
                                                                     host::Deadline deadline) {
  ObjectPtr object = p_.view.ScaledObject(key);
  auto known = uids_.find(key);
  if (known != uids_.end() && (object == nullptr || object->meta.uid != known->second)) {
    ForgetAll(key);  // deleted, and perhaps made again under the same name
  }
  if (object == nullptr) co_return Result::Done();
  const absl::Status may_write = may_write_();
  if (!may_write.ok()) {
    if (refused_because_ != may_write.message())
      p_.log.Warning("nothing is written", {{"why", may_write.message()}});
    refused_because_ = std::string(may_write.message());
    ForgetAll(key);            // else we would put back what its new master writes into its status
    co_return Result::Done();  // whoever owns the answer queues the objects again when it changes
  }
  refused_because_.clear();
  if (object->meta.deletion_timestamp) co_return co_await Finalize(std::move(object), deadline);
  uids_[key] = object->meta.uid;
  p_.status.Adopt(*object);
  totals_.Count(key, object.get());
  if (std::optional<Refusal> refusal = Admit(*object)) {
    co_return co_await Refuse(std::move(object), *std::move(refusal), absl::OkStatus(), deadline);
  }
  CO_RETURN_IF_ERROR(co_await EnsureMetadata(object, deadline));
  absl::StatusOr<TargetFinder::Target> target = co_await targets_.Find(object, deadline);
  if (!target.ok()) {
    co_return co_await RefuseTarget(std::move(object), target.status(), deadline);
  }
  co_return co_await ReconcileState(std::move(object), *std::move(target), deadline);
}

std::optional<ScaledObjectReconciler::Refusal> ScaledObjectReconciler::Admit(
    const api::ScaledObject& object) const {
  if (const std::optional<std::string> field = api::UnsupportedField(object)) {
    return Refusal{
        api::reason::kNotSupported,
        absl::StrCat(*field, ": not supported yet; the HPA and the replicas are left as they are"),
        /*stops=*/true};
  }
  const std::vector<api::Violation> violations = api::ValidateScaledObject(object);
  if (violations.empty()) return std::nullopt;
  return Refusal{api::reason::kScaledObjectCheckFailed, api::JoinViolations(violations)};
}

// One patch for both, and none when both are there.
host::Task<absl::Status> ScaledObjectReconciler::EnsureMetadata(ObjectPtr object,
                                                                host::Deadline deadline) {
  if (HasFinalizer(*object) && HasNameLabel(*object)) co_return absl::OkStatus();
  json::object labels;
  labels[api::kScaledObjectNameLabel] = object->meta.name;
  json::array finalizers = WithoutFinalizer(*object);
  finalizers.emplace_back(api::kFinalizer);
  json::object metadata;
  metadata["labels"] = std::move(labels);
  metadata["finalizers"] = std::move(finalizers);
  runtime::WriteGate::Permit permit = co_await p_.gate.Acquire(runtime::WriteLane::kHpa);
  absl::StatusOr<json::value> patched =
      co_await p_.api.Patch(kube::ScaledObjects(), object->meta.namespace_name, object->meta.name,
                            kube::PatchType::kMerge, MetadataPatch(*object, std::move(metadata)),
                            kube::WriteOptions{}, deadline);
  if (!patched.ok()) {
    co_return host::Annotate(patched.status(), "ScaledObject ", object->Key().ToString(),
                             ": finalizer and label");
  }
  absl::StatusOr<api::ScaledObject> parsed = api::ParseScaledObject(*patched);
  if (parsed.ok()) p_.status.Adopt(*parsed);
  co_return absl::OkStatus();
}

TrackedObject ScaledObjectReconciler::MakeTracked(
    ObjectPtr object, const polling::ResolvedObject& resolved,
    const api::GroupVersionKindResource& target) const {
  TrackedObject tracked;
  tracked.object = std::move(object);
  tracked.target = target;
  for (const polling::ResolvedTrigger& trigger : resolved.triggers)
    tracked.triggers.push_back({.resolved = trigger});
  return tracked;
}

// A target that is missing comes back with an event, or is looked for now and then; a malformed
// reference waits for a change; an API server that fails is tried again.
host::Task<absl::StatusOr<Result>> ScaledObjectReconciler::RefuseTarget(ObjectPtr object,
                                                                        absl::Status why,
                                                                        host::Deadline deadline) {
  if (IsTransient(why) || (IsServerFault(why) && HpaIsOf(*object))) co_return why;
  const bool missing = absl::IsFailedPrecondition(why);
  const bool waits = missing || !api::ResolveTarget(object->spec.scale_target_ref).ok();
  Refusal refusal{api::reason::kScaledObjectCheckFailed, std::string(why.message())};
  absl::StatusOr<Result> refused =
      co_await Refuse(object, std::move(refusal), waits ? absl::OkStatus() : why, deadline);
  if (missing && refused.ok() && !TargetFinder::IsWatched(object->spec.scale_target_ref)) {
    co_return Result::After(options_.refused_retry);
  }
  co_return refused;
}

host::Task<absl::StatusOr<Result>> ScaledObjectReconciler::ReconcileState(
    ObjectPtr object, TargetFinder::Target target, host::Deadline deadline) {
  const NamespacedName key = object->Key();
  const absl::Status name_is_free = hpas_.CheckName(*object);
  if (!name_is_free.ok()) {
    Refusal refusal{api::reason::kScaledObjectCheckFailed, std::string(name_is_free.message())};
    absl::StatusOr<Result> refused =
        co_await Refuse(std::move(object), std::move(refusal), absl::OkStatus(), deadline);
    if (refused.ok()) co_return Result::After(options_.refused_retry);
    co_return refused;
  }
  std::shared_ptr<const polling::ResolvedObject> resolved =
      co_await p_.resolver.Resolve(object, deadline);
  TrackedObject next = MakeTracked(object, *resolved, target.gvkr);
  if (!p_.observer.HasRoom(next)) co_return Result::After(options_.no_room_retry);
  if (p_.registry.Find(key) == nullptr) RestorePublished(next);
  const host::SteadyTime start = p_.clock.SteadyNow();
  const auto hpa = p_.view.Hpa({key.namespace_name, object->HpaName()});
  co_await p_.observer.Observe(next, p_.registry.Find(key), hpa, deadline);
  p_.metrics.Step(runtime::LoopStep::kRead, p_.clock.SteadyNow() - start);
  // Deleted or changed while we asked: what we learnt is of the past.
  const ObjectPtr now = p_.view.ScaledObject(key);
  if (now == nullptr || now->meta.uid != object->meta.uid || now->meta.deletion_timestamp)
    co_return Result::Done();

  const absl::Status applied = co_await ReconcileHpa(object, next, deadline);
  // Who waits for an HPA, or for an edit to reach it, wants to know why it does not.
  const bool passes = IsTransient(applied) || (IsServerFault(applied) && HpaIsOf(*object));
  next.ready_is_reconcilers = !applied.ok() && !passes;
  if (applied.ok()) next.hpa_generation = object->meta.generation;
  const bool needs_a_change = NeedsAChange(next);
  WriteFacts(next, target.replicas, applied, passes);
  Track(std::move(next));
  const host::SteadyTime status_start = p_.clock.SteadyNow();
  CO_RETURN_IF_ERROR(co_await p_.status.Flush(key, deadline));
  p_.metrics.Step(runtime::LoopStep::kStatus, p_.clock.SteadyNow() - status_start);
  // A trigger without a spec waits for a change of the spec, or for its plugin: mostly an event.
  if (absl::IsFailedPrecondition(applied)) {
    const absl::Status invalid = absl::InvalidArgumentError(applied.message());
    if (needs_a_change) co_return invalid;
    co_return Result::After(options_.unknown_spec_retry);
  }
  if (!applied.ok()) co_return applied;
  co_return Result::Done();
}

host::Task<absl::Status> ScaledObjectReconciler::ReconcileHpa(ObjectPtr object,
                                                              const TrackedObject& tracked,
                                                              host::Deadline deadline) {
  absl::StatusOr<std::vector<scaling::TriggerSpecs>> specs = AllSpecs(tracked);
  if (!specs.ok()) co_return specs.status();
  absl::StatusOr<api::HorizontalPodAutoscaler> wanted =
      scaling::BuildHpa(*object, *specs, tracked.target);
  if (!wanted.ok()) co_return wanted.status();
  co_return co_await hpas_.Apply(std::move(object), *std::move(wanted), deadline);
}

void ScaledObjectReconciler::WriteFacts(const TrackedObject& tracked, int32_t replicas,
                                        const absl::Status& hpa, bool passes) {
  const api::ScaledObject& object = *tracked.object;
  const absl::Time now = p_.clock.WallNow();
  const int64_t generation = object.meta.generation;
  const std::vector<scaling::TriggerFacts> facts = p_.decider.FactsOf(tracked);
  p_.status.Update(object.Key(), [&](api::ScaledObjectStatus& status) {
    const api::Condition* found = api::FindCondition(status.conditions, api::kReady);
    const std::optional<api::Condition> before =
        found == nullptr ? std::nullopt : std::make_optional(*found);
    api::InitializeConditions(status.conditions, now, generation);
    status.observed_generation = generation;
    status.phase = IsQuotaRefusal(hpa) ? api::Phase::kQuotaExceeded : api::Phase::kRunning;
    status.scale_target_kind = api::ScaleTargetKindText(tracked.target);
    status.scale_target_gvkr = tracked.target;
    if (!status.original_replica_count) status.original_replica_count = replicas;
    status.triggers_types = api::TriggersTypes(object.spec);
    status.authentications_types = api::AuthenticationsTypes(object.spec);
    if (hpa.ok()) {
      status.hpa_name = object.HpaName();
      std::vector<scaling::TriggerSpecs> specs =
          AllSpecs(tracked).value_or(std::vector<scaling::TriggerSpecs>());
      status.external_metric_names = scaling::ExternalMetricNames(specs);
      if (absl::StatusOr<api::HorizontalPodAutoscaler> built =
              scaling::BuildHpa(object, specs, tracked.target);
          built.ok()) {
        status.resource_metric_names = scaling::ResourceMetricNames(*built);
      }
      std::erase_if(status.health, [&](const auto& entry) {
        return std::find(status.external_metric_names.begin(), status.external_metric_names.end(),
                         entry.first) == status.external_metric_names.end();
      });
      const bool active = api::StatusOf(status.conditions, api::kActive) == api::kTrue;
      api::ScaledObject judged = object;
      judged.status = status;
      const scaling::ConditionChange ready = scaling::JudgeReady(judged, facts, active);
      api::SetCondition(status.conditions, api::kReady, ready.status, ready.reason, ready.message,
                        now, generation);
    } else if (!passes) {
      const char* reason =
          IsQuotaRefusal(hpa) ? api::reason::kQuotaExceeded : api::reason::kScaledObjectCheckFailed;
      api::SetCondition(status.conditions, api::kReady, api::kFalse, reason, hpa.message(), now,
                        generation);
    }
    // Else the polls' word stands.
    const bool fallback_gone = !object.spec.fallback;
    if (fallback_gone && api::StatusOf(status.conditions, api::kFallback) != api::kFalse) {
      api::SetCondition(status.conditions, api::kFallback, api::kFalse,
                        api::reason::kNoFallbackFound, "No trigger is falling back", now,
                        generation);
    }
    AnnounceReady(object, before ? &*before : nullptr,
                  api::FindCondition(status.conditions, api::kReady));
  });
}

void ScaledObjectReconciler::AnnounceReady(const api::ScaledObject& object,
                                           const api::Condition* before,
                                           const api::Condition* after) {
  if (after->reason.empty()) return;  // not judged yet
  const runtime::EventTarget about{.key = object.Key(), .uid = object.meta.uid};
  const bool was_ready = before != nullptr && before->status == api::kTrue;
  if (after->status == api::kTrue) {
    if (!was_ready)
      p_.events.Record(about, "Normal", api::reason::kScaledObjectReady, after->message);
    return;
  }
  const bool news = before == nullptr || before->status != after->status ||
                    before->reason != after->reason || before->message != after->message;
  if (news)
    p_.events.Record(about, "Warning", api::reason::kScaledObjectCheckFailed, after->message);
}

void ScaledObjectReconciler::Track(TrackedObject next) {
  const NamespacedName key = next.object->Key();
  // Its status may have changed while the plugins were asked.
  const ObjectPtr newest = p_.view.ScaledObject(key);
  if (newest != nullptr && api::SameButStatus(*next.object, *newest)) next.object = newest;
  const TrackedObject* before = p_.registry.Find(key);
  const bool is_new = before == nullptr;
  const bool same_triggers =
      !is_new && before->object->meta.generation == next.object->meta.generation;
  if (is_new) {
    next.agreement.emplace(
        scaling::HpaAgreement::Options{.hpa_sync_period = options_.hpa_sync_period});
    next.last_active = next.object->status.last_active_time;
    // Decided by a leader before us: active then counts as active now, so nothing goes to 0 sooner
    // than its cooldown.
    if (api::StatusOf(next.object->status.conditions, api::kActive) == api::kTrue) {
      next.last_active = p_.clock.WallNow();
    }
  } else {
    if (next.hpa_generation == 0) next.hpa_generation = before->hpa_generation;
    next.agreement = before->agreement;
    next.last_active = before->last_active;
    next.last_decision = before->last_decision;
    next.scaled_because = before->scaled_because;
    next.decided_at = before->decided_at;
    next.decided_replicas = before->decided_replicas;
    next.due = before->due;
    next.cycle = before->cycle;
    next.poll_again = before->poll_again;
    next.deciding = before->deciding;
    next.decide_again = before->decide_again;
  }
  bool answered = true;
  if (!same_triggers) p_.metrics.ForgetScalers(key);  // no series of a trigger that was edited away
  for (const TrackedTrigger& trigger : next.triggers) {
    if (trigger.resolved.resource) continue;
    for (const host::HealthKey& health_key : next.HealthKeysOf(trigger)) {
      if (!health_key.metric.empty()) p_.health.Forget(next.HealthKeyOf(trigger, ""));
      const host::HealthRecord* record = p_.health.Find(health_key);
      answered = answered && record != nullptr && record->status.ok() && !trigger.resolved.stateful;
      if (!health_key.metric.empty())
        p_.metrics.ScalerRegistered(polling::LabelsOf(next, trigger, health_key.metric));
    }
  }
  const bool published = !next.object->status.hpa_name.empty();
  TrackedObject& slot = p_.registry.Put(key);
  slot = std::move(next);
  const bool spread = is_new && published && p_.clock.SteadyNow() < spread_until_;
  if (!same_triggers) {  // else it is on its round already
    p_.engine.Schedule(
        key, spread ? polling::PollEngine::First::kSpread : polling::PollEngine::First::kAtOnce);
  }
  // The connection tests were as good as a poll.
  if (answered && !spread) p_.engine.AnsweredOutOfTurn(key);
}

// A new leader starts from what the one before published: what fails stays so until one success.
void ScaledObjectReconciler::RestorePublished(const TrackedObject& tracked) {
  for (const auto& [name, health] : tracked.object->status.health) {
    const std::optional<scaling::IndexedMetricName> metric = scaling::ParseExternalMetricName(name);
    if (!metric || health.number_of_failures <= 0) continue;
    const host::HealthKey key{.uid = tracked.uid(),
                              .trigger_index = static_cast<uint32_t>(metric->trigger_index),
                              .metric = metric->name};
    if (p_.health.Find(key) != nullptr) continue;
    p_.health.Restore(key, health.number_of_failures,
                      absl::UnavailableError("failed when another replica led; not asked since"));
  }
}

host::Task<absl::StatusOr<Result>> ScaledObjectReconciler::Refuse(ObjectPtr object, Refusal refusal,
                                                                  absl::Status result,
                                                                  host::Deadline deadline) {
  const NamespacedName key = object->Key();
  if (refusal.stops) Untrack(key);
  TrackedObject* running = p_.registry.Find(key);
  if (running != nullptr) {
    running->ready_is_reconcilers = true;
  } else {
    p_.health.Forget(object->meta.uid);
  }
  const absl::Time now = p_.clock.WallNow();
  p_.status.Update(key, [&](api::ScaledObjectStatus& status) {
    if (running == nullptr) ForgetVerdict(status, now, object->meta.generation);
    const api::Condition* found = api::FindCondition(status.conditions, api::kReady);
    const std::optional<api::Condition> before =
        found == nullptr ? std::nullopt : std::make_optional(*found);
    api::InitializeConditions(status.conditions, now, object->meta.generation);
    status.observed_generation = object->meta.generation;
    status.phase = api::Phase::kRunning;
    api::SetCondition(status.conditions, api::kReady, api::kFalse, refusal.reason, refusal.message,
                      now, object->meta.generation);
    AnnounceReady(*object, before ? &*before : nullptr,
                  api::FindCondition(status.conditions, api::kReady));
  });
  CO_RETURN_IF_ERROR(co_await p_.status.Flush(key, deadline));
  CO_RETURN_IF_ERROR(result);
  co_return Result::Done();
}

host::Task<absl::StatusOr<Result>> ScaledObjectReconciler::Finalize(ObjectPtr object,
                                                                    host::Deadline deadline) {
  const NamespacedName key = object->Key();
  uids_[key] = object->meta.uid;  // a new leader has never seen it before
  ForgetAll(key);
  if (!HasFinalizer(*object)) co_return Result::Done();
  json::object metadata;
  metadata["finalizers"] = WithoutFinalizer(*object);
  runtime::WriteGate::Permit permit = co_await p_.gate.Acquire(runtime::WriteLane::kHpa);
  absl::StatusOr<json::value> patched = co_await p_.api.Patch(
      kube::ScaledObjects(), key.namespace_name, key.name, kube::PatchType::kMerge,
      MetadataPatch(*object, std::move(metadata)), kube::WriteOptions{}, deadline);
  if (absl::IsNotFound(patched.status())) co_return Result::Done();
  if (!patched.ok())
    co_return host::Annotate(patched.status(), "ScaledObject ", key.ToString(),
                             ": remove finalizer");
  const runtime::EventTarget about{.key = key, .uid = object->meta.uid};
  p_.events.Record(about, "Warning", "ScaledObjectDeleted",
                   "ScaledObject was deleted; its HPA goes with it, its target keeps its replicas");
  p_.events.Forget(object->meta.uid);
  co_return Result::Done();
}

bool ScaledObjectReconciler::HpaIsOf(const api::ScaledObject& object) const {
  const TrackedObject* tracked = p_.registry.Find(object.Key());
  return tracked != nullptr && tracked->hpa_generation == object.meta.generation;
}

void ScaledObjectReconciler::Untrack(const NamespacedName& key) {
  p_.engine.Unschedule(key);
  p_.registry.Erase(key);
}

void ScaledObjectReconciler::ForgetAll(const NamespacedName& key) {
  Untrack(key);
  p_.status.Forget(key);
  totals_.Count(key, nullptr);
  p_.metrics.ForgetObject(key);
  auto known = uids_.find(key);
  if (known == uids_.end()) return;
  p_.health.Forget(known->second);
  p_.resolver.Forget(known->second);
  p_.events.Forget(known->second);
  uids_.erase(known);
}

}  // namespace outrigger::controller::reconcile
