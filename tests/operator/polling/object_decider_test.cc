// SPDX-License-Identifier: Apache-2.0
#include "operator/polling/object_decider.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "operator/api/scale_target.h"
#include "tests/operator/support/memory_cluster.h"

namespace outrigger::controller::polling {
namespace {

using api::NamespacedName;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kFallbackSpec[] = R"(,"fallback":{"failureThreshold":3,"replicas":4})";

// An object "orders" with trigger metrics s0-queue (and s1-queue), its target Deployment "web", and
// what polls would have said of it.
class ObjectDeciderTest : public testing::Test {
 protected:
  ~ObjectDeciderTest() override {
    status_.Clear();
    loop_.Advance(absl::Minutes(2));
  }

  void SetUpObject(int replicas, const std::string& spec = "", int triggers = 1) {
    cluster_.CreateDeployment("web", replicas);
    std::string list = R"({"type":"redis","metadata":{}})";
    for (int i = 1; i < triggers; ++i) list += R"(,{"type":"redis","metadata":{}})";
    cluster_.CreateScaledObject("orders", absl::StrCat(R"("triggers":[)", list, "]", spec));
    Track(triggers);
  }
  void Track(int triggers) {
    TrackedObject& object = registry_.Put(kOrders);
    object.object = cluster_.view().ScaledObject(kOrders);
    object.target = *api::ResolveTarget(object.object->spec.scale_target_ref);
    object.agreement.emplace();
    for (int i = 0; i < triggers; ++i) {
      ResolvedTrigger resolved;
      resolved.index = static_cast<uint32_t>(i);
      resolved.type = "redis";
      object.triggers.push_back({.resolved = resolved, .specs = {{.name = "queue", .target = 5}}});
    }
    status_.Adopt(*object.object);
  }
  void CreateHpa(int desired = 1) {
    cluster_.Create(
        kube::HorizontalPodAutoscalers(),
        R"({"metadata":{"name":"keda-hpa-orders"},"spec":{"scaleTargetRef":{"kind":"Deployment",
            "name":"web"},"minReplicas":1,"maxReplicas":100,"metrics":[{"type":"External","external":{
            "metric":{"name":"s0-queue"},"target":{"type":"AverageValue","averageValue":"5"}}}]}})");
    SetHpaStatus("True", "ValidMetricFound", desired);
  }
  void SetHpaStatus(const std::string& active, const std::string& reason, int desired) {
    cluster_.Patch(
        kube::HorizontalPodAutoscalers(), "keda-hpa-orders",
        absl::StrCat(R"({"status":{"currentReplicas":)", desired, R"(,"desiredReplicas":)", desired,
                     R"(,"conditions":[{"type":"ScalingActive","status":")", active,
                     R"(","reason":")", reason, R"(","message":"the HPA says"}]}})"),
        "status");
  }
  host::HealthKey KeyOf(uint32_t index) const {
    return {.uid = registry_.Find(kOrders)->uid(), .trigger_index = index, .metric = "queue"};
  }
  void Good(double value, uint32_t index = 0) {
    health_.RecordSuccess(KeyOf(index), value, value > 0);
  }
  void Bad(int cycles = 1, uint32_t index = 0,
           const absl::Status& why = absl::UnavailableError("down")) {
    for (int i = 0; i < cycles; ++i) health_.RecordFailure(KeyOf(index), why, true);
  }
  // Decides, and lets the status be written.
  void Decide(absl::Duration then = absl::Seconds(2)) {
    loop_.Spawn(decider_.Decide(kOrders));
    loop_.Settle();
    loop_.Advance(then);
  }
  std::string Condition(const char* type) const { return cluster_.Condition("orders", type); }
  int Failures(const std::string& metric = "s0-queue") const {
    const auto status = cluster_.ScaledObject("orders").status;
    auto it = status.health.find(metric);
    return it == status.health.end() ? -1 : it->second.number_of_failures;
  }

  const NamespacedName kOrders{"ns", "orders"};
  CoreLoop loop_;
  mutable MemoryCluster cluster_{loop_};
  host::HealthCache health_{loop_.clock(), {}};
  ObjectRegistry registry_;
  runtime::WriteGate gate_{loop_.clock()};
  runtime::StatusWriter status_{loop_.clock(),
                                cluster_.api(),
                                gate_,
                                loop_.executor(),
                                host::Logger(host::MakeNullSink()),
                                {}};
  runtime::EventRecorder events_{loop_.clock(),
                                 cluster_.api(),
                                 gate_,
                                 loop_.executor(),
                                 host::Logger(host::MakeNullSink()),
                                 {}};
  TargetScaler scaler_{loop_.clock(), cluster_.api(), cluster_.view(), gate_};
  runtime::MetricsSink metrics_;
  ObjectDecider decider_{loop_.clock(),
                         cluster_.view(),
                         health_,
                         registry_,
                         scaler_,
                         status_,
                         events_,
                         metrics_,
                         host::Logger(host::MakeNullSink()),
                         {}};
};

