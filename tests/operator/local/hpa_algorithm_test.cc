// SPDX-License-Identifier: Apache-2.0
#include "operator/local/hpa_algorithm.h"

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <limits>
#include <string>
#include <vector>

namespace outrigger::controller::local {
namespace {

constexpr int64_t kMax64 = std::numeric_limits<int64_t>::max();
constexpr int32_t kMax32 = std::numeric_limits<int32_t>::max();

// Expectations of both tables follow k8s.io/kubernetes v1.36
// pkg/controller/podautoscaler/replica_calculator_test.go.
struct PerPodCase {
  const char* name;
  int32_t status_replicas;
  int64_t target_milli;
  std::vector<int64_t> values_milli;
  int32_t want;
  int64_t want_usage_milli;
};
class ExternalPerPodTest : public testing::TestWithParam<PerPodCase> {};

TEST_P(ExternalPerPodTest, WantsCeilingOfSumOverTarget) {
  const MetricWish wish = ExternalPerPodWish(GetParam().status_replicas, GetParam().target_milli,
                                             GetParam().values_milli, {});
  EXPECT_EQ(wish.replicas, GetParam().want);
  EXPECT_EQ(wish.usage_milli, GetParam().want_usage_milli);
}

INSTANTIATE_TEST_SUITE_P(Upstream, ExternalPerPodTest,
                         testing::ValuesIn<PerPodCase>({
                             {"ScaleUp", 3, 2'150, {8'600}, 4, 2'867},
                             {"SumsItems", 3, 2'150, {5'000, 3'600}, 4, 2'867},
                             {"ScaleDown", 5, 5'000, {8'600}, 2, 1'720},
                             {"WithinToleranceAbove", 3, 1'000, {3'300}, 3, 1'100},
                             {"AboveTolerance", 3, 1'000, {3'301}, 4, 1'101},
                             {"WithinToleranceBelow", 10, 1'000, {9'000}, 10, 900},
                             {"BelowTolerance", 10, 1'000, {8'999}, 9, 900},
                             {"DemoOfTheReadme", 1, 5'000, {23'000}, 5, 23'000},
                             {"Zero", 4, 5'000, {0}, 0, 0},
                             {"NoItems", 4, 5'000, {}, 0, 0},
                             {"NoReplicasYet", 0, 5'000, {23'000}, 5, kMax64},
                             {"OverflowOfTheSum", 1, 1'000, {kMax64, kMax64}, kMax32, kMax64},
                             {"MoreThanInt32", 1, 1, {kMax64 / 2}, kMax32, kMax64 / 2 + 1},
                         }),
                         [](const testing::TestParamInfo<PerPodCase>& info) {
                           return std::string(info.param.name);
                         });

struct ValueCase {
  const char* name;
  int32_t spec_replicas;
  int32_t ready_pods;
  int64_t target_milli;
  std::vector<int64_t> values_milli;
  int32_t want;
};
class ExternalValueTest : public testing::TestWithParam<ValueCase> {};

TEST_P(ExternalValueTest, WantsRatioTimesReadyPods) {
  const MetricWish wish = ExternalValueWish(GetParam().spec_replicas, GetParam().ready_pods,
                                            GetParam().target_milli, GetParam().values_milli, {});
  EXPECT_EQ(wish.replicas, GetParam().want);
}

INSTANTIATE_TEST_SUITE_P(Upstream, ExternalValueTest,
                         testing::ValuesIn<ValueCase>({
                             {"ScaleUp", 3, 3, 4'400, {8'600}, 6},
                             {"IgnoresUnreadyPods", 3, 2, 4'400, {8'600}, 4},
                             {"ScaleDown", 5, 5, 14'334, {8'600}, 3},
                             {"WithinTolerance", 3, 3, 10'000, {10'999}, 3},
                             {"WithinToleranceKeepsSpec", 3, 0, 10'000, {9'000}, 3},
                             {"NoReadyPods", 3, 0, 10'000, {30'000}, 0},
                             {"FromZero", 0, 0, 10'000, {25'000}, 3},
                             {"FromZeroIgnoresTolerance", 0, 0, 10'000, {10'500}, 2},
                             {"MoreThanInt32", 1'000, 1'000, 1, {kMax64}, kMax32},
                         }),
                         [](const testing::TestParamInfo<ValueCase>& info) {
                           return std::string(info.param.name);
                         });

