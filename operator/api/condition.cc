// SPDX-License-Identifier: Apache-2.0
#include "operator/api/condition.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

#include "host/base/status.h"
#include "operator/api/object_meta.h"
#include "operator/api/object_reader.h"

namespace outrigger::controller::api {
namespace {

namespace json = boost::json;

// What exists from the start, in the order in which it is listed.
constexpr struct {
  const char* type;
  const char* status;
} kInitialConditions[] = {
    {kReady, kUnknown}, {kActive, kUnknown}, {kFallback, kUnknown}, {kPaused, kFalse}};

constexpr size_t kMostConditions = 6;  // with HPAActive and HPAInSync

absl::StatusOr<Condition> ParseCondition(std::string path, const json::value& value) {
  Condition condition;
  ObjectReader reader(std::move(path), value);
  reader.Read("type", condition.type);
  reader.Require("type", condition.type);
  reader.Read("status", condition.status);
  reader.Read("reason", condition.reason);
  reader.Read("message", condition.message);
  reader.Read("lastTransitionTime", condition.last_transition_time);
  reader.Read("observedGeneration", condition.observed_generation);
  RETURN_IF_ERROR(reader.status());
  return condition;
}

json::object ConditionToJson(const Condition& condition) {
  json::object object{{"type", condition.type}, {"status", condition.status}};
  if (!condition.reason.empty()) object["reason"] = condition.reason;
  if (!condition.message.empty()) object["message"] = condition.message;
  if (condition.last_transition_time.has_value()) {
    object["lastTransitionTime"] = FormatTimestamp(*condition.last_transition_time);
  }
  if (condition.observed_generation != 0)
    object["observedGeneration"] = condition.observed_generation;
  return object;
}

Condition* Find(Conditions& conditions, absl::string_view type) {
  const auto it = std::find_if(conditions.begin(), conditions.end(),
                               [&](const Condition& condition) { return type == condition.type; });
  return it == conditions.end() ? nullptr : &*it;
}

}  // namespace

bool SetCondition(Conditions& conditions, absl::string_view type, absl::string_view status,
                  absl::string_view reason, absl::string_view message, absl::Time now,
                  int64_t generation) {
  Condition wanted{.type = std::string(type),
                   .status = std::string(status),
                   .reason = std::string(reason),
                   .message = std::string(message),
                   .last_transition_time = now,
                   .observed_generation = generation};
  Condition* existing = Find(conditions, type);
  if (existing == nullptr) {
    conditions.push_back(std::move(wanted));
    return true;
  }
  if (existing->status == wanted.status)
    wanted.last_transition_time = existing->last_transition_time;
  if (*existing == wanted) return false;
  *existing = std::move(wanted);
  return true;
}

const Condition* FindCondition(const Conditions& conditions, absl::string_view type) {
  return Find(const_cast<Conditions&>(conditions), type);
}

std::string StatusOf(const Conditions& conditions, absl::string_view type) {
  const Condition* condition = FindCondition(conditions, type);
  return condition == nullptr ? kUnknown : condition->status;
}

bool InitializeConditions(Conditions& conditions, absl::Time now, int64_t generation) {
  Conditions core;
  core.reserve(kMostConditions);
  bool missing = false;
  for (const auto& initial : kInitialConditions) {
    if (Condition* existing = Find(conditions, initial.type); existing != nullptr) {
      core.push_back(*existing);
      continue;
    }
    missing = true;
    core.push_back({.type = initial.type,
                    .status = initial.status,
                    .last_transition_time = now,
                    .observed_generation = generation});
  }
  if (!missing) return false;
  for (Condition& condition : conditions) {
    if (Find(core, condition.type) == nullptr) core.push_back(std::move(condition));
  }
  conditions = std::move(core);
  return true;
}

absl::StatusOr<Conditions> ParseConditions(absl::string_view path, const json::value& value) {
  if (!value.is_array()) return WrongType(path, "an array", value);
  Conditions conditions;
  const json::array& items = value.get_array();
  conditions.reserve(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    ASSIGN_OR_RETURN(Condition condition,
                     ParseCondition(absl::StrCat(path, "[", i, "]"), items[i]));
    conditions.push_back(std::move(condition));
  }
  return conditions;
}

json::value ConditionsToJson(const Conditions& conditions) {
  json::array items;
  for (const Condition& condition : conditions) items.push_back(ConditionToJson(condition));
  return items;
}

}  // namespace outrigger::controller::api
