// SPDX-License-Identifier: Apache-2.0
#include "operator/scaling/replica_decision.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <utility>

#include "operator/scaling/fallback.h"

namespace outrigger::controller::scaling {
namespace {

namespace reason = api::reason;

// What all triggers together say.
struct Tally {
  bool active = false;      // a metric is active, or falls back to more than 0 replicas
  bool falls_back = false;  // a metric is at its fallback threshold
  bool error = false;       // a metric has no answer and does not fall back
  bool unhealthy = false;   // one of these has had none for long, or for good
  std::vector<std::string> active_metrics;
};

bool FallsBackNow(const api::ScaledObjectSpec& spec, const TriggerFacts& trigger) {
  return !trigger.status.ok() && FallsBack(spec, trigger.failed_cycles);
}

Tally Count(const api::ScaledObjectSpec& spec, const DecisionInputs& inputs) {
  Tally tally;
  for (const TriggerFacts& trigger : inputs.triggers) {
    const bool falls_back = FallsBackNow(spec, trigger);
    const bool active =
        trigger.status.ok() ? trigger.active : falls_back && spec.fallback->replicas > 0;
    tally.active |= active;
    tally.falls_back |= falls_back;
    if (!trigger.status.ok() && !falls_back) {
      tally.error = true;
      tally.unhealthy |= IsUnhealthy(trigger);
    }
    if (active && !trigger.metric_name.empty()) tally.active_metrics.push_back(trigger.metric_name);
  }
  if (inputs.triggers.empty()) {
    // cpu and memory alone keep a target up; no trigger at all is a fault, not "no work".
    (inputs.has_resource_triggers ? tally.active : tally.error) = true;
  }
  return tally;
}

std::string NameOf(const TriggerFacts& trigger) {
  return absl::StrCat("trigger ", trigger.trigger_index, " (", trigger.type, ")");
}

// ---- Ready ------------------------------------------------------------------------------------

// A source that is down is refused at one poll and times out at the next, as its host and network
// have it: the same news, written once.
std::string HeadlineCode(absl::StatusCode code) {
  return absl::StatusCodeToString(
      code == absl::StatusCode::kDeadlineExceeded ? absl::StatusCode::kUnavailable : code);
}

// "2 triggers do not work: trigger 0 (redis) UNAVAILABLE, trigger 2 (kafka) DEADLINE_EXCEEDED": the
// part of the message that decides whether it is news.
std::string Headline(const std::vector<const TriggerFacts*>& broken) {
  const std::string list =
      absl::StrJoin(broken, ", ", [](std::string* out, const TriggerFacts* trigger) {
        absl::StrAppend(out, NameOf(*trigger), " ", HeadlineCode(trigger->status.code()));
      });
  return broken.size() == 1 ? absl::StrCat("1 trigger does not work: ", list, ": ")
                            : absl::StrCat(broken.size(), " triggers do not work: ", list, ": ");
}

// Keeps the details that are there already, for they may differ at each poll (a port, a time) and
// would be written each time.
std::string BrokenMessage(const api::ScaledObject& object,
                          const std::vector<const TriggerFacts*>& broken) {
  const std::string headline = Headline(broken);
  const api::Condition* ready = api::FindCondition(object.status.conditions, api::kReady);
  if (ready != nullptr && ready->observed_generation == object.meta.generation &&
      absl::StartsWith(ready->message, headline)) {
    return ready->message;
  }
  return absl::StrCat(headline, broken.front()->status.message());
}

// ---- explanation and event --------------------------------------------------------------------

std::string Explain(const api::ScaledObjectSpec& spec, const TriggerFacts& trigger) {
  std::string text = trigger.metric_name.empty() ? NameOf(trigger) : trigger.metric_name;
  if (trigger.status.ok()) {
    if (trigger.value.has_value()) absl::StrAppend(&text, "=", *trigger.value);
    if (trigger.target.has_value()) absl::StrAppend(&text, " (target ", *trigger.target, ")");
    return absl::StrCat(text, trigger.active ? " active" : " inactive");
  }
  absl::StrAppend(&text, " failed: ", absl::StatusCodeToString(trigger.status.code()), ": ",
                  trigger.status.message());
  if (trigger.failed_cycles > 0)
    absl::StrAppend(&text, " (", trigger.failed_cycles, " cycles in a row)");
  if (FallsBackNow(spec, trigger)) {
    absl::StrAppend(&text, ", falls back to ", spec.fallback->replicas, " replicas");
  } else if (FallbackConfigured(spec) && !trigger.misconfigured) {
    absl::StrAppend(&text, ", falls back at ", FallbackThreshold(*spec.fallback));
  }
  return text;
}

std::string ExplainInputs(const api::ScaledObjectSpec& spec, const DecisionInputs& inputs) {
  std::vector<std::string> parts;
  for (const TriggerFacts& trigger : inputs.triggers) parts.push_back(Explain(spec, trigger));
  if (inputs.has_resource_triggers) parts.push_back("cpu or memory (the HPA's)");
  if (parts.empty()) parts.push_back("no triggers");
  return absl::StrCat("replicas ", inputs.current_replicas, ", min ", spec.MinReplicas(), ", max ",
                      spec.MaxReplicas(), inputs.hpa_exists ? "" : ", no HPA yet", "; ",
                      absl::StrJoin(parts, "; "));
}

std::string EventNote(const api::ScaledObject& object, int32_t from, int32_t to) {
  return absl::StrCat("Scaled ", object.status.scale_target_kind, " ", object.meta.namespace_name,
                      "/", object.spec.scale_target_ref.name, " from ", from, " to ", to);
}

// ---- deciding ---------------------------------------------------------------------------------

// One decision in the making: the rule that applies is said in `why_`, the result is in
// `decision_`.
class Decider {
 public:
  Decider(const api::ScaledObject& object, const DecisionInputs& inputs)
      : object_(object), spec_(object.spec), inputs_(inputs), tally_(Count(object.spec, inputs)) {}

