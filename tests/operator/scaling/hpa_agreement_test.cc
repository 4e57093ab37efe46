// SPDX-License-Identifier: Apache-2.0
#include "operator/scaling/hpa_agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace outrigger::controller::scaling {
namespace {

using State = HpaAgreement::State;

api::HpaMetric External(const char* name, api::MetricTargetType type, double target) {
  api::HpaMetric metric;
  metric.type = api::kExternalMetric;
  metric.name = name;
  metric.target.type = type;
  (type == api::MetricTargetType::kValue ? metric.target.value : metric.target.average_value) =
      api::Quantity::FromDouble(target);
  return metric;
}

api::HorizontalPodAutoscaler Hpa(int32_t current, int32_t desired) {
  api::HorizontalPodAutoscaler hpa;
  hpa.meta.name = "keda-hpa-web";
  hpa.spec.min_replicas = 1;
  hpa.spec.max_replicas = 10;
  hpa.spec.metrics = {External("s0-orders", api::MetricTargetType::kAverageValue, 5)};
  hpa.status.current_replicas = current;
  hpa.status.desired_replicas = desired;
  hpa.status.conditions = {{.type = api::kScalingActive, .status = api::kTrue}};
  return hpa;
}

// ---- the rule ---------------------------------------------------------------------------------

struct WantedCase {
  const char* name;
  api::MetricTargetType type;
  double target;
  double value;
  int32_t current;
  std::optional<int32_t> wanted;
};
class WantedByMetricTest : public testing::TestWithParam<WantedCase> {};

// Shows R31.
TEST_P(WantedByMetricTest, FollowsTheHpa) {
  const api::HpaMetric metric = External("m", GetParam().type, GetParam().target);
  EXPECT_EQ(WantedByMetric(metric.target, GetParam().value, GetParam().current, HpaTolerance()),
            GetParam().wanted);
}

constexpr auto kAverage = api::MetricTargetType::kAverageValue;
constexpr auto kWhole = api::MetricTargetType::kValue;
INSTANTIATE_TEST_SUITE_P(
    Vectors, WantedByMetricTest,
    testing::ValuesIn<WantedCase>({
        {"Ceiling", kAverage, 5, 23, 1, 5},
        {"Exact", kAverage, 5, 25, 1, 5},
        {"WithinToleranceAbove", kAverage, 10, 109, 10, 10},
        {"BeyondToleranceAbove", kAverage, 10, 112, 10, 12},
        {"WithinToleranceBelow", kAverage, 10, 91, 10, 10},
        {"BeyondToleranceBelow", kAverage, 10, 88, 10, 9},
        {"NoWork", kAverage, 5, 0, 4, 0},
        {"FromZero", kAverage, 5, 23, 0, 5},
        {"WholeValue", kWhole, 10, 30, 2, 6},
        {"WholeValueWithinTolerance", kWhole, 10, 10.5, 7, 7},
        // Case B049.
        {"Fractions", kAverage, 0.5, 0.75, 1, 2},
        {"Huge", kAverage, 0.001, 1e300, 1, std::numeric_limits<int32_t>::max()},
        {"NoTarget", kAverage, 0, 5, 1, {}},
    }),
    [](const testing::TestParamInfo<WantedCase>& info) { return std::string(info.param.name); });

TEST(WantedReplicasTest, TheLargestWishWinsWithinTheLimits) {
  api::HorizontalPodAutoscaler hpa = Hpa(1, 1);
  hpa.spec.metrics.push_back(External("s1-mails", kAverage, 1));
  EXPECT_EQ(WantedReplicas(hpa, {{"s0-orders", 23}, {"s1-mails", 3}}), 5);
  EXPECT_EQ(WantedReplicas(hpa, {{"S0-Orders", 23}, {"s1-mails", 7}}), 7);
  EXPECT_EQ(WantedReplicas(hpa, {{"s0-orders", 1000}, {"s1-mails", 7}}), 10);
  EXPECT_EQ(WantedReplicas(hpa, {{"s0-orders", 0}, {"s1-mails", 0}}), 1);
  EXPECT_EQ(WantedReplicas(hpa, {{"s0-orders", 23}}), std::nullopt) << "half known";
}

TEST(WantedReplicasTest, TheToleranceOfTheBehaviourCounts) {
  api::HorizontalPodAutoscaler hpa = Hpa(4, 4);
  EXPECT_EQ(WantedReplicas(hpa, {{"s0-orders", 24}}), 5);
  hpa.spec.behavior = boost::json::parse(R"({"scaleUp":{"tolerance":"0.25"}})");
  EXPECT_EQ(WantedReplicas(hpa, {{"s0-orders", 24}}), 4);
}

// ---- over time --------------------------------------------------------------------------------

class HpaAgreementTest : public testing::Test {
 protected:
  HpaAgreement::Verdict At(int seconds, const api::HorizontalPodAutoscaler& hpa, double value) {
    return agreement_.Observe(hpa, {{"s0-orders", value}},
                              host::SteadyTime(absl::Seconds(seconds)));
  }
  HpaAgreement agreement_;
};

// Shows R31.
TEST_F(HpaAgreementTest, ComplainsAfterTwoSyncs) {
  EXPECT_EQ(At(0, Hpa(5, 5), 23).state, State::kInSync);
  const HpaAgreement::Verdict first = At(10, Hpa(5, 5), 45);
  EXPECT_EQ(first.state, State::kInSync);
  EXPECT_EQ(first.recheck_at, host::SteadyTime(absl::Seconds(40)));
  EXPECT_EQ(At(39, Hpa(5, 5), 45).state, State::kInSync);
  const HpaAgreement::Verdict late = At(40, Hpa(5, 5), 45);
  EXPECT_EQ(late.state, State::kDisagrees);
  EXPECT_TRUE(late.changed);
  EXPECT_EQ(late.message,
            "HPA keda-hpa-web wants 5 replicas, but s0-orders asks for 9 (min 1, max 10)");
}

// Shows R31.
TEST_F(HpaAgreementTest, IsToldOnceAndEndsWithAgreement) {
  At(0, Hpa(5, 5), 45);
  const HpaAgreement::Verdict began = At(30, Hpa(5, 5), 45);
  EXPECT_TRUE(began.changed);
  const HpaAgreement::Verdict later = At(60, Hpa(5, 5), 50);
  EXPECT_EQ(later.state, State::kDisagrees);
  EXPECT_FALSE(later.changed);
  EXPECT_EQ(later.message, began.message) << "a new text would be a write at each poll";
  const HpaAgreement::Verdict end = At(61, Hpa(5, 10), 50);
  EXPECT_EQ(end.state, State::kInSync);
  EXPECT_TRUE(end.changed);
  EXPECT_EQ(end.message, "");
}

TEST_F(HpaAgreementTest, AnHpaThatIsOnItsWayIsNotBlamed) {
  for (int step = 0; step < 8; ++step) {
    EXPECT_EQ(At(step * 25, Hpa(1 + step, 1 + step), 50).state, State::kInSync) << step;
  }
}

TEST_F(HpaAgreementTest, AboveItWaitsForTheScaleDownWindow) {
  EXPECT_EQ(At(0, Hpa(5, 5), 5).state, State::kInSync);
  EXPECT_EQ(At(329, Hpa(5, 5), 5).state, State::kInSync);
  EXPECT_EQ(At(330, Hpa(5, 5), 5).state, State::kDisagrees);
}

TEST_F(HpaAgreementTest, AGivenWindowAndPeriodAreTheWait) {
  api::HorizontalPodAutoscaler hpa = Hpa(5, 5);
  hpa.spec.behavior = boost::json::parse(R"({"scaleDown":{"stabilizationWindowSeconds":10,
      "policies":[{"type":"Pods","value":1,"periodSeconds":60}]}})");
  EXPECT_EQ(At(0, hpa, 5).state, State::kInSync);
  EXPECT_EQ(At(69, hpa, 5).state, State::kInSync);
  EXPECT_EQ(At(70, hpa, 5).state, State::kDisagrees);
}

