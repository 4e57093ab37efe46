// SPDX-License-Identifier: Apache-2.0
#include "operator/polling/live_metric_source.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/operator/support/memory_cluster.h"
#include "tests/operator/support/scripted_scalers.h"

namespace outrigger::controller::polling {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Readings = absl::StatusOr<std::vector<MetricReading>>;

// An object "orders" with metric s0-queue, target 5, whose plugin says 10.
class LiveMetricSourceTest : public testing::Test {
 protected:
  LiveMetricSourceTest() {
    scalers_.Connect("redis", {"redis"});
    scalers_.SetValue("redis", 10);
    source_.SetOnAnswer(
        [this](const api::NamespacedName& key, uint32_t index, const host::MetricsAnswer&,
               absl::Duration) { answered_.push_back(absl::StrCat(key.ToString(), "#", index)); });
  }
  void CreateObject(const std::string& spec = "", const std::string& trigger = "") {
    cluster_.CreateDeployment("web", 2);
    cluster_.CreateScaledObject(
        "orders",
        absl::StrCat(R"("triggers":[{"type":"redis","metadata":{})", trigger, "}]", spec));
    uid_ = cluster_.ScaledObject("orders").meta.uid;
  }
  void CreateHpa(const std::string& target = R"({"type":"AverageValue","averageValue":"5"})") {
    cluster_.Create(
        kube::HorizontalPodAutoscalers(),
        absl::StrCat(R"({"metadata":{"name":"keda-hpa-orders"},"spec":{"scaleTargetRef":{)",
                     R"("kind":"Deployment","name":"web"},"maxReplicas":100,"metrics":[)",
                     R"({"type":"External","external":{"metric":{"name":"s0-queue"},"target":)",
                     target, "}}]}}"));
  }
  void Publish(int failures) {
    cluster_.Patch(kube::ScaledObjects(), "orders",
                   absl::StrCat(R"({"status":{"health":{"s0-queue":{"numberOfFailures":)", failures,
                                R"(,"status":"Failing"}}}})"),
                   "status");
  }
  Readings Read(const std::string& metric = "s0-queue", const std::string& selector = "") {
    return loop_.Run(source_.Read({"ns", "orders", metric, selector},
                                  host::Deadline::After(loop_.clock(), absl::Seconds(30))));
  }
  double Value() {
    const Readings readings = Read();
    EXPECT_TRUE(readings.ok()) << readings.status();
    return readings.ok() && readings->size() == 1 ? readings->front().value : -1;
  }
  int Calls() { return scalers_.Count("metrics"); }
  host::HealthKey Key() const { return {.uid = uid_, .metric = "queue"}; }