// One sync of a sequence: `at` seconds from the start the metrics wish for `wish`.
struct Step {
  int at;
  int32_t wish;
  int32_t want;
  const char* able;     // reason of AbleToScale
  const char* limited;  // reason of ScalingLimited
  bool is_limited = false;
};
struct Sequence {
  const char* name;
  int32_t start;
  int32_t min;
  int32_t max;
  const char* behavior;  // "" : none
  std::vector<Step> steps;
};
class NormalizeTest : public testing::TestWithParam<Sequence> {};

TEST_P(NormalizeTest, AppliesWindowsPoliciesAndLimits) {
  HpaLimits limits{.min_replicas = GetParam().min, .max_replicas = GetParam().max};
  if (*GetParam().behavior != '\0') {
    const auto behavior =
        ParseHpaBehavior(boost::json::parse(GetParam().behavior), limits.down_window);
    ASSERT_TRUE(behavior.ok()) << behavior.status();
    limits.behavior = *behavior;
  }
  const host::SteadyTime start(absl::Hours(1));
  HpaHistory history{.recommendations = {{GetParam().start, start}}};
  int32_t current = GetParam().start;
  for (const Step& step : GetParam().steps) {
    SCOPED_TRACE(step.at);
    const host::SteadyTime now = start + absl::Seconds(step.at);
    const NormalizedReplicas result = NormalizeReplicas(limits, current, step.wish, now, history);
    EXPECT_EQ(result.replicas, step.want);
    EXPECT_EQ(result.able_to_scale.reason, step.able);
    EXPECT_EQ(result.scaling_limited.reason, step.limited);
    EXPECT_EQ(result.scaling_limited.value, step.is_limited);
    if (result.replicas == current) continue;
    StoreScaleEvent(limits, current, result.replicas, now, history);
    current = result.replicas;
  }
}

constexpr char kReady[] = "ReadyForNewScale";
constexpr char kHeldDown[] = "ScaleDownStabilized";
constexpr char kHeldUp[] = "ScaleUpStabilized";
constexpr char kFine[] = "DesiredWithinRange";

INSTANTIATE_TEST_SUITE_P(
    Sequences, NormalizeTest,
    testing::ValuesIn<Sequence>({
        {"DoublesAtMostAndAtLeastToFour",
         1,
         1,
         100,
         "",
         {{15, 50, 4, kReady, "ScaleUpLimit", true},
          {30, 50, 8, kReady, "ScaleUpLimit", true},
          {45, 50, 16, kReady, "ScaleUpLimit", true},
          {60, 50, 32, kReady, "ScaleUpLimit", true},
          {75, 40, 50, kHeldDown, kFine}}},
        {"ClampsToMinAndMax",
         5,
         2,
         6,
         "",
         {{15, 9, 6, kReady, "TooManyReplicas", true},
          {600, 0, 2, kReady, "TooFewReplicas", true}}},
        {"HoldsForFiveMinutesBeforeScalingDown",
         8,
         1,
         10,
         "",
         {{15, 2, 8, kHeldDown, kFine},
          {300, 3, 8, kHeldDown, kFine},
          {301, 2, 3, kHeldDown, kFine},
          {615, 2, 2, kReady, kFine}}},
        {"WindowOfZeroScalesDownAtOnce",
         8,
         1,
         10,
         R"({"scaleDown":{"stabilizationWindowSeconds":0}})",
         {{15, 2, 2, kReady, kFine}, {30, 8, 6, kReady, "ScaleUpLimit", true}}},
        {"WindowForScalingUpTakesTheLowest",
         2,
         1,
         20,
         R"({"scaleUp":{"stabilizationWindowSeconds":60}})",
         {{15, 6, 2, kHeldUp, kFine},
          {30, 5, 2, kHeldUp, kFine},
          {61, 6, 5, kHeldUp, kFine},
          {90, 7, 6, kHeldUp, kFine}}},
        {"DefaultUpRulesTakeTheLargerOfFourPodsAndDouble",
         1,
         1,
         100,
         R"({})",
         {{15, 50, 5, kReady, "ScaleUpLimit", true},
          {20, 50, 5, kReady, "ScaleUpLimit", true},
          {30, 50, 10, kReady, "ScaleUpLimit", true}}},
        {"PodsPolicyPerPeriod",
         10,
         1,
         100,
         R"({"scaleDown":{"stabilizationWindowSeconds":0,
             "policies":[{"type":"Pods","value":2,"periodSeconds":60}]}})",
         {{15, 1, 8, kReady, "ScaleDownLimit", true},
          {30, 1, 8, kReady, "ScaleDownLimit", true},
          {75, 1, 6, kReady, "ScaleDownLimit", true}}},
        {"SelectMinTakesTheSmallerChange",
         10,
         1,
         100,
         R"({"scaleDown":{"stabilizationWindowSeconds":0,"selectPolicy":"Min",
             "policies":[{"type":"Pods","value":2,"periodSeconds":15},
                         {"type":"Percent","value":50,"periodSeconds":15}]}})",
         {{15, 1, 8, kReady, "ScaleDownLimit", true}}},
        {"SelectMaxTakesTheLargerChange",
         10,
         1,
         100,
         R"({"scaleDown":{"stabilizationWindowSeconds":0,
             "policies":[{"type":"Pods","value":2,"periodSeconds":15},
                         {"type":"Percent","value":50,"periodSeconds":15}]}})",
         {{15, 1, 5, kReady, "ScaleDownLimit", true}}},
        {"DisabledNeverScalesDown",
         10,
         1,
         100,
         R"({"scaleDown":{"stabilizationWindowSeconds":0,"selectPolicy":"Disabled"}})",
         {{15, 1, 10, kReady, "ScaleDownLimit", true}, {30, 12, 12, kReady, kFine}}},
        {"DisabledNeverScalesUp",
         3,
         1,
         100,
         R"({"scaleUp":{"selectPolicy":"Disabled"}})",
         {{15, 9, 3, kReady, "ScaleUpLimit", true}}},
        {"SmallPercentageStillAddsOne",
         3,
         1,
         100,
         R"({"scaleUp":{"policies":[{"type":"Percent","value":1,"periodSeconds":15}]}})",
         {{15, 9, 4, kReady, "ScaleUpLimit", true}}},
    }),
    [](const testing::TestParamInfo<Sequence>& info) { return std::string(info.param.name); });

