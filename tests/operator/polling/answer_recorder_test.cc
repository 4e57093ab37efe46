// SPDX-License-Identifier: Apache-2.0
#include "operator/polling/answer_recorder.h"

#include <absl/strings/str_cat.h>
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

using testing::ElementsAre;
using testing::HasSubstr;

struct ToldMetrics : runtime::MetricsSink {
  void ScalerValue(const runtime::ScalerLabels& labels, double value) override {
    told.push_back(absl::StrCat("value ", labels.metric, " ", value));
  }
  void ScalerLatency(const runtime::ScalerLabels& labels, absl::Duration took) override {
    told.push_back(absl::StrCat("latency ", labels.metric, " ", absl::FormatDuration(took)));
  }
  void ScalerActive(const runtime::ScalerLabels& labels, bool active) override {
    told.push_back(absl::StrCat("active ", labels.metric, " ", active));
  }
  std::vector<std::string> told;
};

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
    recorder_.Record(object_, trigger(), answer, asker, std::nullopt);
  }
  const host::HealthRecord& Of(const std::string& metric) {
    return *health_.Find({.uid = "u", .trigger_index = 0, .metric = metric});
  }

  host::FakeClock clock_;
  host::HealthCache health_{clock_, {}};
  ToldMetrics metrics_;
  std::vector<std::string> negative_;
  AnswerRecorder recorder_{
      health_, metrics_,
      [this](const api::NamespacedName& key, const std::string& metric, double value) {
        negative_.push_back(absl::StrCat(key.name, " ", metric, " ", value));
      }};
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

// Shows R26. Whoever asked: a connection test is as good as a poll, and puts it off.
TEST_F(AnswerRecorderTest, EachAnswerIsToldInTheMetrics) {
  for (const AnswerTo asker : {AnswerTo::kPoll, AnswerTo::kTest, AnswerTo::kFirstTest}) {
    metrics_.told.clear();
    host::MetricsAnswer answer = Answer({{"a", 2}, {"b", -1}});
    answer.active = true;
    recorder_.Record(object_, trigger(), answer, asker, absl::Milliseconds(20));
    EXPECT_THAT(metrics_.told, ElementsAre("latency s0-a 20ms", "value s0-a 2", "active s0-a 1",
                                           "latency s0-b 20ms", "value s0-b 0", "active s0-b 1"));
  }
  EXPECT_THAT(negative_, ElementsAre("orders b -1"));
}

// Case B001.
TEST_F(AnswerRecorderTest, ATriggerWithoutASpecCountsItsFailuresToo) {
  trigger().specs.clear();
  for (int i = 0; i < 3; ++i) Record(absl::UnavailableError("plugin away"));
  EXPECT_EQ(Of("").failed_cycles, 3);
}

}  // namespace
}  // namespace outrigger::controller::polling