TEST_F(ObjectDeciderTest, ActivatesAnIdleTarget) {
  SetUpObject(0);
  Good(3);
  Decide();
  EXPECT_EQ(cluster_.Replicas("web"), 1);
  EXPECT_EQ(Condition(api::kActive), "True ScalerActive");
  EXPECT_THAT(cluster_.Events(), Contains(HasSubstr("from 0 to 1, triggered by s0-queue")));
}

TEST_F(ObjectDeciderTest, ActivatesToMinReplicaCount) {
  SetUpObject(0, R"(,"minReplicaCount":3)");
  Good(1);
  Decide();
  EXPECT_EQ(cluster_.Replicas("web"), 3);
}

TEST_F(ObjectDeciderTest, LeavesARunningTargetToItsHpa) {
  SetUpObject(4);
  Good(100);
  Decide();
  EXPECT_EQ(cluster_.Replicas("web"), 4);
  EXPECT_THAT(cluster_.faults().Count("/scale"), 0) << "not even read";
}

// Case B028.
TEST_F(ObjectDeciderTest, ANewObjectOverARunningTargetWaitsForItsInitialCooldown) {
  SetUpObject(3, R"(,"cooldownPeriod":60,"initialCooldownPeriod":120)");
  Good(0);
  for (int i = 0; i < 11; ++i) {
    Decide(absl::Seconds(10));
    EXPECT_EQ(cluster_.Replicas("web"), 3) << "after " << i * 10 << " s";
  }
  EXPECT_EQ(Condition(api::kActive), "False ScalerCooldown");
  loop_.Advance(absl::Seconds(15));
  Decide();
  EXPECT_EQ(cluster_.Replicas("web"), 0);
}

// Case B030.
TEST_F(ObjectDeciderTest, GoesToZeroACooldownAfterTheLastTriggerWasActive) {
  SetUpObject(5, R"(,"cooldownPeriod":300)", 2);
  Good(0, 0);
  Good(1, 1);
  Decide();
  Good(0, 1);
  Decide(absl::Seconds(290));
  Decide();
  EXPECT_EQ(cluster_.Replicas("web"), 5);
  loop_.Advance(absl::Seconds(20));
  Decide();
  EXPECT_EQ(cluster_.Replicas("web"), 0);
  EXPECT_THAT(cluster_.Events(), Contains(HasSubstr("KEDAScaleTargetDeactivated")));
}

// Shows R32.
TEST_F(ObjectDeciderTest, ScalingToZeroReadsTheTargetLiveFirst) {
  SetUpObject(5, R"(,"cooldownPeriod":1)");
  Good(0);
  loop_.Advance(absl::Seconds(10));
  Decide();
  EXPECT_EQ(cluster_.Replicas("web"), 0);
  EXPECT_EQ(cluster_.faults().Count("get deployments.apps/scale"), 1);
}

