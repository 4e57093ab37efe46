// SPDX-License-Identifier: Apache-2.0
#include "operator/polling/poll_engine.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/operator/support/memory_cluster.h"
#include "tests/operator/support/scripted_scalers.h"

namespace outrigger::controller::polling {
namespace {

using api::NamespacedName;
using testing::ElementsAre;
using testing::IsEmpty;

std::string TriggerJson(const std::string& script, const std::string& extra = "") {
  return absl::StrCat(R"({"type":"redis","metadata":{"script":")", script, "\"", extra, "}}");
}

// The engine over scripted scalers; a "decision" writes down when an object was decided.
struct ScalerSink : runtime::MetricsSink {
  void ScalerLatency(const runtime::ScalerLabels& labels, absl::Duration took) override {
    latency[absl::StrCat(labels.object.name, "/", labels.metric)] = took;
  }
  void ScalerValue(const runtime::ScalerLabels& labels, double of_metric) override {
    value[absl::StrCat(labels.object.name, "/", labels.metric)] = of_metric;
  }
  std::map<std::string, absl::Duration> latency;
  std::map<std::string, double> value;
};

class PollEngineTest : public testing::Test {
 protected:
  PollEngineTest() { scalers_.Connect("redis", {"redis"}); }
  ~PollEngineTest() override {
    engine_.Stop();
    loop_.Advance(absl::Minutes(10));
    EXPECT_TRUE(ended_ || !started_) << "Run() did not return";
  }

  void Start() {
    started_ = true;
    loop_.Spawn(RunEngine());
    loop_.Settle();
  }
  host::Task<void> RunEngine() {
    co_await engine_.Run();
    ended_ = true;
  }
  host::Task<void> Decide(NamespacedName key) {
    decided_[key.name].push_back(Now());
    co_return;
  }
  int64_t Now() const { return absl::ToInt64Milliseconds(loop_.clock().SteadyNow().since_epoch()); }

  // Makes a ScaledObject and tracks it as the reconciler would, without a poll yet.
  TrackedObject& Track(const std::string& name, const std::string& triggers,
                       const std::string& spec = "") {
    if (cluster_.Get(kube::ScaledObjects(), name).is_null()) {
      cluster_.CreateScaledObject(name, absl::StrCat(R"("triggers":[)", triggers, "]", spec));
    } else {
      cluster_.Patch(kube::ScaledObjects(), name,
                     absl::StrCat(R"({"spec":{"triggers":[)", triggers, "]}}"));
    }
    TrackedObject next;
    next.object = cluster_.view().ScaledObject({"ns", name});
    const auto resolved = loop_.Run(resolver_.Resolve(next.object, host::Deadline::Never()));
    for (const ResolvedTrigger& trigger : resolved->triggers) {
      next.triggers.push_back({.resolved = trigger, .specs = {{.name = "queue", .target = 5}}});
    }
    TrackedObject& slot = registry_.Put({"ns", name});
    next.due = slot.due;
    next.cycle = slot.cycle;
    slot = std::move(next);
    return slot;
  }
  void TrackAndPoll(const std::string& name, const std::string& triggers,
                    const std::string& spec = "") {
    Track(name, triggers, spec);
    engine_.Schedule({"ns", name}, PollEngine::First::kAtOnce);
  }
  // One whose Secret was rotated, and takes 2 s to read.
  void PollWithSlowSecret(const std::string& name, const std::string& script) {
    cluster_.Create(kube::Secrets(), R"({"metadata":{"name":"db"},"stringData":{"pw":"x"}})");
    cluster_.Create(kube::TriggerAuthentications(),
                    R"({"apiVersion":"keda.sh/v1alpha1","kind":"TriggerAuthentication",
                        "metadata":{"name":"creds"},"spec":{"secretTargetRef":[
                        {"parameter":"password","name":"db","key":"pw"}]}})");
    Track(name, absl::StrCat(R"({"type":"redis","metadata":{"script":")", script,
                             R"("},"authenticationRef":{"name":"creds"}})"));
    cluster_.faults().Fail("get secrets", absl::OkStatus(), 1, absl::Seconds(2));
    cluster_.Patch(kube::Secrets(), "db", R"({"data":{"pw":"bmV3"}})");
    engine_.Schedule({"ns", name}, PollEngine::First::kAtOnce);
  }
  void ScheduleAll() {
    for (const NamespacedName& key : registry_.Keys()) {
      engine_.Schedule(key, PollEngine::First::kAtOnce);
    }
  }
  const host::HealthRecord* HealthOf(const std::string& name, uint32_t index = 0) const {
    return health_.Find(
        {.uid = registry_.Find({"ns", name})->uid(), .trigger_index = index, .metric = "queue"});
  }

  mutable CoreLoop loop_;
  MemoryCluster cluster_{loop_};
  ScriptedScalers scalers_{loop_.clock()};
  host::HealthCache health_{loop_.clock(), {}};
  TriggerResolver resolver_{cluster_.api(), cluster_.view(), scalers_, {.fingerprint_key = "k"}};
  ObjectRegistry registry_;
  ScalerSink metrics_;
  AnswerRecorder recorder_{
      health_, metrics_,
      [this](const NamespacedName& key, const std::string& metric, double value) {
        negative_.push_back(absl::StrCat(key.name, " ", metric, " ", value));
      }};
  PollEngine engine_{loop_.clock(),
                     scalers_,
                     health_,
                     recorder_,
                     resolver_,
                     registry_,
                     loop_.executor(),
                     host::Random(1),
                     [this](NamespacedName key) { return Decide(std::move(key)); },
                     metrics_,
                     {}};
  std::map<std::string, std::vector<int64_t>> decided_;
  std::vector<std::string> negative_;
  bool started_ = false;
  bool ended_ = false;
};