  Decision Run() && {
    decision_.is_active = tally_.active;
    decision_.active_metrics = tally_.active_metrics;
    decision_.ready = JudgeReady(object_, inputs_.triggers, tally_.active);
    decision_.fallback = JudgeFallback();
    if (tally_.active) {
      DecideActive();
    } else if (tally_.error) {
      DecideUnknown();
    } else {
      DecideInactive();
    }
    const std::string result = decision_.scale_to.has_value()
                                   ? absl::StrCat("scale to ", *decision_.scale_to)
                                   : absl::StrCat("stay at ", inputs_.current_replicas);
    decision_.outcome = absl::StrCat(why_, " -> ", result);
    decision_.explanation = absl::StrCat(ExplainInputs(spec_, inputs_), "; ", decision_.outcome);
    return std::move(decision_);
  }

 private:
  ConditionChange JudgeFallback() const {
    if (tally_.falls_back) {
      return {api::kTrue, reason::kFallbackExists, "At least one trigger is falling back"};
    }
    return {api::kFalse, reason::kNoFallbackFound, "No trigger is falling back"};
  }

  void DecideActive() {
    decision_.update_last_active = true;
    decision_.active = {api::kTrue, reason::kScalerActive, "At least one trigger is active"};
    const int32_t wanted = std::max(spec_.HpaMinReplicas(), FallbackFloor());
    if (inputs_.current_replicas == 0) {
      why_ = "active at 0: activate";
      ScaleTo(wanted, ScaleEvent::kActivated);
      decision_.event_note = absl::StrCat(EventNote(object_, 0, wanted), ", triggered by ",
                                          absl::StrJoin(tally_.active_metrics, ";"));
    } else if (FallbackFloor() > inputs_.current_replicas) {
      why_ = "falling back without an HPA: raise to fallback.replicas";
      ScaleTo(FallbackFloor(), ScaleEvent::kNone);
    } else {
      why_ = "active: min to max is the HPA's work";
    }
  }

  // What the target must be raised to because nobody else can; 0: nothing.
  int32_t FallbackFloor() const {
    if (!tally_.falls_back || inputs_.hpa_exists) return 0;
    return std::min(spec_.fallback->replicas, spec_.MaxReplicas());
  }

  void DecideUnknown() {
    why_ = "an error is never read as no work";
    if (tally_.unhealthy && !tally_.falls_back) {
      decision_.active = {api::kUnknown, reason::kUnknownState,
                          "A trigger cannot be read and none is active"};
    }
  }