// Shows R32. Case B005.
TEST_F(ObjectDeciderTest, AStaleCacheNeverLowersWhatTheHpaRaised) {
  SetUpObject(1, R"(,"minReplicaCount":2)");
  Good(0);
  cluster_.view().Freeze();  // still shows 1
  cluster_.SetReplicas("web", 8);
  Decide();
  EXPECT_EQ(cluster_.Replicas("web"), 8);
}

// Shows R32.
TEST_F(ObjectDeciderTest, AStaleCacheThatShowsZeroActivatesNothingThatRuns) {
  SetUpObject(0);
  Good(9);
  cluster_.view().Freeze();
  cluster_.SetReplicas("web", 6);
  Decide();
  EXPECT_EQ(cluster_.Replicas("web"), 6);
  EXPECT_EQ(cluster_.CountEvents("KEDAScaleTargetActivated"), 0);
}

TEST_F(ObjectDeciderTest, AConflictOnTheTargetIsTriedAgainAtOnce) {
  SetUpObject(0);
  Good(3);
  // The Deployment's controller writes its status between our read and our write.
  int writes = 2;
  cluster_.faults().SetOnCall([&](const std::string& text) {
    if (!absl::StartsWith(text, "patch deployments.apps/scale") || writes-- <= 0) return;
    cluster_.faults().Fail("patch deployments.apps/scale", absl::AbortedError("conflict"));
  });
  Decide(absl::Milliseconds(1));
  EXPECT_EQ(cluster_.Replicas("web"), 1);
  EXPECT_EQ(cluster_.CountEvents("KEDAScaleTargetActivationFailed"), 0);
}

TEST_F(ObjectDeciderTest, ATargetThatWasMadeAnewIsNotScaledByWhatItsPredecessorNeeded) {
  SetUpObject(5, R"(,"cooldownPeriod":1)");
  Good(0);
  loop_.Advance(absl::Seconds(10));
  bool replaced = false;
  cluster_.faults().SetOnCall([&](const std::string& text) {
    if (replaced || !absl::StartsWith(text, "patch deployments.apps/scale")) return;
    replaced = true;
    cluster_.faults().Fail("patch deployments.apps/scale", absl::AbortedError("uid"), 100);
  });
  Decide();
  EXPECT_EQ(cluster_.Replicas("web"), 5);
  EXPECT_EQ(cluster_.CountEvents("KEDAScaleTargetDeactivated"), 0);
}

TEST_F(ObjectDeciderTest, AFailedActivationIsAnEventAndDoesNotCountAsActive) {
  SetUpObject(0);
  Good(3);
  cluster_.faults().Fail("patch deployments.apps/scale", absl::PermissionDeniedError("no right"));
  Decide();
  EXPECT_EQ(cluster_.CountEvents("KEDAScaleTargetActivationFailed"), 1);
  EXPECT_FALSE(registry_.Find(kOrders)->last_active.has_value());
  Decide();
  EXPECT_EQ(cluster_.Replicas("web"), 1);
}

// Case B010.
TEST_F(ObjectDeciderTest, AnErrorNeverScalesIn) {
  SetUpObject(5, R"(,"cooldownPeriod":1)");
  Good(0);
  loop_.Advance(absl::Seconds(100));
  for (int i = 0; i < 10; ++i) {
    Bad();
    Decide(absl::Seconds(10));
    EXPECT_EQ(cluster_.Replicas("web"), 5);
  }
  EXPECT_EQ(Condition(api::kReady), "False TriggerError");
  EXPECT_EQ(cluster_.CountEvents("KEDAScaleTargetDeactivated"), 0);
}

// Shows R17.
TEST_F(ObjectDeciderTest, ActiveIsUnknownOnlyWhileATriggerIsUnhealthyAndNoneIsActive) {
  SetUpObject(1, "", 2);
  Good(0, 0);
  Good(0, 1);
  Decide();
  Bad(2, 0);
  Decide();
  EXPECT_THAT(Condition(api::kActive), testing::StartsWith("False"));
  Bad(1, 0);
  Decide();
  EXPECT_EQ(Condition(api::kActive), "Unknown UnknownState");
  Good(5, 1);
  Decide();
  EXPECT_EQ(Condition(api::kActive), "True ScalerActive");
}