  CoreLoop loop_;
  MemoryCluster cluster_{loop_};
  ScriptedScalers scalers_{loop_.clock()};
  host::HealthCache health_{loop_.clock(), {}};
  TriggerResolver resolver_{cluster_.api(), cluster_.view(), scalers_, {.fingerprint_key = "k"}};
  runtime::WriteGate gate_{loop_.clock()};
  TargetScaler scaler_{loop_.clock(), cluster_.api(), cluster_.view(), gate_};
  LiveMetricSource source_{loop_.clock(), cluster_.view(), resolver_, scalers_,
                           health_,       scaler_,         {}};
  std::vector<std::string> answered_;
  std::string uid_;
};

// Shows R8. Shows R23.
TEST_F(LiveMetricSourceTest, AnswersTheMetricOfTheHpaInItsOwnCase) {
  CreateObject();
  CreateHpa();
  const Readings readings = Read("S0-QUEUE");
  ASSERT_TRUE(readings.ok()) << readings.status();
  ASSERT_EQ(readings->size(), 1u);
  EXPECT_EQ((*readings)[0].metric_name, "s0-queue");
  EXPECT_EQ((*readings)[0].value, 10);
  EXPECT_EQ((*readings)[0].measured_at, loop_.clock().WallNow());
}

// What the HPA controller makes of a sum of readings, before it turns it into 32 bits.
double CountByAverage(double sum, double target) { return std::ceil(sum / target); }
double CountByValue(double sum, double target, int ready_pods) {
  return std::ceil(sum / target * ready_pods);
}
constexpr double kMostThatCounts = 2147483647.0;

// 2^31 and more wraps in the HPA controller.
TEST_F(LiveMetricSourceTest, AHugeValueIsCutToWhatTheHpaCanCount) {
  CreateObject();
  CreateHpa();
  for (const double huge : {1e13, 1e15, 1e300}) {
    scalers_.SetValue("redis", huge);
    loop_.Advance(absl::Seconds(6));
    for (const double value : {Value(), Value()}) {  // as asked, and from the cache
      EXPECT_LE(CountByAverage(value, 5), kMostThatCounts) << huge;
      EXPECT_GE(CountByAverage(value, 5), 100) << huge;
    }
  }
}

TEST_F(LiveMetricSourceTest, AHugeValueIsCutForATargetPerValueToo) {
  CreateObject(R"(,"maxReplicaCount":7)");
  CreateHpa(R"({"type":"Value","value":"1"})");
  scalers_.SetValue("redis", 1e15);
  for (const int ready : {1, 7, 9, 14}) {  // a rollout has more than maxReplicas
    EXPECT_LE(CountByValue(Value(), 1, ready), kMostThatCounts) << ready;
    EXPECT_GE(CountByValue(Value(), 1, ready), 7) << ready;
  }
}

TEST_F(LiveMetricSourceTest, OfSeveralSeriesTheSumIsCutAndNoneThatFits) {
  CreateObject();
  CreateHpa();
  scalers_.SetSeries("redis", {4, 4e8, 6});
  Readings readings = Read();
  ASSERT_TRUE(readings.ok()) << readings.status();
  ASSERT_EQ(readings->size(), 3u);
  EXPECT_EQ((*readings)[1].value, 4e8) << "more than a third of what counts, and yet the sum fits";
  scalers_.SetSeries("redis", {1e13, 3e13, 1e300});
  readings = Read("s0-queue", "a=b");  // one live call
  ASSERT_TRUE(readings.ok()) << readings.status();
  double sum = 0;
  for (const MetricReading& reading : *readings) sum += reading.value;
  EXPECT_LE(CountByAverage(sum, 5), kMostThatCounts);
  EXPECT_GE(CountByAverage(sum, 5), 100);
}

// Case B085.
TEST_F(LiveMetricSourceTest, AFreshValueIsReusedAndAnOldOneIsNot) {
  CreateObject();
  CreateHpa();
  health_.RecordSuccess(Key(), 7, true);
  EXPECT_EQ(Value(), 7);
  loop_.Advance(absl::Seconds(5));
  EXPECT_EQ(Value(), 7);
  EXPECT_EQ(Calls(), 0);
  loop_.Advance(absl::Milliseconds(1));
  EXPECT_EQ(Value(), 10);
  EXPECT_EQ(Calls(), 1);
}

TEST_F(LiveMetricSourceTest, WithCachedMetricsAValueServesForThePollingInterval) {
  CreateObject(R"(,"pollingInterval":30)", R"(,"useCachedMetrics":true)");
  CreateHpa();
  health_.RecordSuccess(Key(), 7, true);
  loop_.Advance(absl::Seconds(30));
  EXPECT_EQ(Value(), 7);
  loop_.Advance(absl::Milliseconds(1));
  EXPECT_EQ(Value(), 10);
}

// Case B012.
TEST_F(LiveMetricSourceTest, AFailureIsReusedForFiveSecondsAndNeverCounted) {
  CreateObject();
  CreateHpa();
  scalers_.SetError("redis", absl::UnavailableError("refused"));
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(Read().status().code(), absl::StatusCode::kUnavailable);
    loop_.Advance(absl::Seconds(1));
  }
  EXPECT_EQ(Calls(), 4);
  EXPECT_EQ(health_.FailedCycles(Key()), 0);
  EXPECT_THAT(answered_, IsEmpty());
}