struct WrongBehavior {
  const char* name;
  const char* behavior;
  const char* message;  // behind "spec.behavior."
};
class WrongBehaviorTest : public testing::TestWithParam<WrongBehavior> {};

// The API server refuses all of them.
TEST_P(WrongBehaviorTest, NamesPathWantedAndGot) {
  const absl::Status status =
      ParseHpaBehavior(boost::json::parse(GetParam().behavior), absl::Minutes(5)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), absl::StrCat("spec.behavior.", GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Behaviors, WrongBehaviorTest,
    testing::ValuesIn<WrongBehavior>({
        {"SelectPolicy", R"({"scaleUp":{"selectPolicy":"Most"}})",
         R"(scaleUp.selectPolicy: want Max, Min or Disabled, got "Most")"},
        {"PolicyType", R"({"scaleDown":{"policies":[{"type":"Nodes"}]}})",
         R"(scaleDown.policies[0].type: want Pods or Percent, got "Nodes")"},
        {"NoPolicies", R"({"scaleUp":{"policies":[]}})",
         "scaleUp.policies: want at least one policy, got none"},
        {"PolicyValue", R"({"scaleUp":{"policies":[{"type":"Pods","periodSeconds":15}]}})",
         "scaleUp.policies[0].value: want an integer >= 1, got 0"},
        {"PolicyPeriod",
         R"({"scaleUp":{"policies":[{"type":"Pods","value":1,"periodSeconds":1801}]}})",
         "scaleUp.policies[0].periodSeconds: want an integer from 1 to 1800, got 1801"},
        {"Window", R"({"scaleDown":{"stabilizationWindowSeconds":3601}})",
         "scaleDown.stabilizationWindowSeconds: want an integer from 0 to 3600, got 3601"},
        {"ToleranceIsNoQuantity", R"({"scaleUp":{"tolerance":"some"}})",
         R"(scaleUp.tolerance: want a quantity >= 0, got "some")"},
        {"NegativeTolerance", R"({"scaleUp":{"tolerance":-1}})",
         "scaleUp.tolerance: want a quantity >= 0, got -1"},
    }),
    [](const testing::TestParamInfo<WrongBehavior>& info) { return std::string(info.param.name); });

TEST(HpaBehaviorTest, AToleranceIsATextOrANumber) {
  const auto behavior = ParseHpaBehavior(
      boost::json::parse(R"({"scaleUp":{"tolerance":"50m"},"scaleDown":{"tolerance":0.25}})"),
      absl::Minutes(5));
  ASSERT_TRUE(behavior.ok()) << behavior.status();
  EXPECT_EQ(behavior->scale_up.tolerance, 0.05);
  EXPECT_EQ(behavior->scale_down.tolerance, 0.25);
}

}  // namespace
}  // namespace outrigger::controller::local
