// SPDX-License-Identifier: Apache-2.0
#include "operator/api/resource_trigger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace outrigger::controller::api {
namespace {

using Metadata = std::map<std::string, std::string>;

Trigger Cpu(const char* metric_type, Metadata metadata) {
  return {.type = "cpu", .metadata = std::move(metadata), .metric_type = metric_type};
}

TEST(ResourceTriggerTest, UtilizationIsAPercentage) {
  const ResourceTrigger parsed = ParseResourceTrigger(Cpu("Utilization", {{"value", "60"}}), 0);
  EXPECT_EQ(JoinViolations(parsed.violations), "");
  EXPECT_EQ(parsed.metric.type, kResourceMetric);
  EXPECT_EQ(parsed.metric.name, "cpu");
  EXPECT_EQ(parsed.metric.target.average_utilization, 60);
}

TEST(ResourceTriggerTest, AverageValueIsAQuantity) {
  const ResourceTrigger parsed = ParseResourceTrigger(Cpu("AverageValue", {{"value", "250m"}}), 0);
  EXPECT_EQ(JoinViolations(parsed.violations), "");
  EXPECT_EQ(parsed.metric.target.average_value->ToString(), "250m");
}

TEST(ResourceTriggerTest, ContainerNameMakesItAContainerResource) {
  const ResourceTrigger parsed =
      ParseResourceTrigger(Cpu("Utilization", {{"value", "60"}, {"containerName", "app"}}), 0);
  EXPECT_EQ(parsed.metric.type, kContainerResourceMetric);
  EXPECT_EQ(parsed.metric.container, "app");
}

struct Case {
  const char* name;
  const char* metric_type;
  Metadata metadata;
  const char* message;
};
class ResourceTriggerRefusedTest : public testing::TestWithParam<Case> {};

TEST_P(ResourceTriggerRefusedTest, NamesEveryViolation) {
  const ResourceTrigger parsed =
      ParseResourceTrigger(Cpu(GetParam().metric_type, GetParam().metadata), 2);
  EXPECT_EQ(JoinViolations(parsed.violations), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Triggers, ResourceTriggerRefusedTest,
    testing::ValuesIn<Case>({
        {"NoMetricType",
         "",
         {{"value", "60"}},
         "spec.triggers[2].metricType: want Utilization or AverageValue for a cpu trigger, got "
         "nothing"},
        {"Value",
         "Value",
         {{"value", "60"}},
         "spec.triggers[2].metricType: want Utilization or AverageValue for a cpu trigger, got "
         "\"Value\""},
        {"NoValue",
         "Utilization",
         {},
         "spec.triggers[2].metadata.value: want a percentage as an integer > 0, got nothing"},
        {"PercentSign",
         "Utilization",
         {{"value", "60%"}},
         "spec.triggers[2].metadata.value: want a percentage as an integer > 0, got \"60%\""},
        {"BadQuantity",
         "AverageValue",
         {{"value", "1Gb"}},
         "spec.triggers[2].metadata.value: want a quantity > 0, such as 500m or 1Gi, got \"1Gb\""},
        {"ZeroQuantity",
         "AverageValue",
         {{"value", "0"}},
         "spec.triggers[2].metadata.value: want a quantity > 0, such as 500m or 1Gi, got \"0\""},
        {"RemovedTypeAndMore",
         "",
         {{"type", "Utilization"}},
         "spec.triggers[2].metadata.type: want no such parameter (removed in KEDA 2.18; use "
         "metricType of the trigger), "
         "got \"Utilization\"; spec.triggers[2].metricType: want Utilization or AverageValue for a "
         "cpu trigger, got nothing"},
    }),
    [](const testing::TestParamInfo<Case>& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace outrigger::controller::api
