// SPDX-License-Identifier: Apache-2.0
#include "operator/scaling/hpa_behavior.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <utility>

namespace outrigger::controller::scaling {
namespace {

namespace json = boost::json;

const json::value* Member(const json::value* value, const char* key) {
  return value != nullptr && value->is_object() ? value->get_object().if_contains(key) : nullptr;
}

std::optional<int64_t> Integer(const json::value* value) {
  if (value == nullptr || !value->is_int64()) return std::nullopt;
  return value->get_int64();
}

std::optional<std::string> Text(const json::value* value) {
  if (value == nullptr || !value->is_string()) return std::nullopt;
  return std::string(value->get_string().data(), value->get_string().size());
}

// A quantity may come as text or as a number; the API server prints it as text.
std::optional<api::Quantity> QuantityOf(const json::value* value) {
  if (value == nullptr) return std::nullopt;
  if (value->is_int64()) return api::Quantity::FromInt(value->get_int64());
  if (value->is_double()) return api::Quantity::FromDouble(value->get_double());
  const std::optional<std::string> text = Text(value);
  if (!text.has_value()) return std::nullopt;
  absl::StatusOr<api::Quantity> quantity = api::Quantity::Parse(*text);
  if (!quantity.ok()) return std::nullopt;
  return *std::move(quantity);
}

std::vector<HpaBehavior::Policy> PoliciesOf(const json::array& items) {
  std::vector<HpaBehavior::Policy> policies;
  for (const json::value& item : items) {
    policies.push_back({.type = Text(Member(&item, "type")).value_or(""),
                        .value = Integer(Member(&item, "value")).value_or(0),
                        .period_seconds = Integer(Member(&item, "periodSeconds")).value_or(0)});
  }
  return policies;
}

void Overlay(const json::value* given, HpaBehavior::Rules& rules) {
  if (const auto window = Integer(Member(given, "stabilizationWindowSeconds"))) {
    rules.stabilization_window_seconds = window;
  }
  if (auto policy = Text(Member(given, "selectPolicy"))) rules.select_policy = *std::move(policy);
  if (const json::value* policies = Member(given, "policies");
      policies != nullptr && policies->is_array()) {
    rules.policies = PoliciesOf(policies->get_array());
  }
  if (auto tolerance = QuantityOf(Member(given, "tolerance")))
    rules.tolerance = *std::move(tolerance);
}

}  // namespace

absl::Duration HpaBehavior::Rules::LongestPeriod() const {
  int64_t longest = 0;
  for (const Policy& policy : policies) longest = std::max(longest, policy.period_seconds);
  return absl::Seconds(longest);
}

HpaBehavior HpaBehavior::WithDefaults(const json::value& behavior) {
  HpaBehavior filled;
  filled.scale_up.stabilization_window_seconds = 0;
  filled.scale_up.policies = {{.type = "Pods", .value = 4, .period_seconds = 15},
                              {.type = "Percent", .value = 100, .period_seconds = 15}};
  filled.scale_down.policies = {{.type = "Percent", .value = 100, .period_seconds = 15}};
  Overlay(Member(&behavior, "scaleUp"), filled.scale_up);
  Overlay(Member(&behavior, "scaleDown"), filled.scale_down);
  return filled;
}

}  // namespace outrigger::controller::scaling
