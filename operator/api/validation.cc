// SPDX-License-Identifier: Apache-2.0
#include "operator/api/validation.h"

#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "operator/api/label_selector.h"
#include "operator/api/resource_trigger.h"
#include "operator/api/scale_target.h"
#include "operator/api/trigger_authentication.h"

namespace outrigger::controller::api {
namespace {

using Violations = std::vector<Violation>;

std::string Quote(const std::string& text) {
  return text.empty() ? "nothing" : absl::StrCat("\"", absl::CHexEscape(text), "\"");
}

bool IsOneOf(const std::string& text, std::initializer_list<absl::string_view> known) {
  return std::find(known.begin(), known.end(), text) != known.end();
}

void CheckAtLeast(Violations& out, absl::string_view field, std::optional<int32_t> value,
                  int32_t least) {
  if (!value.has_value() || *value >= least) return;
  out.push_back({std::string(field), absl::StrCat("an integer >= ", least), absl::StrCat(*value)});
}

// The name is also the value of a label on the HPA and in the selector of its metrics.
void CheckName(Violations& out, const ObjectMeta& meta) {
  constexpr size_t kLongestLabelValue = 63;
  if (meta.name.size() <= kLongestLabelValue) return;
  out.push_back({"metadata.name", "at most 63 characters (it is used as a label value)",
                 absl::StrCat(meta.name.size(), " characters")});
}

void CheckTarget(Violations& out, const ScaleTargetRef& ref) {
  if (ref.name.empty()) {
    out.push_back({"spec.scaleTargetRef.name", "the name of the workload to scale", "nothing"});
  }
  if (!ResolveTarget(ref).ok()) {
    out.push_back(
        {"spec.scaleTargetRef.apiVersion", "group/version or version", Quote(ref.api_version)});
  }
}

void CheckNumbers(Violations& out, const ScaledObjectSpec& spec) {
  CheckAtLeast(out, "spec.pollingInterval", spec.polling_interval_seconds, 1);
  CheckAtLeast(out, "spec.initialCooldownPeriod", spec.initial_cooldown_period_seconds, 0);
  CheckAtLeast(out, "spec.cooldownPeriod", spec.cooldown_period_seconds, 0);
  CheckAtLeast(out, "spec.idleReplicaCount", spec.idle_replica_count, 0);
  CheckAtLeast(out, "spec.minReplicaCount", spec.min_replica_count, 0);
  CheckAtLeast(out, "spec.maxReplicaCount", spec.max_replica_count, 1);
}

// KEDA's rule with its quirk: an explicit minReplicaCount of 0 counts as 1 here, an absent one as
// 0.
void CheckReplicaBounds(Violations& out, const ScaledObjectSpec& spec) {
  const int32_t min = spec.min_replica_count.has_value() ? std::max(1, *spec.min_replica_count) : 0;
  const int32_t max = spec.MaxReplicas();
  if (min > max) {
    out.push_back({"spec.minReplicaCount",
                   absl::StrCat("at most maxReplicaCount, which is ", max,
                                spec.max_replica_count ? "" : " by default"),
                   absl::StrCat(min)});
  }
  if (spec.idle_replica_count.has_value() && *spec.idle_replica_count >= min) {
    out.push_back({"spec.idleReplicaCount",
                   absl::StrCat("less than minReplicaCount, which is ", min,
                                spec.min_replica_count ? "" : " by default"),
                   absl::StrCat(*spec.idle_replica_count)});
  }
}

void CheckFallback(Violations& out, const std::optional<Fallback>& fallback) {
  if (!fallback.has_value()) return;
  CheckAtLeast(out, "spec.fallback.failureThreshold", fallback->failure_threshold, 0);
  CheckAtLeast(out, "spec.fallback.replicas", fallback->replicas, 0);
  if (!IsOneOf(fallback->behavior, {"", "static", "currentReplicas", "currentReplicasIfHigher",
                                    "currentReplicasIfLower", "scalingModifiers"})) {
    out.push_back({"spec.fallback.behavior",
                   "static, currentReplicas, currentReplicasIfHigher, currentReplicasIfLower or "
                   "scalingModifiers",
                   Quote(fallback->behavior)});
  }
}

void CheckAuthenticationRef(Violations& out, const std::string& path,
                            const std::optional<AuthenticationRef>& ref) {
  if (!ref.has_value()) return;
  if (ref->name.empty()) {
    out.push_back(
        {path + ".authenticationRef.name", "the name of an authentication object", "nothing"});
  }
  if (!IsOneOf(ref->kind, {"", kTriggerAuthenticationKind, kClusterTriggerAuthenticationKind})) {
    out.push_back(
        {path + ".authenticationRef.kind",
         absl::StrCat(kTriggerAuthenticationKind, " or ", kClusterTriggerAuthenticationKind),
         Quote(ref->kind)});
  }
}

void CheckTrigger(Violations& out, const Trigger& trigger, int32_t index) {
  const std::string path = absl::StrCat("spec.triggers[", index, "]");
  if (trigger.type.empty()) out.push_back({path + ".type", "a trigger type", "nothing"});
  CheckAuthenticationRef(out, path, trigger.authentication_ref);
  if (trigger.use_cached_metrics && IsOneOf(trigger.type, {"cpu", "memory", "cron"})) {
    out.push_back({path + ".useCachedMetrics",
                   absl::StrCat("false for a ", trigger.type, " trigger"), "true"});
  }
  if (IsResourceTrigger(trigger)) {
    for (Violation& violation : ParseResourceTrigger(trigger, index).violations)
      out.push_back(std::move(violation));
  } else if (!IsOneOf(trigger.metric_type, {"", "AverageValue", "Value"})) {
    out.push_back({path + ".metricType",
                   absl::StrCat("AverageValue or Value for a ", trigger.type, " trigger"),
                   Quote(trigger.metric_type)});
  }
}

void CheckTriggers(Violations& out, const std::vector<Trigger>& triggers) {
  if (triggers.empty()) out.push_back({"spec.triggers", "at least one trigger", "none"});
  std::map<std::string, size_t> index_of_name;
  for (size_t i = 0; i < triggers.size(); ++i) {
    CheckTrigger(out, triggers[i], static_cast<int32_t>(i));
    if (triggers[i].name.empty()) continue;
    const auto [first, is_new] = index_of_name.emplace(triggers[i].name, i);
    if (is_new) continue;
    out.push_back({absl::StrCat("spec.triggers[", i, "].name"), "a name that no other trigger has",
                   absl::StrCat(Quote(triggers[i].name), ", the name of spec.triggers[",
                                first->second, "]")});
  }
}

}  // namespace

std::string Violation::ToString() const {
  return absl::StrCat(field, ": want ", wanted, ", got ", got);
}

std::vector<Violation> ValidateScaledObject(const ScaledObject& object) {
  Violations out;
  CheckName(out, object.meta);
  CheckTarget(out, object.spec.scale_target_ref);
  CheckNumbers(out, object.spec);
  CheckReplicaBounds(out, object.spec);
  CheckTriggers(out, object.spec.triggers);
  CheckFallback(out, object.spec.fallback);
  return out;
}

std::string JoinViolations(const std::vector<Violation>& violations) {
  return absl::StrJoin(violations, "; ", [](std::string* out, const Violation& violation) {
    absl::StrAppend(out, violation.ToString());
  });
}

absl::Status ViolationsToStatus(const std::vector<Violation>& violations) {
  return violations.empty() ? absl::OkStatus()
                            : absl::InvalidArgumentError(JoinViolations(violations));
}

}  // namespace outrigger::controller::api