// Case B013.
TEST_F(ObjectDeciderTest, OneFailedPollChangesNothingAtAll) {
  SetUpObject(2);
  CreateHpa();
  Good(5);
  Decide();
  cluster_.faults().Clear();
  Bad();
  Decide();
  Bad();
  Decide();
  EXPECT_THAT(cluster_.faults().Writes(), IsEmpty());
  Good(5);
  Decide();
  EXPECT_THAT(cluster_.faults().Writes(), IsEmpty());
}

// Shows R16. Case B007.
TEST_F(ObjectDeciderTest, FailuresArePublishedAtThreeAtTheThresholdAndAtRecovery) {
  SetUpObject(2, R"(,"fallback":{"failureThreshold":5,"replicas":4})");
  CreateHpa();
  Good(1);
  Decide();
  const int want[] = {0, 0, 3, 3, 5, 5, 5};
  const char* fallback[] = {"False", "False", "False", "False", "True", "True", "True"};
  for (int i = 0; i < 7; ++i) {
    Bad();
    cluster_.faults().Clear();
    Decide();
    EXPECT_EQ(Failures(), want[i]) << "after " << i + 1 << " failed cycles";
    EXPECT_THAT(Condition(api::kFallback), testing::StartsWith(fallback[i]));
    const int patches = cluster_.faults().Count("patch scaledobjects.keda.sh/status");
    EXPECT_EQ(patches, i == 2 || i == 4 ? 1 : 0) << "after " << i + 1 << " failed cycles";
  }
  Good(1);
  cluster_.faults().Clear();
  Decide();
  EXPECT_EQ(Failures(), 0);
  EXPECT_EQ(Condition(api::kFallback), "False NoFallbackFound");
  EXPECT_EQ(cluster_.faults().Count("patch scaledobjects.keda.sh/status"), 1)
      << "one patch for both";
}

// Case B012.
TEST_F(ObjectDeciderTest, ATriggerWithoutFallbackKeepsFallbackFalse) {
  SetUpObject(2);
  Good(1);
  Decide();
  Bad(10);
  Decide();
  EXPECT_EQ(Condition(api::kFallback), "False NoFallbackFound");
  EXPECT_EQ(Failures(), 3);
  EXPECT_EQ(cluster_.Replicas("web"), 2);
}

// Case B011.
TEST_F(ObjectDeciderTest, FallbackDoesNotLowerATargetBehindItsHpa) {
  SetUpObject(8, R"(,"minReplicaCount":1,"fallback":{"failureThreshold":3,"replicas":4})");
  CreateHpa();
  Bad(10);
  Decide();
  EXPECT_EQ(Condition(api::kFallback), "True FallbackExists");
  EXPECT_EQ(cluster_.Replicas("web"), 8);
}

// Case B001.
TEST_F(ObjectDeciderTest, WithoutAnHpaFallbackRaisesTheTarget) {
  SetUpObject(2, kFallbackSpec);
  registry_.Find(kOrders)->triggers[0].specs.clear();  // the plugin has never answered
  const host::HealthKey nameless{.uid = registry_.Find(kOrders)->uid(), .metric = ""};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(cluster_.Replicas("web"), 2);
    health_.RecordFailure(nameless, absl::UnavailableError("refused"), true);
    Decide();
  }
  EXPECT_EQ(cluster_.Replicas("web"), 4);
  EXPECT_EQ(Condition(api::kFallback), "True FallbackExists");
}

