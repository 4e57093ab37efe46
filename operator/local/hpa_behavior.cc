// SPDX-License-Identifier: Apache-2.0
#include "operator/local/hpa_behavior.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "host/base/status.h"
#include "operator/api/object_reader.h"
#include "operator/api/quantity.h"

namespace outrigger::controller::local {
namespace {

namespace json = boost::json;
using api::ObjectReader;
using Policy = HpaScalingRules::Policy;
using Select = HpaScalingRules::Select;

constexpr absl::Duration kDefaultPeriod = absl::Seconds(15);
constexpr int32_t kMaxPeriodSeconds = 1800;
constexpr int32_t kMaxWindowSeconds = 3600;

absl::Status CheckRange(const ObjectReader& reader, absl::string_view key, int32_t value,
                        int32_t least, int32_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  const std::string wanted = most == std::numeric_limits<int32_t>::max()
                                 ? absl::StrCat(">= ", least)
                                 : absl::StrCat("from ", least, " to ", most);
  return absl::InvalidArgumentError(
      absl::StrCat(reader.PathOf(key), ": want an integer ", wanted, ", got ", value));
}

absl::StatusOr<Policy> ParsePolicy(std::string path, const json::value& value) {
  ObjectReader reader(std::move(path), value);
  std::string type;
  Policy policy;
  int32_t period_seconds = 0;
  reader.Read("type", type);
  reader.Read("value", policy.value);
  reader.Read("periodSeconds", period_seconds);
  RETURN_IF_ERROR(reader.status());
  policy.period = absl::Seconds(period_seconds);
  if (type == "Pods") {
    policy.type = Policy::Type::kPods;
  } else if (type != "Percent") {
    return absl::InvalidArgumentError(
        absl::StrCat(reader.PathOf("type"), ": want Pods or Percent, got \"", type, "\""));
  }
  RETURN_IF_ERROR(
      CheckRange(reader, "value", policy.value, 1, std::numeric_limits<int32_t>::max()));
  RETURN_IF_ERROR(CheckRange(reader, "periodSeconds", period_seconds, 1, kMaxPeriodSeconds));
  return policy;
}

absl::Status ReadPolicies(ObjectReader& reader, std::vector<Policy>& out) {
  const json::array* items = reader.FindArray("policies");
  if (items == nullptr) return reader.status();
  if (items->empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(reader.PathOf("policies"), ": want at least one policy, got none"));
  }
  out.clear();
  for (size_t i = 0; i < items->size(); ++i) {
    ASSIGN_OR_RETURN(Policy policy,
                     ParsePolicy(reader.PathOf(absl::StrCat("policies[", i, "]")), (*items)[i]));
    out.push_back(policy);
  }
  return absl::OkStatus();
}

absl::Status ReadSelect(ObjectReader& reader, Select& out) {
  std::string select = "Max";
  reader.Read("selectPolicy", select);
  RETURN_IF_ERROR(reader.status());
  if (select == "Min") {
    out = Select::kMin;
  } else if (select == "Disabled") {
    out = Select::kDisabled;
  } else if (select != "Max") {
    return absl::InvalidArgumentError(absl::StrCat(
        reader.PathOf("selectPolicy"), ": want Max, Min or Disabled, got \"", select, "\""));
  }
  return absl::OkStatus();
}

// A quantity may come as text or as a number.
absl::Status ReadTolerance(const ObjectReader& reader, std::optional<double>& out) {
  const json::value* value = reader.Find("tolerance");
  if (value == nullptr) return absl::OkStatus();
  absl::StatusOr<api::Quantity> quantity;
  if (value->is_int64()) {
    quantity = api::Quantity::FromInt(value->get_int64());
  } else if (value->is_double()) {
    quantity = api::Quantity::FromDouble(value->get_double());
  } else if (value->is_string()) {
    const json::string& text = value->get_string();
    quantity = api::Quantity::Parse({text.data(), text.size()});
  }
  if (!quantity.ok() || quantity->IsNegative()) {
    return api::WrongType(reader.PathOf("tolerance"), "a quantity >= 0", *value);
  }
  out = quantity->AsDouble();
  return absl::OkStatus();
}

absl::Status ReadRules(ObjectReader& behavior, absl::string_view key, HpaScalingRules& rules) {
  const json::value* value = behavior.FindObject(key);
  if (value == nullptr) return behavior.status();
  ObjectReader reader(behavior.PathOf(key), *value);
  std::optional<int32_t> window_seconds;
  reader.Read("stabilizationWindowSeconds", window_seconds);
  RETURN_IF_ERROR(ReadSelect(reader, rules.select));
  RETURN_IF_ERROR(ReadPolicies(reader, rules.policies));
  if (window_seconds.has_value()) {
    RETURN_IF_ERROR(
        CheckRange(reader, "stabilizationWindowSeconds", *window_seconds, 0, kMaxWindowSeconds));
    rules.stabilization_window = absl::Seconds(*window_seconds);
  }
  return ReadTolerance(reader, rules.tolerance);
}

}  // namespace

absl::Duration HpaScalingRules::LongestPeriod() const {
  absl::Duration longest;
  for (const Policy& policy : policies) longest = std::max(longest, policy.period);
  return longest;
}

absl::StatusOr<HpaBehavior> ParseHpaBehavior(const json::value& behavior,
                                             absl::Duration down_window, absl::string_view path) {
  HpaBehavior result;
  result.scale_up.policies = {{Policy::Type::kPods, 4, kDefaultPeriod},
                              {Policy::Type::kPercent, 100, kDefaultPeriod}};
  result.scale_down.policies = {{Policy::Type::kPercent, 100, kDefaultPeriod}};
  result.scale_down.stabilization_window = down_window;
  ObjectReader reader(std::string(path), behavior);
  RETURN_IF_ERROR(reader.status());
  RETURN_IF_ERROR(ReadRules(reader, "scaleUp", result.scale_up));
  RETURN_IF_ERROR(ReadRules(reader, "scaleDown", result.scale_down));
  return result;
}

}  // namespace outrigger::controller::local
