// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/time/time.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "operator/api/scaled_object.h"

namespace outrigger::controller::scaling {

// What is known of one metric of a trigger that a plugin serves (not cpu, not memory) at the moment
// of a decision. A trigger with several metrics has one entry for each; one whose specs are unknown
// has one entry without a name.
struct TriggerFacts {
  int32_t trigger_index = 0;
  std::string type;         // "redis"
  std::string metric_name;  // "s0-redis-orders"; empty while its spec is unknown
  // OK: answered in this cycle. Else why not; a missing answer is an error, never inactive.
  absl::Status status;
  bool active = false;           // the plugin's word; means nothing unless status is OK
  std::optional<double> value;   // for the explanation only
  std::optional<double> target;  // for the explanation only
  int32_t failed_cycles = 0;     // failed poll cycles in a row, this one included; 0 once answered
  // Only a change of spec, credentials or plugin heals it (the plugin said INVALID_ARGUMENT, a
  // Secret is missing): shown in Ready at once instead of after three failures.
  bool misconfigured = false;
};

struct DecisionInputs {
  int32_t current_replicas = 0;  // spec.replicas of the target; absent counts as 1
  bool hpa_exists = false;       // if not, nobody but us can raise the target during an outage
  std::vector<TriggerFacts> triggers;
  bool has_resource_triggers = false;  // cpu or memory; alone they make the object always active
  // When the target was last wanted, as far as the caller remembers; status.lastActiveTime may be
  // older, for it is written only when Active changes. The later one counts.
  std::optional<absl::Time> last_active;
  absl::Time now;
};

struct ConditionChange {
  std::string status;
  std::string reason;
  std::string message;

  friend bool operator==(const ConditionChange&, const ConditionChange&) = default;
};

enum class ScaleEvent { kNone, kActivated, kDeactivated };

struct Decision {
  std::optional<int32_t> scale_to;       // absent: leave the target alone
  ScaleEvent event = ScaleEvent::kNone;  // to be published once the scaling succeeded
  std::string event_note;  // "Scaled apps/v1.Deployment default/web from 0 to 1, triggered by s0-a"
  // Absent: the condition keeps what it has.
  std::optional<ConditionChange> ready;
  std::optional<ConditionChange> active;
  std::optional<ConditionChange> fallback;
  bool is_active = false;           // something wants the target to run
  bool update_last_active = false;  // set the last active time to `now`, once any scaling succeeded
  std::vector<std::string> active_metrics;  // names of the metrics that are active
  std::string explanation;                  // inputs, limits, rule and result, in one line
  std::string outcome;                      // its end: "active at 0: activate -> scale to 1"
};

// Decides what one look at the triggers means for the target: up from 0, down to 0 after the
// cooldown, up to minReplicaCount, or nothing (1..max is the HPA's work). Of the object it uses
// spec, status (lastActiveTime, scaleTargetKind, the Ready condition) and metadata. Pure, never
// fails.
//
// - An error never scales in, and says nothing about activity: it is falling back or unknown.
// - A metric falls back at max(1, failureThreshold) failed cycles; with fallback.replicas > 0 it
//   counts as active, with 0 as inactive. Where no HPA exists the target is raised to
//   fallback.replicas, never lowered.
// - Active keeps its value while an error is young, and becomes Unknown when a trigger is unhealthy
//   (three cycles, or misconfigured), none is active and none falls back.
// - Ready follows unhealthy triggers only: one failed poll changes nothing. Its message keeps its
//   details until another trigger or another code comes, so that failing objects cause no writes.
// - Unlike KEDA, an active trigger counts for the cooldown though another one fails at that moment
//   (a recovery would else scale in at once what was active a second ago).
// Source: spec/scaledobject.md section 9.2; design.md sections 5 and 8.
Decision Decide(const api::ScaledObject& object, const DecisionInputs& inputs);

// The Ready part of Decide() alone, for whoever judges triggers without scaling (the reconciler's
// connection test).
ConditionChange JudgeReady(const api::ScaledObject& object,
                           const std::vector<TriggerFacts>& triggers, bool is_active);

// The decision when the target's replica count could not be read: nothing but Ready=False, and not
// that if it passes by itself. `again`: it could not the time before either.
Decision DecideWithoutReplicas(const absl::Status& why, bool again);

// True when at least kUnhealthyFailures cycles in a row failed, or only a change can heal it.
bool IsUnhealthy(const TriggerFacts& trigger);

}  // namespace outrigger::controller::scaling