// Case B146.
TEST_F(ObjectDeciderTest, UnhealthyAndFallbackAreOneEventEachHoweverLongTheyLast) {
  SetUpObject(2, kFallbackSpec);
  CreateHpa();
  for (int i = 0; i < 50; ++i) {
    Bad(1, 0, absl::UnavailableError(absl::StrCat("refused from port ", 40'000 + i)));
    Decide();
  }
  EXPECT_EQ(cluster_.CountEvents("KEDAScalerFailed"), 1);
  EXPECT_EQ(cluster_.CountEvents("ScaledObjectFallbackActivated"), 1);
  EXPECT_THAT(cluster_.Events(),
              Contains(HasSubstr("s0-queue could not be read in 3 poll cycles")));
  Good(1);
  Decide();
  EXPECT_EQ(cluster_.CountEvents("ScaledObjectFallbackDeactivated"), 1);
}

// Shows R3.
TEST_F(ObjectDeciderTest, ASteadyStateWritesNothingFailingObjectsIncluded) {
  SetUpObject(2, "", 2);
  Good(5, 0);
  Bad(5, 1);
  Decide();
  cluster_.faults().Clear();
  for (int i = 0; i < 20; ++i) {
    Good(5 + i, 0);
    Bad(1, 1, absl::UnavailableError(absl::StrCat("at ", i)));
    Decide(absl::Seconds(30));
  }
  EXPECT_THAT(cluster_.faults().Writes(), IsEmpty());
}

TEST_F(ObjectDeciderTest, LastActiveTimeIsPersistedWhenActiveChangesNotPerPoll) {
  SetUpObject(1);
  Good(5);
  Decide();
  const auto first = cluster_.ScaledObject("orders").status.last_active_time;
  ASSERT_TRUE(first.has_value());
  for (int i = 0; i < 5; ++i) Decide(absl::Seconds(30));
  EXPECT_EQ(cluster_.ScaledObject("orders").status.last_active_time, first);
  Good(0);
  Decide();
  EXPECT_GT(*cluster_.ScaledObject("orders").status.last_active_time, *first + absl::Seconds(100));
}

struct HpaState {
  const char* name;
  const char* active;
  const char* reason;
  const char* condition;
};
class HpaActiveTest : public ObjectDeciderTest, public testing::WithParamInterface<HpaState> {};

TEST_P(HpaActiveTest, ComesFromTheHpasScalingActive) {
  SetUpObject(1);
  CreateHpa();
  SetHpaStatus(GetParam().active, GetParam().reason, 1);
  decider_.ObserveHpa(kOrders);
  loop_.Advance(absl::Seconds(2));
  EXPECT_EQ(Condition(api::kHpaActive), GetParam().condition);
}

INSTANTIATE_TEST_SUITE_P(
    States, HpaActiveTest,
    testing::ValuesIn<HpaState>({
        {"Scaling", "True", "ValidMetricFound", "True HPAActive"},
        {"AtZero", "False", "ScalingDisabled", "True ScalingDisabled"},
        {"NoMetrics", "False", "FailedGetExternalMetric", "False FailedGetExternalMetric"},
        {"NoReason", "False", "", "False HPAMetricsUnavailable"},
    }),
    [](const testing::TestParamInfo<HpaState>& info) { return std::string(info.param.name); });

// Shows R31.
TEST_F(ObjectDeciderTest, AnHpaThatWantsLessThanTheScalersForTwoSyncsIsAConditionAndAnEvent) {
  SetUpObject(2);
  CreateHpa(2);
  Good(10);
  Decide();
  EXPECT_EQ(Condition(api::kHpaInSync), "True HPAAgrees");
  Good(50);  // asks for 10
  Decide(absl::Seconds(15));
  EXPECT_EQ(Condition(api::kHpaInSync), "True HPAAgrees") << "one sync late is no disagreement";
  loop_.Advance(absl::Seconds(20));
  Decide();
  EXPECT_EQ(Condition(api::kHpaInSync), "False HPADisagrees");
  EXPECT_EQ(cluster_.CountEvents("HPADisagrees"), 1);
  EXPECT_THAT(cluster_.ConditionMessage("orders", api::kHpaInSync), HasSubstr("s0-queue"));
  SetHpaStatus("True", "ValidMetricFound", 10);
  decider_.ObserveHpa(kOrders);
  loop_.Advance(absl::Seconds(2));
  EXPECT_EQ(Condition(api::kHpaInSync), "True HPAAgrees");
}

TEST_F(ObjectDeciderTest, ATargetThatCannotBeReadIsNotScaled) {
  SetUpObject(3);
  Good(0);
  cluster_.Delete(kube::Deployments(), "web");
  Decide();
  EXPECT_EQ(Condition(api::kReady), "False ErrorGettingCurrentReplicas");
  EXPECT_EQ(cluster_.faults().Count("/scale"), 0);
}

TEST_F(ObjectDeciderTest, NothingIsDoneWhileActingIsNotAllowed) {
  SetUpObject(0);
  Good(3);
  decider_.SetMayAct([] { return false; });
  Decide();
  EXPECT_THAT(cluster_.faults().Writes(), IsEmpty());
}

TEST_F(ObjectDeciderTest, LosingTheRightToActBetweenReadAndWriteStopsTheWrite) {
  SetUpObject(0);
  Good(3);
  bool may_act = true;
  decider_.SetMayAct([&] { return may_act; });
  cluster_.faults().SetOnCall([&](const std::string& text) {
    if (absl::StartsWith(text, "get deployments.apps/scale")) may_act = false;
  });
  Decide();
  EXPECT_EQ(cluster_.faults().Count("patch deployments.apps/scale"), 0);
}

TEST_F(ObjectDeciderTest, AnObjectThatGoesDuringADecisionIsLeftAlone) {
  SetUpObject(0);
  Good(3);
  cluster_.faults().Fail("patch deployments.apps/scale", absl::OkStatus(), 1, absl::Seconds(5));
  Decide(absl::Seconds(1));
  registry_.Erase(kOrders);
  loop_.Advance(absl::Seconds(10));  // must not touch what is no more
  EXPECT_EQ(registry_.size(), 0u);
}

TEST_F(ObjectDeciderTest, AFallbackThatIsRemovedDuringADecisionIsNotTold) {
  SetUpObject(0, R"(,"fallback":{"failureThreshold":3,"replicas":4})");
  Bad(4);
  cluster_.faults().Fail("patch deployments.apps/scale", absl::OkStatus(), 1, absl::Seconds(5));
  Decide(absl::Seconds(1));
  ASSERT_EQ(cluster_.Replicas("web"), 0) << "the write is on its way";
  cluster_.Patch(kube::ScaledObjects(), "orders", R"({"spec":{"fallback":null}})");
  registry_.Find(kOrders)->object = cluster_.view().ScaledObject(kOrders);
  loop_.Advance(absl::Seconds(10));
  EXPECT_EQ(cluster_.CountEvents("ScaledObjectFallbackActivated"), 0);
  EXPECT_EQ(Condition(api::kFallback), "False NoFallbackFound");
}

TEST_F(ObjectDeciderTest, AnAnswerThatComesDuringADecisionIsDecidedAfterIt) {
  SetUpObject(0, R"(,"cooldownPeriod":1)");
  Good(3);
  cluster_.faults().Fail("get deployments.apps/scale", absl::OkStatus(), 1, absl::Seconds(2));
  loop_.Spawn(decider_.Decide(kOrders));
  loop_.Advance(absl::Seconds(1));
  Bad(3);
  loop_.Spawn(decider_.Decide(kOrders));
  loop_.Advance(absl::Seconds(10));
  EXPECT_EQ(Failures(), 3);
}

TEST_F(ObjectDeciderTest, SaysWhy) {
  SetUpObject(0);
  Good(3);
  Decide();
  EXPECT_THAT(registry_.Find(kOrders)->last_decision.explanation, HasSubstr("s0-queue=3"));
}

}  // namespace
}  // namespace outrigger::controller::polling