  void DecideInactive() {
    decision_.active = {api::kFalse, reason::kScalerNotActive, "No trigger is active"};
    if (inputs_.current_replicas > 0 && spec_.MinReplicas() == 0) {
      ScaleInAfterCooldown();
    } else if (inputs_.current_replicas < spec_.MinReplicas()) {
      why_ = "below minReplicaCount";
      ScaleTo(spec_.MinReplicas(), ScaleEvent::kNone);
    } else {
      why_ = inputs_.current_replicas == 0 ? "inactive at 0"
                                           : "inactive: down to min is the HPA's work";
    }
  }

  void ScaleInAfterCooldown() {
    const absl::Duration left = CooldownEnd() - inputs_.now;
    if (left >= absl::ZeroDuration()) {
      why_ = absl::StrCat("inactive, cooling down for another ",
                          absl::FormatDuration(absl::Ceil(left, absl::Seconds(1))));
      decision_.active = {api::kFalse, reason::kScalerCooldown,
                          "No trigger is active; cooling down before scaling to 0"};
      return;
    }
    why_ = "inactive and cooled down";
    ScaleTo(0, ScaleEvent::kDeactivated);
    decision_.event_note = EventNote(object_, inputs_.current_replicas, 0);
  }

  // The moment after which (not at which) the target may go to 0.
  absl::Time CooldownEnd() const {
    const std::optional<absl::Time> last_active =
        std::max(inputs_.last_active, object_.status.last_active_time);
    if (last_active.has_value()) return *last_active + spec_.CooldownPeriod();
    // An object of the API server has a creation time; without one, nothing is known to be over.
    return object_.meta.creation_timestamp.value_or(inputs_.now) + spec_.InitialCooldownPeriod();
  }

  void ScaleTo(int32_t replicas, ScaleEvent event) {
    decision_.scale_to = replicas;
    decision_.event = event;
  }

  const api::ScaledObject& object_;
  const api::ScaledObjectSpec& spec_;
  const DecisionInputs& inputs_;
  const Tally tally_;
  Decision decision_;
  std::string why_;
};

}  // namespace

Decision Decide(const api::ScaledObject& object, const DecisionInputs& inputs) {
  return Decider(object, inputs).Run();
}

bool IsUnhealthy(const TriggerFacts& trigger) {
  return !trigger.status.ok() &&
         (trigger.misconfigured || trigger.failed_cycles >= kUnhealthyFailures);
}

ConditionChange JudgeReady(const api::ScaledObject& object,
                           const std::vector<TriggerFacts>& triggers, bool is_active) {
  std::vector<const TriggerFacts*> broken;
  bool misconfigured = false;
  for (const TriggerFacts& trigger : triggers) {
    // One that falls back, or will, is taken care of; one that only a change can heal is not.
    const bool cared_for =
        FallsBackNow(object.spec, trigger) || (FallbackConfigured(object.spec) && !is_active);
    if (!IsUnhealthy(trigger) || (cared_for && !trigger.misconfigured)) continue;
    misconfigured |= trigger.misconfigured;
    broken.push_back(&trigger);
  }
  if (broken.empty()) {
    return {api::kTrue, reason::kScaledObjectReady,
            "ScaledObject is defined correctly and is ready for scaling"};
  }
  const std::string message = BrokenMessage(object, broken);
  if (is_active && !misconfigured) return {api::kUnknown, reason::kPartialTriggerError, message};
  return {api::kFalse, reason::kTriggerError, message};
}

Decision DecideWithoutReplicas(const absl::Status& why, bool again) {
  Decision decision;
  const std::string message = absl::StrCat(
      "Could not read the replicas of the scale target: ", absl::StatusCodeToString(why.code()),
      ": ", why.message());
  // What passes by itself says nothing about the ScaledObject.
  const bool passes = absl::IsUnavailable(why) || absl::IsDeadlineExceeded(why) ||
                      absl::IsResourceExhausted(why) || absl::IsAborted(why) ||
                      absl::IsCancelled(why) || (absl::IsInternal(why) && !again);
  if (!passes) decision.ready = {api::kFalse, reason::kErrorGettingCurrentReplicas, message};
  decision.outcome = absl::StrCat(message, " -> nothing done");
  decision.explanation = decision.outcome;
  return decision;
}

}  // namespace outrigger::controller::scaling
