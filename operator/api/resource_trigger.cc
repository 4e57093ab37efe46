// SPDX-License-Identifier: Apache-2.0
#include "operator/api/resource_trigger.h"

#include <absl/strings/escaping.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <string>
#include <utility>

namespace outrigger::controller::api {
namespace {

constexpr char kValue[] = "value";
constexpr char kContainerName[] = "containerName";
constexpr char kRemovedType[] = "type";  // until KEDA 2.18 the metric type stood here

std::string Quote(const std::string& text) {
  return absl::StrCat("\"", absl::CHexEscape(text), "\"");
}

// Reads one trigger, collecting every violation on the way.
class Parser {
 public:
  Parser(const Trigger& trigger, int32_t index)
      : trigger_(trigger), path_(absl::StrCat("spec.triggers[", index, "]")) {}

  ResourceTrigger Run() && {
    parsed_.metric.name = trigger_.type;
    ReadContainer();
    RefuseRemovedType();
    if (trigger_.metric_type == MetricTargetTypeName(MetricTargetType::kUtilization)) {
      ReadUtilization();
    } else if (trigger_.metric_type == MetricTargetTypeName(MetricTargetType::kAverageValue)) {
      ReadAverageValue();
    } else {
      Refuse("metricType",
             absl::StrCat("Utilization or AverageValue for a ", trigger_.type, " trigger"),
             trigger_.metric_type.empty() ? "nothing" : Quote(trigger_.metric_type));
    }
    return std::move(parsed_);
  }

 private:
  const std::string* Find(const char* key) const {
    const auto found = trigger_.metadata.find(key);
    return found == trigger_.metadata.end() || found->second.empty() ? nullptr : &found->second;
  }

  void Refuse(absl::string_view field, std::string wanted, std::string got) {
    parsed_.violations.push_back(
        {absl::StrCat(path_, ".", field), std::move(wanted), std::move(got)});
  }

  void ReadContainer() {
    const std::string* container = Find(kContainerName);
    parsed_.metric.type = container == nullptr ? kResourceMetric : kContainerResourceMetric;
    if (container != nullptr) parsed_.metric.container = *container;
  }

  void RefuseRemovedType() {
    if (trigger_.metadata.contains(kRemovedType)) {
      Refuse("metadata.type",
             "no such parameter (removed in KEDA 2.18; use metricType of the trigger)",
             Quote(trigger_.metadata.at(kRemovedType)));
    }
  }

  void ReadUtilization() {
    parsed_.metric.target.type = MetricTargetType::kUtilization;
    const std::string* text = Find(kValue);
    int32_t percent = 0;
    if (text == nullptr || !absl::SimpleAtoi(*text, &percent) || percent <= 0) {
      return Refuse("metadata.value", "a percentage as an integer > 0",
                    text == nullptr ? "nothing" : Quote(*text));
    }
    parsed_.metric.target.average_utilization = percent;
  }

  void ReadAverageValue() {
    parsed_.metric.target.type = MetricTargetType::kAverageValue;
    const std::string* text = Find(kValue);
    absl::StatusOr<Quantity> quantity = Quantity::Parse(text == nullptr ? "" : *text);
    if (!quantity.ok() || quantity->IsZero() || quantity->IsNegative()) {
      return Refuse("metadata.value", "a quantity > 0, such as 500m or 1Gi",
                    text == nullptr ? "nothing" : Quote(*text));
    }
    parsed_.metric.target.average_value = *std::move(quantity);
  }

  const Trigger& trigger_;
  const std::string path_;
  ResourceTrigger parsed_;
};

}  // namespace

ResourceTrigger ParseResourceTrigger(const Trigger& trigger, int32_t trigger_index) {
  return Parser(trigger, trigger_index).Run();
}

}  // namespace outrigger::controller::api
