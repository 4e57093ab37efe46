// SPDX-License-Identifier: Apache-2.0
#include "operator/api/condition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <string>
#include <vector>

namespace outrigger::controller::api {
namespace {

const absl::Time kNoon = absl::FromUnixSeconds(1'700'000'000);
const absl::Time kLater = kNoon + absl::Seconds(30);

std::vector<std::string> Types(const Conditions& conditions) {
  std::vector<std::string> types;
  for (const Condition& condition : conditions) types.push_back(condition.type);
  return types;
}

// Shows R9.
TEST(ConditionTest, TransitionTimeMovesOnlyWithTheStatus) {
  Conditions conditions;
  EXPECT_TRUE(
      SetCondition(conditions, kReady, kTrue, reason::kScaledObjectReady, "ready", kNoon, 1));
  EXPECT_EQ(FindCondition(conditions, kReady)->last_transition_time, kNoon);

  EXPECT_TRUE(SetCondition(conditions, kReady, kTrue, reason::kScaledObjectReady, "still ready",
                           kLater, 1));
  EXPECT_EQ(FindCondition(conditions, kReady)->last_transition_time, kNoon);

  EXPECT_TRUE(SetCondition(conditions, kReady, kFalse, reason::kTriggerError, "broken", kLater, 1));
  EXPECT_EQ(FindCondition(conditions, kReady)->last_transition_time, kLater);
}

// Shows R3.
TEST(ConditionTest, SettingTheSameAgainIsNoChange) {
  Conditions conditions;
  SetCondition(conditions, kActive, kFalse, reason::kScalerNotActive, "idle", kNoon, 7);
  const Conditions before = conditions;
  EXPECT_FALSE(
      SetCondition(conditions, kActive, kFalse, reason::kScalerNotActive, "idle", kLater, 7));
  EXPECT_EQ(conditions, before);
}

// Shows R10.
TEST(ConditionTest, ANewGenerationIsAChange) {
  Conditions conditions;
  SetCondition(conditions, kActive, kFalse, reason::kScalerNotActive, "idle", kNoon, 7);
  EXPECT_TRUE(
      SetCondition(conditions, kActive, kFalse, reason::kScalerNotActive, "idle", kLater, 8));
  EXPECT_EQ(FindCondition(conditions, kActive)->observed_generation, 8);
  EXPECT_EQ(FindCondition(conditions, kActive)->last_transition_time, kNoon);
}

// Case B016.
TEST(ConditionTest, AFreshObjectHasAllFourWithPausedFalse) {
  Conditions conditions;
  EXPECT_TRUE(InitializeConditions(conditions, kNoon, 1));
  EXPECT_THAT(Types(conditions), testing::ElementsAre("Ready", "Active", "Fallback", "Paused"));
  EXPECT_EQ(StatusOf(conditions, kReady), kUnknown);
  EXPECT_EQ(StatusOf(conditions, kActive), kUnknown);
  EXPECT_EQ(StatusOf(conditions, kFallback), kUnknown);
  EXPECT_EQ(StatusOf(conditions, kPaused), kFalse);
  EXPECT_FALSE(InitializeConditions(conditions, kLater, 1));
}

TEST(ConditionTest, AMissingConditionIsAddedWithoutLosingTheOthers) {
  Conditions conditions;
  SetCondition(conditions, kHpaActive, kTrue, reason::kHpaActive, "scaling", kNoon, 1);
  SetCondition(conditions, kActive, kTrue, reason::kScalerActive, "busy", kNoon, 1);
  EXPECT_TRUE(InitializeConditions(conditions, kLater, 1));
  EXPECT_THAT(Types(conditions),
              testing::ElementsAre("Ready", "Active", "Fallback", "Paused", "HPAActive"));
  EXPECT_EQ(StatusOf(conditions, kActive), kTrue);
}

TEST(ConditionTest, SurvivesJson) {
  Conditions conditions;
  InitializeConditions(conditions, kNoon, 3);
  SetCondition(conditions, kReady, kTrue, reason::kScaledObjectReady, "ready", kLater, 3);
  const absl::StatusOr<Conditions> read =
      ParseConditions("status.conditions", ConditionsToJson(conditions));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, conditions);
  EXPECT_THAT(boost::json::serialize(ConditionsToJson(conditions)),
              testing::HasSubstr("\"lastTransitionTime\":\"2023-11-14T22:13:50Z\""));
}

TEST(ConditionTest, RefusesAListThatIsNone) {
  const absl::Status status =
      ParseConditions("status.conditions", boost::json::parse(R"([{"type":5}])")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "status.conditions[0].type: want a string, got 5");
}

}  // namespace
}  // namespace outrigger::controller::api