TEST_F(LiveMetricSourceTest, WhileUnhealthyNoCallIsMade) {
  CreateObject();
  CreateHpa();
  for (int i = 0; i < 3; ++i) health_.RecordFailure(Key(), absl::InternalError("broken"), true);
  loop_.Advance(absl::Minutes(5));
  EXPECT_EQ(Read().status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(Calls(), 0);
}

TEST_F(LiveMetricSourceTest, AStandbyAsksNothingThatTheLeaderPublishedAsUnhealthy) {
  CreateObject();
  CreateHpa();
  Publish(3);
  EXPECT_EQ(Read().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Calls(), 0);
  Publish(0);
  EXPECT_EQ(Value(), 10);
}

TEST_F(LiveMetricSourceTest, WhatThisReplicaReadItselfIsBetterThanAnOldPublishedFailure) {
  CreateObject();
  CreateHpa();
  Publish(3);
  health_.RecordSuccess(Key(), 7, true);
  EXPECT_EQ(Value(), 7);
  loop_.Advance(absl::Seconds(10));
  EXPECT_EQ(Value(), 10);
}

// Shows R16. Case B004.
TEST_F(LiveMetricSourceTest, AtTheThresholdTheFallbackValueIsAnsweredWithoutACall) {
  CreateObject(R"(,"fallback":{"failureThreshold":2,"replicas":6})");
  CreateHpa();
  Publish(2);
  EXPECT_EQ(Value(), 30) << "target 5 times 6 replicas";
  EXPECT_EQ(Calls(), 0);
}

TEST_F(LiveMetricSourceTest, BelowTheThresholdTheErrorIsAnsweredNeverAnOldValue) {
  CreateObject(R"(,"fallback":{"failureThreshold":3,"replicas":6})");
  CreateHpa();
  health_.RecordSuccess(Key(), 7, true);
  loop_.Advance(absl::Seconds(6));
  health_.RecordFailure(Key(), absl::UnavailableError("down"), true);
  EXPECT_EQ(Read().status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(LiveMetricSourceTest, FallbackOfAValueMetricCountsReadyPods) {
  CreateObject(R"(,"fallback":{"failureThreshold":3,"replicas":6})", R"(,"metricType":"Value")");
  CreateHpa(R"({"type":"Value","value":"5"})");
  for (const char* pod : {"a", "b", "c"}) {
    cluster_.Create(kube::Pods(), absl::StrCat(R"({"metadata":{"name":")", pod,
                                               R"(","labels":{"app":"web"}},"spec":{}})"));
    const bool ready = std::string(pod) != "c";
    cluster_.Patch(kube::Pods(), pod,
                   absl::StrCat(R"({"status":{"phase":"Running","conditions":[{"type":"Ready",)",
                                R"("status":")", ready ? "True" : "False", R"("}]}})"),
                   "status");
  }
  Publish(3);
  EXPECT_EQ(Value(), 15) << "5 * 6 replicas / 2 ready pods";
}

TEST_F(LiveMetricSourceTest, FallbackOfAValueMetricWithoutReadyPodsIsAnError) {
  CreateObject(R"(,"fallback":{"failureThreshold":3,"replicas":6})", R"(,"metricType":"Value")");
  CreateHpa(R"({"type":"Value","value":"5"})");
  Publish(3);
  EXPECT_EQ(Read().status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(LiveMetricSourceTest, AGoodReadIsToldAndRecorded) {
  CreateObject();
  CreateHpa();
  health_.RecordFailure(Key(), absl::UnavailableError("down"), true);
  loop_.Advance(absl::Seconds(6));
  EXPECT_TRUE(Read().ok());
  EXPECT_THAT(answered_, ElementsAre("ns/orders#0"));
  EXPECT_EQ(health_.FailedCycles(Key()), 0);
  EXPECT_EQ(health_.Find(Key())->value, 10);
}

TEST_F(LiveMetricSourceTest, AReadWithASelectorIsLiveAndChangesNoRecord) {
  CreateObject();
  CreateHpa();
  health_.RecordSuccess(Key(), 7, true);
  const Readings readings = Read("s0-queue", "zone=a");
  ASSERT_TRUE(readings.ok());
  EXPECT_EQ(Calls(), 1);
  EXPECT_EQ(health_.Find(Key())->value, 7);
  EXPECT_THAT(answered_, IsEmpty());
}

TEST_F(LiveMetricSourceTest, AStatefulTypeIsAnsweredFromTheLastPollOnly) {
  scaler::v1::TriggerType schema;
  schema.set_name("redis");
  schema.set_open(true);
  schema.set_stateful(true);
  scalers_.SetSchema(schema);
  CreateObject();
  CreateHpa();
  const absl::Status before = Read().status();
  EXPECT_EQ(before.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(host::IsPluginUnreachable(before)) << "503: another replica may know";
  health_.RecordSuccess(Key(), 7, true);
  loop_.Advance(absl::Seconds(25));
  EXPECT_EQ(Value(), 7);
  EXPECT_EQ(Calls(), 0);
}

struct Unknown {
  const char* name;
  const char* object;
  const char* metric;
};
class UnknownMetricTest : public LiveMetricSourceTest,
                          public testing::WithParamInterface<Unknown> {};

TEST_P(UnknownMetricTest, IsNotFound) {
  CreateObject();
  CreateHpa();
  const Readings readings =
      loop_.Run(source_.Read({"ns", GetParam().object, GetParam().metric, ""},
                             host::Deadline::After(loop_.clock(), absl::Seconds(3))));
  EXPECT_EQ(readings.status().code(), absl::StatusCode::kNotFound) << readings.status();
}

INSTANTIATE_TEST_SUITE_P(
    Reads, UnknownMetricTest,
    testing::ValuesIn<Unknown>({{"Object", "nobody", "s0-queue"},
                                {"Metric", "orders", "s0-other"},
                                {"IndexBeyondTheTriggers", "orders", "s7-queue"},
                                {"NoIndex", "orders", "queue"},
                                {"Empty", "orders", ""}}),
    [](const testing::TestParamInfo<Unknown>& info) { return std::string(info.param.name); });

TEST_F(LiveMetricSourceTest, BeforeTheCachesAreSyncedItSaysSo) {
  CreateObject();
  CreateHpa();
  cluster_.view().SetSynced(false);
  EXPECT_EQ(Read().status().code(), absl::StatusCode::kFailedPrecondition);
}

// Shows R24.
TEST_F(LiveMetricSourceTest, AHungScalerIsADeadlineAndAPluginThatIsAwayIsUnreachable) {
  CreateObject();
  CreateHpa();
  scalers_["redis"].delay = absl::Hours(1);
  const host::SteadyTime start = loop_.clock().SteadyNow();
  EXPECT_EQ(Read().status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(loop_.clock().SteadyNow() - start, absl::Seconds(3));
  loop_.Advance(absl::Seconds(6));
  scalers_.Disconnect("redis");
  EXPECT_TRUE(host::IsPluginUnreachable(Read().status()));
}

// Case B019.
TEST_F(LiveMetricSourceTest, AReadBeforeTheFirstReconcileIsAnErrorAndNoCrash) {
  CreateObject();
  EXPECT_EQ(Read().status().code(), absl::StatusCode::kNotFound);
}

TEST_F(LiveMetricSourceTest, ACredentialThatCannotBeResolvedIsTheAnswer) {
  CreateObject("", R"(,"authenticationRef":{"name":"creds"})");
  CreateHpa();
  EXPECT_THAT(std::string(Read().status().message()), HasSubstr("ns/creds"));
  EXPECT_EQ(Calls(), 0);
}

// Case B083.
TEST_F(LiveMetricSourceTest, AReadThatOutlivesItsObjectRecordsNothing) {
  CreateObject();
  CreateHpa();
  scalers_["redis"].delay = absl::Seconds(1);
  auto reading = loop_.Start(source_.Read({"ns", "orders", "s0-queue", ""},
                                          host::Deadline::After(loop_.clock(), absl::Seconds(3))));
  loop_.Settle();
  cluster_.Delete(kube::ScaledObjects(), "orders");
  loop_.Advance(absl::Seconds(2));
  ASSERT_TRUE(reading->has_value());
  EXPECT_EQ(health_.size(), 0u);
}

}  // namespace
}  // namespace outrigger::controller::polling