TEST_F(HpaAgreementTest, ADisabledSideExplainsItself) {
  api::HorizontalPodAutoscaler hpa = Hpa(5, 5);
  hpa.spec.behavior = boost::json::parse(
      R"({"scaleDown":{"selectPolicy":"Disabled"},"scaleUp":{"selectPolicy":"Disabled"}})");
  At(0, hpa, 5);
  EXPECT_EQ(At(1000, hpa, 5).state, State::kInSync);
  At(2000, hpa, 50);
  EXPECT_EQ(At(3000, hpa, 50).state, State::kInSync);
}

TEST_F(HpaAgreementTest, CpuMayWantMoreThanTheScalersDo) {
  api::HorizontalPodAutoscaler hpa = Hpa(5, 5);
  hpa.spec.metrics.push_back({.type = api::kResourceMetric, .name = "cpu"});
  At(0, hpa, 5);
  EXPECT_EQ(At(1000, hpa, 5).state, State::kInSync);
  At(1001, hpa, 45);
  EXPECT_EQ(At(1031, hpa, 45).state, State::kDisagrees) << "but never less";
}

TEST_F(HpaAgreementTest, NothingIsJudgedUnlessTheHpaScales) {
  api::HorizontalPodAutoscaler hpa = Hpa(5, 5);
  hpa.status.conditions[0].status = api::kFalse;
  At(0, hpa, 45);
  EXPECT_EQ(At(1000, hpa, 45).state, State::kUnknown);
}

TEST_F(HpaAgreementTest, AMissingReadingStartsTheWaitAnew) {
  At(0, Hpa(5, 5), 45);
  const HpaAgreement::Verdict gap =
      agreement_.Observe(Hpa(5, 5), {}, host::SteadyTime(absl::Seconds(29)));
  EXPECT_FALSE(gap.recheck_at.has_value());
  EXPECT_EQ(At(30, Hpa(5, 5), 45).state, State::kInSync);
  EXPECT_EQ(At(59, Hpa(5, 5), 45).state, State::kInSync);
  EXPECT_EQ(At(60, Hpa(5, 5), 45).state, State::kDisagrees);
}

// A gap in the readings is no agreement: the condition does not flap with each of them.
TEST_F(HpaAgreementTest, AMissingReadingKeepsADisagreement) {
  At(0, Hpa(5, 5), 45);
  const HpaAgreement::Verdict began = At(30, Hpa(5, 5), 45);
  const HpaAgreement::Verdict gap =
      agreement_.Observe(Hpa(5, 5), {}, host::SteadyTime(absl::Seconds(31)));
  EXPECT_EQ(gap.state, State::kDisagrees);
  EXPECT_FALSE(gap.changed);
  EXPECT_EQ(gap.message, began.message);
}

TEST_F(HpaAgreementTest, AChangeOfSideStartsTheWaitAnew) {
  At(0, Hpa(5, 5), 45);
  At(29, Hpa(5, 5), 25);
  At(30, Hpa(5, 5), 45);
  EXPECT_NE(At(59, Hpa(5, 5), 45).state, State::kDisagrees);
  EXPECT_EQ(At(60, Hpa(5, 5), 45).state, State::kDisagrees);
}

}  // namespace
}  // namespace outrigger::controller::scaling