TEST_F(PollEngineTest, PollsANewObjectAtOnceAndThenAtItsInterval) {
  Start();
  TrackAndPoll("a", TriggerJson("a"), R"(,"pollingInterval":10)");
  loop_.Advance(absl::Seconds(35));
  EXPECT_THAT(decided_["a"], ElementsAre(0, 10'000, 20'000, 30'000));
  EXPECT_EQ(scalers_.Polls("a"), 4);
}

TEST_F(PollEngineTest, AValueBelowZeroIsToldOnceUntilItIsNot) {
  Start();
  scalers_.SetValue("a", -7);
  TrackAndPoll("a", TriggerJson("a"), R"(,"pollingInterval":10)");
  loop_.Advance(absl::Seconds(25));
  EXPECT_THAT(negative_, ElementsAre("a queue -7"));
  EXPECT_EQ(HealthOf("a")->value, 0);
  scalers_.SetValue("a", 3);
  loop_.Advance(absl::Seconds(10));
  scalers_.SetValue("a", -1);
  loop_.Advance(absl::Seconds(20));
  EXPECT_THAT(negative_, ElementsAre("a queue -7", "a queue -1"));
}

// With the default intervals an active object is read more often than it is polled.
TEST_F(PollEngineTest, WhatALiveReadAnsweredIsToldAsOfAPoll) {
  Start();
  TrackAndPoll("a", TriggerJson("a"));
  loop_.Advance(absl::Seconds(1));
  host::MetricsAnswer answer;
  answer.values.emplace_back();
  answer.values.back().set_name("queue");
  answer.values.back().set_value(-7);
  engine_.AnsweredLive({"ns", "a"}, 0, answer, absl::Milliseconds(20));
  EXPECT_THAT(negative_, ElementsAre("a queue -7"));
  EXPECT_EQ(metrics_.latency["a/s0-queue"], absl::Milliseconds(20));
  EXPECT_EQ(metrics_.value["a/s0-queue"], 0);
  answer.values.back().set_value(9);
  engine_.AnsweredLive({"ns", "a"}, 0, answer, absl::Milliseconds(20));
  EXPECT_EQ(metrics_.value["a/s0-queue"], 9);
  loop_.Settle();
}

// Shows R26.
TEST_F(PollEngineTest, EachPollTellsHowLongItsScalerTook) {
  Start();
  scalers_["slow"].delay = absl::Milliseconds(250);
  TrackAndPoll("a", TriggerJson("a"));
  TrackAndPoll("b", TriggerJson("slow"));
  loop_.Advance(absl::Seconds(1));
  EXPECT_EQ(metrics_.latency["a/s0-queue"], absl::ZeroDuration());
  EXPECT_EQ(metrics_.latency["b/s0-queue"], absl::Milliseconds(250));
}

TEST_F(PollEngineTest, WhatIsDueTogetherIsAskedInOneBatch) {
  Start();
  for (int i = 0; i < 50; ++i) Track(absl::StrCat("so", i), TriggerJson(absl::StrCat("s", i)));
  ScheduleAll();
  loop_.Advance(absl::Seconds(1));
  EXPECT_EQ(scalers_.Polls(), 50);
  EXPECT_EQ(scalers_.batches(), 1u);
}

TEST_F(PollEngineTest, ObjectsThatCameOneByOneAreSoonAskedTogetherAndStillAtTheirInterval) {
  Start();
  for (int i = 0; i < 200; ++i) {
    TrackAndPoll(absl::StrCat("so", i), TriggerJson(absl::StrCat("s", i)));
    loop_.Advance(absl::Milliseconds(7));
  }
  const size_t before = scalers_.batches();
  loop_.Advance(absl::Seconds(61));
  EXPECT_EQ(scalers_.Polls(), 600);
  EXPECT_LE(scalers_.batches() - before, 8u) << "1.4 s are four slots of 0.5 s, twice";
  for (const auto& [name, at] : decided_) {
    ASSERT_EQ(at.size(), 3u) << name;
    EXPECT_NEAR(static_cast<double>(at[1] - at[0]), 30'000, 250) << name;
    EXPECT_EQ(at[2] - at[1], 30'000) << name;
  }
}

// Case B085.
TEST_F(PollEngineTest, EqualQuestionsAreAskedOnceAndAnsweredToAll) {
  Start();
  scalers_.SetValue("same", 7);
  for (int i = 0; i < 10; ++i) Track(absl::StrCat("so", i), TriggerJson("same"));
  ScheduleAll();
  loop_.Advance(absl::Seconds(1));
  EXPECT_EQ(scalers_.Polls("same"), 1);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(HealthOf(absl::StrCat("so", i))->value, 7) << i;
    EXPECT_EQ(decided_[absl::StrCat("so", i)].size(), 1u) << i;
  }
}

// Case B081.
TEST_F(PollEngineTest, ASlowEntryHoldsUpNobody) {
  Start();
  scalers_["hung"].delay = absl::Hours(1);
  TrackAndPoll("hung", TriggerJson("hung"));
  for (int i = 0; i < 199; ++i) {
    TrackAndPoll(absl::StrCat("so", i), TriggerJson(absl::StrCat("s", i)));
  }
  loop_.Advance(absl::Milliseconds(100));
  EXPECT_EQ(decided_.size(), 199u);
  loop_.Advance(absl::Seconds(4));
  EXPECT_THAT(decided_["hung"], ElementsAre(3'000)) << "decided at its timeout";
  EXPECT_EQ(HealthOf("hung")->status.code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(PollEngineTest, ASlowSecretHoldsUpNobody) {
  Start();
  PollWithSlowSecret("secret", "z");
  for (int i = 0; i < 20; ++i) TrackAndPoll(absl::StrCat("so", i), TriggerJson("s"));
  loop_.Advance(absl::Milliseconds(10));
  EXPECT_EQ(decided_.size(), 20u);
  loop_.Advance(absl::Seconds(3));
  EXPECT_THAT(decided_["secret"], ElementsAre(2'000));
}

TEST_F(PollEngineTest, AnObjectIsDecidedWhenEachOfItsTriggersHasAnAnswer) {
  Start();
  scalers_["slow"].delay = absl::Seconds(2);
  TrackAndPoll("a", TriggerJson("fast") + "," + TriggerJson("slow"));
  loop_.Advance(absl::Milliseconds(1900));
  EXPECT_THAT(decided_["a"], IsEmpty());
  loop_.Advance(absl::Milliseconds(200));
  EXPECT_THAT(decided_["a"], ElementsAre(2'000));
}

TEST_F(PollEngineTest, AnAnswerThatNeverComesIsAnErrorNeverInactive) {
  Start();
  scalers_["s"].silent = true;
  TrackAndPoll("a", TriggerJson("s"));
  loop_.Advance(absl::Seconds(4));
  ASSERT_NE(HealthOf("a"), nullptr);
  EXPECT_FALSE(HealthOf("a")->status.ok());
  EXPECT_EQ(HealthOf("a")->failed_cycles, 1);
  EXPECT_EQ(decided_["a"].size(), 1u);
  scalers_["s"].silent = false;
  loop_.Advance(absl::Seconds(30));
  EXPECT_EQ(HealthOf("a")->failed_cycles, 0) << "the next cycle went on as usual";
}

TEST_F(PollEngineTest, AnAnswerIsNeverWaitedForLongerThanThePollingInterval) {
  Start();
  scalers_["s"].delay = absl::Hours(1);
  TrackAndPoll("a", TriggerJson("s"), R"(,"pollingInterval":1)");
  loop_.Advance(absl::Milliseconds(5500));
  EXPECT_THAT(decided_["a"], ElementsAre(1'000, 2'000, 3'000, 4'000, 5'000));
}

// Shows R16.
TEST_F(PollEngineTest, EachCycleCountsOneFailure) {
  Start();
  scalers_.SetError("s", absl::UnavailableError("down"));
  TrackAndPoll("a", TriggerJson("s"));
  loop_.Advance(absl::Seconds(61));
  EXPECT_EQ(HealthOf("a")->failed_cycles, 3);
  EXPECT_TRUE(health_.Unhealthy({.uid = registry_.Find({"ns", "a"})->uid(), .metric = "queue"}));
}

TEST_F(PollEngineTest, AnObjectThatGoesWhileItIsAskedLeavesNothingBehind) {
  Start();
  scalers_["s"].delay = absl::Seconds(2);
  TrackAndPoll("a", TriggerJson("s"));
  loop_.Advance(absl::Seconds(1));
  engine_.Unschedule({"ns", "a"});
  registry_.Erase({"ns", "a"});
  loop_.Advance(absl::Minutes(2));
  EXPECT_THAT(decided_["a"], IsEmpty());
  EXPECT_EQ(health_.size(), 0u);
  EXPECT_EQ(engine_.scheduled(), 0u);
}

// Case B083.
TEST_F(PollEngineTest, AnAnswerForADeletedObjectIsNotTakenForItsSuccessor) {
  Start();
  scalers_["s"].delay = absl::Seconds(2);
  scalers_.SetValue("s", 9);
  TrackAndPoll("a", TriggerJson("s"));
  loop_.Advance(absl::Seconds(1));
  engine_.Unschedule({"ns", "a"});
  registry_.Erase({"ns", "a"});
  cluster_.Delete(kube::ScaledObjects(), "a");
  Track("a", TriggerJson("t"));
  loop_.Advance(absl::Seconds(3));
  EXPECT_EQ(HealthOf("a"), nullptr);
  EXPECT_THAT(decided_["a"], IsEmpty());
}

TEST_F(PollEngineTest, AnAnswerToTheQuestionBeforeAChangeIsNotTakenForTheOneAfterIt) {
  Start();
  scalers_["old"].delay = absl::Seconds(2);
  scalers_.SetValue("old", 9);
  scalers_.SetValue("new", 1);
  TrackAndPoll("a", TriggerJson("old"));
  loop_.Advance(absl::Seconds(1));
  TrackAndPoll("a", TriggerJson("new"));
  loop_.Advance(absl::Milliseconds(1500));
  ASSERT_NE(HealthOf("a"), nullptr);
  EXPECT_EQ(HealthOf("a")->value, 1);
  EXPECT_EQ(scalers_.Polls("new"), 1) << "the change is polled as soon as the old cycle ended";
}

TEST_F(PollEngineTest, ATriggerThatChangesWhileItIsResolvedIsResolvedAnew) {
  Start();
  scalers_.SetValue("old", 0);
  scalers_.SetValue("new", 8);
  PollWithSlowSecret("a", "old");
  loop_.Advance(absl::Seconds(1));
  TrackAndPoll("a", TriggerJson("new"));
  loop_.Advance(absl::Seconds(2));
  EXPECT_EQ(scalers_.Polls("old"), 0);
  ASSERT_NE(HealthOf("a"), nullptr);
  EXPECT_EQ(HealthOf("a")->value, 8) << "of the new one, and at once";
  EXPECT_EQ(scalers_.Polls("new"), 1);
}

TEST_F(PollEngineTest, ATriggerThatIsRemovedWhileItIsAskedDoesNotStopThePolls) {
  Start();
  scalers_["slow"].delay = absl::Seconds(2);
  TrackAndPoll("a", TriggerJson("fast") + "," + TriggerJson("slow"));
  loop_.Advance(absl::Seconds(1));
  TrackAndPoll("a", TriggerJson("fast"));
  loop_.Advance(absl::Seconds(65));
  EXPECT_GE(scalers_.Polls("fast"), 3);
  EXPECT_GE(decided_["a"].size(), 3u);
}

TEST_F(PollEngineTest, ATriggerThatIsAddedWhileOthersAreAskedIsPolledSoon) {
  Start();
  scalers_["slow"].delay = absl::Seconds(2);
  TrackAndPoll("a", TriggerJson("slow"));
  loop_.Advance(absl::Seconds(1));
  TrackAndPoll("a", TriggerJson("slow") + "," + TriggerJson("added"));
  loop_.Advance(absl::Milliseconds(1100));
  EXPECT_EQ(scalers_.Polls("added"), 1);
}

TEST_F(PollEngineTest, ACycleOfAnObjectThatWasTrackedAnewDoesNotEndTheNewOnesCycle) {
  Start();
  scalers_["s"].delay = absl::Seconds(2);
  TrackAndPoll("a", TriggerJson("s"));
  loop_.Advance(absl::Seconds(1));
  // Refused and admitted again: the same object, but another cycle.
  engine_.Unschedule({"ns", "a"});
  registry_.Erase({"ns", "a"});
  TrackAndPoll("a", TriggerJson("s"));
  loop_.Advance(absl::Milliseconds(1500));
  EXPECT_THAT(decided_["a"], IsEmpty());
  loop_.Advance(absl::Milliseconds(600));
  EXPECT_THAT(decided_["a"], ElementsAre(3'000));
}

TEST_F(PollEngineTest, AfterAChangeOfLeaderPollsAreSpread) {
  Start();
  for (int i = 0; i < 100; ++i) {
    const std::string name = absl::StrCat("so", i);
    Track(name, TriggerJson(name));
    engine_.Schedule({"ns", name}, PollEngine::First::kSpread);
  }
  loop_.Advance(absl::Seconds(10));
  ASSERT_EQ(decided_.size(), 100u);
  std::map<int64_t, int> by_second;
  for (const auto& [name, times] : decided_) ++by_second[times.front() / 1000];
  EXPECT_EQ(by_second.size(), 10u);
  for (const auto& [second, count] : by_second) EXPECT_LE(count, 25) << second;
}

TEST_F(PollEngineTest, AShortIntervalSpreadsOverItselfOnly) {
  Start();
  for (int i = 0; i < 20; ++i) {
    const std::string name = absl::StrCat("so", i);
    Track(name, TriggerJson(name), R"(,"pollingInterval":2)");
    engine_.Schedule({"ns", name}, PollEngine::First::kSpread);
  }
  loop_.Advance(absl::Seconds(2));
  EXPECT_EQ(decided_.size(), 20u);
}

TEST_F(PollEngineTest, RetryAfterDelaysTheNextPollThirtySecondsAtMost) {
  Start();
  scalers_["answer"].retry_after = absl::Seconds(15);
  TrackAndPoll("a", TriggerJson("answer"), R"(,"pollingInterval":1)");
  absl::Status error = absl::UnavailableError("loading");
  host::SetRetryAfter(error, absl::Seconds(20));
  scalers_.SetError("error", error);
  TrackAndPoll("b", TriggerJson("error"), R"(,"pollingInterval":1)");
  absl::Status endless = absl::UnavailableError("go away");
  host::SetRetryAfter(endless, absl::Hours(1));
  scalers_.SetError("endless", endless);
  TrackAndPoll("c", TriggerJson("endless"), R"(,"pollingInterval":1)");
  loop_.Advance(absl::Seconds(31));
  EXPECT_THAT(decided_["a"], ElementsAre(0, 15'000, 30'000));
  EXPECT_THAT(decided_["b"], ElementsAre(0, 20'000));
  EXPECT_THAT(decided_["c"], ElementsAre(0, 30'000));
}

// Case B085.
TEST_F(PollEngineTest, AGoodAnswerOutOfTurnIsAsGoodAsAPoll) {
  Start();
  TrackAndPoll("a", TriggerJson("s"));
  loop_.Advance(absl::Seconds(20));
  health_.RecordSuccess({.uid = registry_.Find({"ns", "a"})->uid(), .metric = "queue"}, 3, true);
  engine_.AnsweredOutOfTurn({"ns", "a"});
  loop_.Advance(absl::Seconds(29));
  EXPECT_EQ(scalers_.Polls(), 1) << "the next poll is an interval after that answer";
  EXPECT_THAT(decided_["a"], ElementsAre(0, 20'000)) << "and it went to the decision";
  loop_.Advance(absl::Seconds(2));
  EXPECT_EQ(scalers_.Polls(), 2);
}

TEST_F(PollEngineTest, AnAnswerOutOfTurnMovesNothingWhileAnotherTriggerFails) {
  Start();
  scalers_.SetError("bad", absl::UnavailableError("down"));
  TrackAndPoll("a", TriggerJson("good") + "," + TriggerJson("bad"));
  loop_.Advance(absl::Seconds(20));
  health_.RecordSuccess({.uid = registry_.Find({"ns", "a"})->uid(), .metric = "queue"}, 3, true);
  engine_.AnsweredOutOfTurn({"ns", "a"});
  loop_.Advance(absl::Seconds(11));
  EXPECT_EQ(scalers_.Polls("bad"), 2);
}

TEST_F(PollEngineTest, AStatefulTypesStateAdvancesAtItsDueTimeOnly) {
  scaler::v1::TriggerType schema;
  schema.set_name("redis");
  schema.set_open(true);
  schema.set_stateful(true);
  scalers_.SetSchema(schema);
  Start();
  TrackAndPoll("a", TriggerJson("s"));
  loop_.Advance(absl::Seconds(20));
  engine_.AnsweredOutOfTurn({"ns", "a"});
  loop_.Advance(absl::Seconds(11));
  EXPECT_EQ(scalers_.Polls(), 2);
}

TEST_F(PollEngineTest, AnObjectOfCpuAndMemoryTriggersOnlyIsDecidedAtItsInterval) {
  Start();
  TrackAndPoll("a", R"({"type":"cpu","metadata":{"value":"50"}})");
  loop_.Advance(absl::Seconds(1));
  engine_.AnsweredOutOfTurn({"ns", "a"});  // as the reconciler does: every test it made was good
  loop_.Advance(absl::Seconds(60));
  EXPECT_GE(decided_["a"].size(), 3u);
  EXPECT_EQ(scalers_.Polls(), 0);
}

TEST_F(PollEngineTest, ARefusedTriggerIsNotAskedAndTheOthersAre) {
  Start();
  scalers_.SetError("bad", absl::InvalidArgumentError("listLength"));
  TrackAndPoll("a", TriggerJson("good") + "," + TriggerJson("bad"));
  loop_.Advance(absl::Seconds(95));
  EXPECT_EQ(scalers_.Polls("bad"), 1);
  EXPECT_EQ(scalers_.Polls("good"), 4);
  EXPECT_EQ(decided_["a"].size(), 4u);
  EXPECT_EQ(HealthOf("a", 1)->failed_cycles, 0);
  EXPECT_FALSE(HealthOf("a", 1)->status.ok());
}

TEST_F(PollEngineTest, ATypeWithoutAPluginFailsEachCycle) {
  Start();
  TrackAndPoll("a", R"({"type":"kafka","metadata":{}})");
  loop_.Advance(absl::Seconds(61));
  EXPECT_EQ(HealthOf("a")->failed_cycles, 3);
  scalers_.Connect("kafka", {"kafka"});
  loop_.Advance(absl::Seconds(30));
  EXPECT_EQ(HealthOf("a")->failed_cycles, 0);
}

// Case B009.
TEST_F(PollEngineTest, TwelveTriggersThatFailTogetherAreEachCountedOnce) {
  Start();
  std::vector<std::string> triggers;
  for (int i = 0; i < 12; ++i) {
    triggers.push_back(TriggerJson(absl::StrCat("s", i)));
    scalers_.SetError(absl::StrCat("s", i), absl::UnavailableError("down"));
  }
  TrackAndPoll("a", absl::StrJoin(triggers, ","), R"(,"pollingInterval":1)");
  loop_.Advance(absl::Minutes(10) - absl::Milliseconds(500));
  for (uint32_t i = 0; i < 12; ++i) EXPECT_EQ(HealthOf("a", i)->failed_cycles, 600) << i;
}

TEST_F(PollEngineTest, StopBeforeTheFirstTurnEndsRun) {
  started_ = true;
  loop_.Spawn(RunEngine());
  engine_.Stop();
  loop_.Settle();
  EXPECT_TRUE(ended_);
}

TEST_F(PollEngineTest, StopWaitsForTheCyclesThatRun) {
  Start();
  scalers_["s"].delay = absl::Seconds(2);
  TrackAndPoll("a", TriggerJson("s"));
  loop_.Advance(absl::Seconds(1));
  engine_.Stop();
  loop_.Settle();
  EXPECT_FALSE(ended_);
  loop_.Advance(absl::Seconds(2));
  EXPECT_TRUE(ended_);
  EXPECT_THAT(decided_["a"], IsEmpty()) << "nothing is decided after Stop()";
}

}  // namespace
}  // namespace outrigger::controller::polling
