// SPDX-License-Identifier: Apache-2.0
#include "operator/polling/answer_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "host/base/fake_clock.h"

namespace outrigger::controller::polling {
namespace {

using testing::HasSubstr;

host::MetricsAnswer Answer(const std::vector<std::pair<std::string, double>>& values) {
  host::MetricsAnswer answer;
  for (const auto& [name, value] : values) {
    answer.values.emplace_back();
    answer.values.back().set_name(name);
    answer.values.back().set_value(value);
  }
  return answer;
}

class AnswerRecorderTest : public testing::Test {
 protected:
  AnswerRecorderTest() {
    auto object = std::make_shared<api::ScaledObject>();
    object->meta.name = "orders";
    object->meta.uid = "u";
    object_.object = std::move(object);
    object_.triggers.emplace_back();
    trigger().resolved.type = "redis";
    trigger().specs = {{.name = "a", .target = 1}, {.name = "b", .target = 1}};
  }
  TrackedTrigger& trigger() { return object_.triggers.front(); }
  void Record(const absl::StatusOr<host::MetricsAnswer>& answer, AnswerTo asker = AnswerTo::kPoll) {
    RecordAnswer(health_, object_, trigger(), answer, asker, metrics_);
  }
  const host::HealthRecord& Of(const std::string& metric) {
    return *health_.Find({.uid = "u", .trigger_index = 0, .metric = metric});
  }

  host::FakeClock clock_;
  host::HealthCache health_{clock_, {}};
  runtime::MetricsSink metrics_;
  TrackedObject object_;
};

TEST_F(AnswerRecorderTest, ValuesOfOneMetricAreAddedUpNegativeOnesAsZero) {
  Record(Answer({{"a", 2}, {"a", 3.5}, {"a", -100}, {"b", -1}}));
  EXPECT_EQ(Of("a").value, 5.5);
  EXPECT_EQ(Of("b").value, 0);
  EXPECT_TRUE(Of("b").status.ok());
}

TEST_F(AnswerRecorderTest, AMetricWithoutAValueIsAnErrorNeverZero) {
  Record(Answer({{"a", 2}}));
  EXPECT_TRUE(Of("a").status.ok());
  EXPECT_FALSE(Of("b").status.ok());
  EXPECT_FALSE(Of("b").value.has_value());
  EXPECT_EQ(Of("b").failed_cycles, 1);
}

TEST_F(AnswerRecorderTest, WhatIsNotFiniteIsAnError) {
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    Record(Answer({{"a", bad}, {"b", 1}}));
    EXPECT_EQ(Of("a").status.code(), absl::StatusCode::kInternal);
    EXPECT_TRUE(Of("b").status.ok());
  }
  const double max = std::numeric_limits<double>::max();
  Record(Answer({{"a", max}, {"a", max}, {"b", 1}}));
  EXPECT_THAT(std::string(Of("a").status.message()), HasSubstr("sum is not finite"));
}

// Shows R16. Case B012.
TEST_F(AnswerRecorderTest, OnlyACycleCountsAFailure) {
  const absl::Status down = absl::UnavailableError("down");
  Record(down, AnswerTo::kPoll);
  for (int i = 0; i < 10; ++i) Record(down, AnswerTo::kTest);
  EXPECT_EQ(Of("a").failed_cycles, 1);
  Record(down);
  Record(down);
  EXPECT_EQ(Of("a").failed_cycles, 3);
  Record(Answer({{"a", 1}, {"b", 1}}), AnswerTo::kTest);
  EXPECT_EQ(Of("a").failed_cycles, 0) << "any success resets";
}

TEST_F(AnswerRecorderTest, OfAStatefulTypeOnlyAPollChangesWhatIsKnown) {
  trigger().resolved.stateful = true;
  Record(Answer({{"a", 7}, {"b", 7}}));
  Record(Answer({{"a", 9}, {"b", 9}}), AnswerTo::kTest);
  EXPECT_EQ(Of("a").value, 7);
  Record(absl::UnavailableError("down"), AnswerTo::kTest);
  EXPECT_TRUE(Of("a").status.ok());
  Record(Answer({{"a", 9}, {"b", 9}}));
  EXPECT_EQ(Of("a").value, 9);
}

// What is known is of the trigger as it was.
TEST_F(AnswerRecorderTest, TheFirstTestOfAChangedStatefulTriggerReplacesWhatIsKnown) {
  trigger().resolved.stateful = true;
  Record(Answer({{"a", 7}, {"b", 7}}));
  Record(Answer({{"a", 9}, {"b", 9}}), AnswerTo::kFirstTest);
  EXPECT_EQ(Of("a").value, 9);
}

TEST_F(AnswerRecorderTest, ARefusedTriggerIsNoFailureOfItsScaler) {
  Record(absl::InvalidArgumentError("listLength: want a number"));
  EXPECT_FALSE(trigger().refused.ok());
  EXPECT_EQ(Of("a").failed_cycles, 0);
  EXPECT_FALSE(Of("a").status.ok()) << "it is an error all the same";
}

TEST_F(AnswerRecorderTest, AnUnresolvableCredentialCounts) {
  trigger().resolved.error = absl::InvalidArgumentError("no Secret db");
  Record(trigger().resolved.error);
  EXPECT_TRUE(trigger().refused.ok());
  EXPECT_EQ(Of("a").failed_cycles, 1);
}

// Case B001.
TEST_F(AnswerRecorderTest, ATriggerWithoutASpecCountsItsFailuresToo) {
  trigger().specs.clear();
  for (int i = 0; i < 3; ++i) Record(absl::UnavailableError("plugin away"));
  EXPECT_EQ(Of("").failed_cycles, 3);
}

}  // namespace
}  // namespace outrigger::controller::polling
