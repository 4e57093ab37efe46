// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/time/time.h>

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace outrigger::controller::api {

// Condition types of a ScaledObject. The first four always exist and stand first, in this order.
inline constexpr char kReady[] = "Ready";
inline constexpr char kActive[] = "Active";
inline constexpr char kFallback[] = "Fallback";
inline constexpr char kPaused[] = "Paused";
inline constexpr char kHpaActive[] = "HPAActive";
inline constexpr char kHpaInSync[] =
    "HPAInSync";  // ours: the HPA wants what the scalers' values ask for

inline constexpr char kTrue[] = "True";
inline constexpr char kFalse[] = "False";
inline constexpr char kUnknown[] = "Unknown";

// Reasons, by the condition that carries them. Source: spec/scaledobject.md section 6; the last of
// each group are ours.
namespace reason {
inline constexpr char kScaledObjectReady[] = "ScaledObjectReady";
inline constexpr char kScaledObjectCheckFailed[] = "ScaledObjectCheckFailed";
inline constexpr char kErrorGettingCurrentReplicas[] = "ErrorGettingCurrentReplicas";
inline constexpr char kTriggerError[] = "TriggerError";
inline constexpr char kPartialTriggerError[] = "PartialTriggerError";
inline constexpr char kNotSupported[] = "NotSupported";
inline constexpr char kQuotaExceeded[] = "QuotaExceeded";

inline constexpr char kScalerActive[] = "ScalerActive";
inline constexpr char kScalerNotActive[] = "ScalerNotActive";
inline constexpr char kScalerCooldown[] = "ScalerCooldown";
inline constexpr char kUnknownState[] = "UnknownState";

inline constexpr char kFallbackExists[] = "FallbackExists";
inline constexpr char kNoFallbackFound[] = "NoFallbackFound";

inline constexpr char kScaledObjectPaused[] = "ScaledObjectPaused";
inline constexpr char kScaledObjectUnpaused[] = "ScaledObjectUnpaused";

inline constexpr char kHpaActive[] = "HPAActive";
inline constexpr char kScalingDisabled[] = "ScalingDisabled";
inline constexpr char kHpaMetricsUnavailable[] = "HPAMetricsUnavailable";

inline constexpr char kHpaAgrees[] = "HPAAgrees";
inline constexpr char kHpaDisagrees[] = "HPADisagrees";
}  // namespace reason

// One entry of status.conditions. Also reads the conditions of HPAs, Deployments and whoever else
// follows metav1.
struct Condition {
  std::string type;
  std::string status = kUnknown;  // "True", "False" or "Unknown"
  std::string reason;
  std::string message;
  std::optional<absl::Time> last_transition_time;  // of the status, not of reason or message
  int64_t observed_generation = 0;                 // 0: not given

  friend bool operator==(const Condition&, const Condition&) = default;
};

using Conditions = std::vector<Condition>;

// Puts the condition into the list, appending it when its type is new. `now` becomes
// last_transition_time only when the status changes (or the condition is new). Returns whether
// status, reason, message or generation changed: if false, nothing is to be written.
bool SetCondition(Conditions& conditions, absl::string_view type, absl::string_view status,
                  absl::string_view reason, absl::string_view message, absl::Time now,
                  int64_t generation);

// Null when the list has no such type.
const Condition* FindCondition(const Conditions& conditions, absl::string_view type);
// "Unknown" when the list has no such type.
std::string StatusOf(const Conditions& conditions, absl::string_view type);

// Makes sure that Ready, Active, Fallback (Unknown) and Paused (False) exist. Unlike KEDA it keeps
// what is there. Returns whether one was missing.
bool InitializeConditions(Conditions& conditions, absl::Time now, int64_t generation);

// INVALID_ARGUMENT when `value` is no array of objects; `path` names the field.
absl::StatusOr<Conditions> ParseConditions(absl::string_view path, const boost::json::value& value);
boost::json::value ConditionsToJson(const Conditions& conditions);

}  // namespace outrigger::controller::api
