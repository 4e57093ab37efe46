// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/scaled_object_reconciler.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/operator/reconcile/reconcile_fixture.h"

namespace outrigger::controller::reconcile {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr char kHpas[] = "horizontalpodautoscalers.autoscaling";

using ReconcilerTest = ReconcileFixture;

// Shows R4. Shows R7. Shows R8.
TEST_F(ReconcilerTest, MakesAnHpaOfExternalMetricsThatTheObjectOwns) {
  CreateOrders(R"(,"minReplicaCount":2,"maxReplicaCount":7)");
  ASSERT_TRUE(Reconcile().ok());
  const boost::json::value hpa = Hpa();
  ASSERT_FALSE(hpa.is_null());
  EXPECT_EQ(At(hpa, "/metadata/ownerReferences/0/uid"), cluster_.ScaledObject("orders").meta.uid);
  EXPECT_EQ(At(hpa, "/metadata/ownerReferences/0/controller"), "true");
  EXPECT_EQ(At(hpa, "/spec/scaleTargetRef/name"), "web");
  EXPECT_EQ(At(hpa, "/spec/minReplicas"), "2");
  EXPECT_EQ(At(hpa, "/spec/maxReplicas"), "7");
  EXPECT_EQ(At(hpa, "/spec/metrics/0/type"), "External");
  EXPECT_EQ(At(hpa, "/spec/metrics/0/external/metric/name"), "s0-queue");
  EXPECT_THAT(Status().external_metric_names, ElementsAre("s0-queue"));
  EXPECT_EQ(Status().hpa_name, "keda-hpa-orders");
}

// Shows R9. Shows R10. Case B016.
TEST_F(ReconcilerTest, TellsItsStateInTheStatus) {
  CreateOrders();
  ASSERT_TRUE(Reconcile().ok());
  EXPECT_EQ(Condition(api::kReady), "True ScaledObjectReady");
  EXPECT_EQ(Condition(api::kPaused), "False ");
  EXPECT_THAT(Condition(api::kActive),
              testing::AnyOf(StartsWith("True"), StartsWith("False"), StartsWith("Unknown")));
  EXPECT_EQ(Condition(api::kFallback), "False NoFallbackFound");
  for (const api::Condition& condition : Status().conditions) {
    EXPECT_TRUE(condition.last_transition_time.has_value()) << condition.type;
    EXPECT_EQ(condition.observed_generation, 1) << condition.type;
  }
  EXPECT_EQ(Status().observed_generation, 1);
  EXPECT_EQ(Status().phase, api::Phase::kRunning);
  EXPECT_EQ(Status().scale_target_kind, "apps/v1.Deployment");
  EXPECT_EQ(Status().original_replica_count, 2);
  EXPECT_EQ(cluster_.CountEvents("ScaledObjectReady"), 1);
}

TEST_F(ReconcilerTest, ObservedGenerationFollowsTheSpec) {
  CreateOrders();
  ReconcileUntilSettled();
  cluster_.Patch(kube::ScaledObjects(), "orders", R"({"spec":{"maxReplicaCount":9}})");
  ReconcileUntilSettled();
  EXPECT_EQ(Status().observed_generation, 2);
  EXPECT_EQ(At(Hpa(), "/spec/maxReplicas"), "9");
}

// Shows R3.
TEST_F(ReconcilerTest, ASecondRunWithoutAChangeMakesNoWrite) {
  CreateOrders();
  ReconcileUntilSettled();
  cluster_.faults().Clear();
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(Reconcile().ok());
    loop_.Advance(absl::Seconds(31));
  }
  EXPECT_THAT(cluster_.faults().Writes(), IsEmpty());
}

// Shows R3. Case B042.
TEST_F(ReconcilerTest, TheOrderOfMetricsCausesNoWrite) {
  cluster_.CreateDeployment("web", 1);
  cluster_.CreateScaledObject("orders", R"("triggers":[{"type":"redis","metadata":{}},
          {"type":"cpu","metricType":"Utilization","metadata":{"value":"50"}},
          {"type":"memory","metricType":"Utilization","metadata":{"value":"50"}},
          {"type":"redis","metadata":{"script":"b"}}])");
  ReconcileUntilSettled();
  const std::string version = At(Hpa(), "/metadata/resourceVersion");
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(Reconcile().ok());
  EXPECT_EQ(At(Hpa(), "/metadata/resourceVersion"), version);
  EXPECT_THAT(HpaMetrics(), testing::UnorderedElementsAre("s0-queue", "s3-queue", "cpu", "memory"));
}

// Shows R3.
TEST_F(ReconcilerTest, AFailingObjectIsNotWrittenAgainEither) {
  CreateOrders();
  ReconcileUntilSettled();
  scalers_.SetError("redis", absl::UnavailableError("down"));
  StartPolls();
  loop_.Advance(absl::Minutes(5));
  ReconcileUntilSettled();
  cluster_.faults().Clear();
  for (int i = 0; i < 5; ++i) {
    (void)Reconcile();
    loop_.Advance(absl::Seconds(31));
  }
  EXPECT_THAT(cluster_.faults().Writes(), IsEmpty());
}

// Shows R12.
TEST_F(ReconcilerTest, WritesTheStatusOnceAtTheEndAndNeverTheSpec) {
  CreateOrders();
  ASSERT_TRUE(Reconcile().ok());
  EXPECT_EQ(cluster_.faults().Count("patch scaledobjects.keda.sh/status"), 1);
  EXPECT_THAT(
      cluster_.faults().Writes().back(),
      testing::AnyOf(HasSubstr("create events"), HasSubstr("patch scaledobjects.keda.sh/status")));
  EXPECT_EQ(cluster_.ScaledObject("orders").meta.generation, 1);
}

// Shows R12.
TEST_F(ReconcilerTest, AFailedStatusWriteIsAnErrorThatRequeues) {
  CreateOrders();
  cluster_.faults().Fail("patch scaledobjects.keda.sh/status", absl::UnavailableError("down"));
  EXPECT_EQ(Reconcile().status().code(), absl::StatusCode::kUnavailable);
  loop_.Advance(absl::Seconds(1));
  EXPECT_TRUE(Reconcile().ok());
  EXPECT_EQ(Condition(api::kReady), "True ScaledObjectReady");
}

// Shows R14.
TEST_F(ReconcilerTest, AllConnectionsAreTestedInParallel) {
  cluster_.CreateDeployment("web", 1);
  std::string triggers;
  for (int i = 0; i < 8; ++i) {
    const std::string name = absl::StrCat("s", i);
    scalers_[name].delay = absl::Seconds(2);
    absl::StrAppend(&triggers, i == 0 ? "" : ",", R"({"type":"redis","metadata":{"script":")", name,
                    R"("}})");
  }
  cluster_.CreateScaledObject("orders", absl::StrCat(R"("triggers":[)", triggers, "]"));
  const host::SteadyTime start = loop_.clock().SteadyNow();
  ASSERT_TRUE(Reconcile().ok());
  EXPECT_EQ(loop_.clock().SteadyNow() - start, absl::Seconds(2));
  EXPECT_EQ(scalers_.Count("metrics"), 8);
  EXPECT_EQ(scalers_.Polls(), 0) << "a test is no poll";
}

// Shows R15.
TEST_F(ReconcilerTest, AGoodTestServesForThirtySecondsAndABadOneForFive) {
  CreateOrders();
  ASSERT_TRUE(Reconcile().ok());
  loop_.Advance(absl::Seconds(30));
  ASSERT_TRUE(Reconcile().ok());
  EXPECT_EQ(scalers_.Count("metrics"), 1);
  loop_.Advance(absl::Milliseconds(1));
  scalers_.SetError("redis", absl::UnavailableError("down"));
  (void)Reconcile();
  EXPECT_EQ(scalers_.Count("metrics"), 2);
  loop_.Advance(absl::Milliseconds(4999));
  (void)Reconcile();
  EXPECT_EQ(scalers_.Count("metrics"), 2);
  loop_.Advance(absl::Milliseconds(1));
  (void)Reconcile();
  EXPECT_EQ(scalers_.Count("metrics"), 3);
}

TEST_F(ReconcilerTest, AChangedTriggerIsTestedAnewHoweverFreshTheLastTest) {
  CreateOrders();
  ASSERT_TRUE(Reconcile().ok());
  scalers_["other"].error = absl::UnavailableError("wrong host");
  cluster_.Patch(kube::ScaledObjects(), "orders",
                 R"({"spec":{"triggers":[{"type":"redis","metadata":{"script":"other"}}]}})");
  (void)Reconcile();
  EXPECT_EQ(scalers_.Count("metrics", "other"), 1);
}

// Shows R16.
TEST_F(ReconcilerTest, FailedConnectionTestsAreNotCounted) {
  CreateOrders();
  scalers_.SetError("redis", absl::UnavailableError("down"));
  for (int i = 0; i < 10; ++i) {
    (void)Reconcile();
    loop_.Advance(absl::Seconds(6));
  }
  EXPECT_EQ(Condition(api::kReady), "True ScaledObjectReady");
  EXPECT_EQ(
      health_.FailedCycles({.uid = cluster_.ScaledObject("orders").meta.uid, .metric = "queue"}),
      0);
}

constexpr char kOneTrigger[] = R"("triggers":[{"type":"redis","metadata":{}}])";
constexpr char kGadget[] = R"({"apiVersion":"example.com/v1","kind":"Gadget","name":"web"})";

TEST_F(ReconcilerTest, ATargetOfAnyKindWithAScaleSubresourceIsScaled) {
  cluster_.Create(Gadgets(), R"({"apiVersion":"example.com/v1","kind":"Gadget",
                                 "metadata":{"name":"web"},"spec":{"replicas":0}})");
  cluster_.CreateScaledObject("orders", kOneTrigger, kGadget);
  StartPolls();
  ReconcileUntilSettled();
  EXPECT_EQ(Condition(api::kReady), "True ScaledObjectReady");
  EXPECT_EQ(At(Hpa(), "/spec/scaleTargetRef/kind"), "Gadget");
  EXPECT_EQ(At(cluster_.Get(Gadgets(), "web"), "/spec/replicas"), "1") << "there is work";
}

// Nobody tells of a target of a kind that is not watched.
TEST_F(ReconcilerTest, AMissingTargetOfAnUnwatchedKindIsLookedForAgain) {
  cluster_.CreateScaledObject("orders", kOneTrigger, kGadget);
  const absl::StatusOr<runtime::Result> result = Reconcile();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->requeue_after, absl::Seconds(30));
  EXPECT_THAT(ReadyMessage(), HasSubstr("got none: example.com/v1.Gadget ns/web"));
}

// Deployment and ScaledObject are applied together, and the watch of Deployments is behind.
TEST_F(ReconcilerTest, ATargetThatTheCacheDoesNotShowYetIsNotBlamed) {
  cluster_.CreateScaledObject("orders", kOneTrigger);
  cluster_.view().Freeze();
  cluster_.CreateDeployment("web", 1);
  EXPECT_EQ(Reconcile().status().code(), absl::StatusCode::kUnavailable) << "tried again soon";
  loop_.Advance(absl::Seconds(2));
  EXPECT_EQ(cluster_.CountEvents("ScaledObjectCheckFailed"), 0);
  cluster_.view().Thaw();
  ReconcileUntilSettled();
  EXPECT_EQ(Condition(api::kReady), "True ScaledObjectReady");
}

TEST_F(ReconcilerTest, AMissingRightIsToldWithTheRuleThatGivesIt) {
  cluster_.faults().Fail("get gadgets.example.com/scale", absl::PermissionDeniedError("forbidden"));
  cluster_.CreateScaledObject("orders", kOneTrigger, kGadget);
  (void)Reconcile();
  EXPECT_THAT(ReadyMessage(),
              HasSubstr("needs a ClusterRole with the label outrigger.dev/aggregate-to-operator"));
  EXPECT_THAT(ReadyMessage(),
              HasSubstr(R"({apiGroups: ["example.com"], resources: [gadgets/scale], )"
                        "verbs: [get, patch]}"));
}

// Shows R19.
TEST_F(ReconcilerTest, ATriggerThatThePluginRefusesWaitsForAChange) {
  scaler::v1::Violation violation;
  violation.set_field("listLength");
  violation.set_wanted("an integer");
  violation.set_got("\"many\"");
  scalers_["redis"].violations = {violation, violation};
  CreateOrders();
  const absl::Status result = Reconcile().status();
  EXPECT_EQ(result.code(), absl::StatusCode::kInvalidArgument);
  loop_.Advance(absl::Seconds(2));
  EXPECT_THAT(Condition(api::kReady), StartsWith("False"));
  EXPECT_THAT(ReadyMessage(), HasSubstr("listLength: want an integer, got \"many\"; listLength"));
  EXPECT_TRUE(Hpa().is_null());
}

// Shows R5. Case B090.
TEST_F(ReconcilerTest, AMissingAuthenticationIsNamedAndHealsWhenItComes) {
  cluster_.CreateDeployment("web", 1);
  cluster_.CreateScaledObject("orders", R"("triggers":[{"type":"redis","metadata":{},
      "authenticationRef":{"name":"creds"}}])");
  (void)Reconcile();
  loop_.Advance(absl::Seconds(2));
  EXPECT_THAT(Condition(api::kReady), StartsWith("False"));
  EXPECT_THAT(ReadyMessage(), HasSubstr("ns/creds"));
  EXPECT_THAT(cluster_.Events(), Contains(HasSubstr("ns/creds")));
  EXPECT_EQ(scalers_.calls().size(), 0u) << "the plugin is not asked";
  cluster_.Create(kube::TriggerAuthentications(),
                  R"({"apiVersion":"keda.sh/v1alpha1","kind":"TriggerAuthentication",
                      "metadata":{"name":"creds"},"spec":{}})");
  ASSERT_TRUE(Reconcile().ok());
  loop_.Advance(absl::Seconds(2));
  EXPECT_EQ(Condition(api::kReady), "True ScaledObjectReady");
}

// Case B033.
TEST_F(ReconcilerTest, NoHpaIsMadeBeforeEveryTriggerHasASpec) {
  cluster_.CreateDeployment("web", 1);
  cluster_.CreateScaledObject("orders", R"("triggers":[{"type":"redis","metadata":{}},
                                                      {"type":"kafka","metadata":{}}])");
  const auto result = Reconcile();
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->requeue_after.has_value()) << "something must bring it back";
  loop_.Advance(absl::Seconds(2));
  EXPECT_TRUE(Hpa().is_null());
  EXPECT_THAT(Condition(api::kReady), StartsWith("False"));
  EXPECT_THAT(ReadyMessage(), HasSubstr("spec.triggers[1] (kafka)"));
  scalers_.Connect("kafka", {"kafka"});
  ASSERT_TRUE(Reconcile().ok());
  loop_.Advance(absl::Seconds(2));
  EXPECT_THAT(HpaMetrics(), ElementsAre("s0-queue", "s1-queue"));
  EXPECT_EQ(Condition(api::kReady), "True ScaledObjectReady");
}

TEST_F(ReconcilerTest, ASpecThatAConnectedPluginCannotGiveYetIsAskedForAgain) {
  scalers_["redis"].spec_error = absl::UnavailableError("warming up");
  CreateOrders();
  const auto result = Reconcile();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->requeue_after, absl::Seconds(10));
}

TEST_F(ReconcilerTest, APluginThatIsDownLosesNoMetric) {
  cluster_.CreateDeployment("web", 1);
  cluster_.CreateScaledObject("orders", R"("triggers":[{"type":"redis","metadata":{}},
                                                      {"type":"kafka","metadata":{}}])");
  scalers_.Connect("kafka", {"kafka"});
  ReconcileUntilSettled();
  const std::string version = At(Hpa(), "/metadata/resourceVersion");
  scalers_.Disconnect("kafka");
  loop_.Advance(absl::Minutes(1));
  ASSERT_TRUE(Reconcile().ok());
  EXPECT_EQ(At(Hpa(), "/metadata/resourceVersion"), version);
  EXPECT_THAT(HpaMetrics(), ElementsAre("s0-queue", "s1-queue"));
}

// A new operator, whose plugin is still away.
TEST_F(ReconcilerTest, AfterARestartTheHpaIsTheLastGoodSpec) {
  cluster_.CreateDeployment("web", 1);
  cluster_.CreateScaledObject("orders", R"("triggers":[{"type":"redis","metadata":{}},
                                                      {"type":"kafka","metadata":{}}])");
  scalers_.Connect("kafka", {"kafka"});
  ReconcileUntilSettled();
  scalers_.Disconnect("kafka");
  ForgetAsANewOperator();
  cluster_.faults().Clear();
  ASSERT_TRUE(Reconcile().ok());
  EXPECT_EQ(cluster_.faults().Count(kHpas), 0);
  EXPECT_EQ(Condition(api::kReady), "True ScaledObjectReady");
}

TEST_F(ReconcilerTest, TheHpaOfAnOlderSpecIsNotTakenForAChangedTrigger) {
  CreateOrders();
  ReconcileUntilSettled();
  // Changed while no operator ran, and the plugin is away.
  cluster_.Patch(kube::ScaledObjects(), "orders",
                 R"({"spec":{"triggers":[{"type":"kafka","metadata":{}}]}})");
  ForgetAsANewOperator();
  (void)Reconcile();
  loop_.Advance(absl::Seconds(2));
  EXPECT_THAT(Condition(api::kReady), StartsWith("False"));
  EXPECT_THAT(HpaMetrics(), ElementsAre("s0-queue")) << "left as it is";
}

// Shows R19.
TEST_F(ReconcilerTest, ATransientErrorOfTheApiServerIsTriedAgainAndReadyStays) {
  CreateOrders();
  ReconcileUntilSettled();
  cluster_.Patch(kube::ScaledObjects(), "orders", R"({"spec":{"maxReplicaCount":9}})");
  cluster_.faults().Fail("update " + std::string(kHpas), absl::UnavailableError("down"));
  EXPECT_EQ(Reconcile().status().code(), absl::StatusCode::kUnavailable);
  loop_.Advance(absl::Seconds(2));
  EXPECT_EQ(Condition(api::kReady), "True ScaledObjectReady");
  EXPECT_EQ(cluster_.CountEvents("ScaledObjectCheckFailed"), 0);
  ASSERT_TRUE(Reconcile().ok());
  EXPECT_EQ(At(Hpa(), "/spec/maxReplicas"), "9");
}

TEST_F(ReconcilerTest, TheHpaOfBeforeARefusedEditIsNotTakenForItAfterARestart) {
  CreateOrders();
  ReconcileUntilSettled();
  const std::string version = At(Hpa(), "/metadata/resourceVersion");
  scaler::v1::Violation violation;
  violation.set_field("listLength");
  scalers_["other"].violations = {violation};
  cluster_.Patch(kube::ScaledObjects(), "orders",
                 R"({"spec":{"maxReplicaCount":9,
                     "triggers":[{"type":"redis","metadata":{"script":"other"}}]}})");
  ReconcileUntilSettled();
  ASSERT_EQ(Condition(api::kReady), "False ScaledObjectCheckFailed");
  ForgetAsANewOperator();
  ReconcileUntilSettled();
  EXPECT_EQ(At(Hpa(), "/metadata/resourceVersion"), version);
}

// Shows R19.
TEST_F(ReconcilerTest, AMissingRightIsSaidInReady) {
  CreateOrders();
  cluster_.faults().Fail("create " + std::string(kHpas),
                         absl::PermissionDeniedError("cannot create horizontalpodautoscalers"), 9);
  EXPECT_EQ(Reconcile().status().code(), absl::StatusCode::kPermissionDenied);
  loop_.Advance(absl::Seconds(2));
  EXPECT_EQ(Condition(api::kReady), "False ScaledObjectCheckFailed");
  EXPECT_THAT(ReadyMessage(), HasSubstr("cannot create horizontalpodautoscalers"));
}

// Shows R10. Shows R11.
TEST_F(ReconcilerTest, AQuotaRefusalIsPhaseQuotaExceededUntilThereIsRoom) {
  CreateOrders();
  const absl::Status refused =
      kube::ToStatus({.http_code = 403,
                      .reason = "Forbidden",
                      .message = "exceeded quota: few, used: count/hpa=1"});
  cluster_.faults().Fail("create " + std::string(kHpas), refused);
  EXPECT_EQ(Reconcile().status().code(), absl::StatusCode::kResourceExhausted);
  loop_.Advance(absl::Seconds(2));
  EXPECT_EQ(Status().phase, api::Phase::kQuotaExceeded);
  EXPECT_EQ(Condition(api::kReady), "False QuotaExceeded");
  EXPECT_THAT(ReadyMessage(), HasSubstr("exceeded quota: few"));
  StartPolls();
  loop_.Advance(absl::Minutes(1));
  EXPECT_EQ(Condition(api::kReady), "False QuotaExceeded") << "polls do not hide it";
  ReconcileUntilSettled();
  EXPECT_EQ(Status().phase, api::Phase::kRunning);
  EXPECT_EQ(Condition(api::kReady), "True ScaledObjectReady");
}

TEST_F(ReconcilerTest, AThrottledRequestIsNoQuota) {
  CreateOrders();
  cluster_.faults().Fail(
      "create " + std::string(kHpas),
      kube::ToStatus({.http_code = 429, .reason = "TooManyRequests", .message = "later"}));
  EXPECT_EQ(Reconcile().status().code(), absl::StatusCode::kResourceExhausted);
  loop_.Advance(absl::Seconds(2));
  EXPECT_EQ(Status().phase, api::Phase::kRunning);
}

TEST_F(ReconcilerTest, AddsFinalizerAndLabelInOnePatch) {
  CreateOrders();
  ASSERT_TRUE(Reconcile().ok());
  EXPECT_EQ(cluster_.faults().Count("patch scaledobjects.keda.sh ns/orders"), 1);
  const api::ScaledObject object = cluster_.ScaledObject("orders");
  EXPECT_THAT(object.meta.finalizers, ElementsAre("finalizer.keda.sh"));
  EXPECT_EQ(object.meta.labels.at("scaledobject.keda.sh/name"), "orders");
}

// Shows R4. Case B147. Case B083.
TEST_F(ReconcilerTest, ADeletedObjectLeavesNothingBehind) {
  CreateOrders();
  ReconcileUntilSettled();
  StartPolls();
  loop_.Advance(absl::Seconds(1));
  cluster_.Delete(kube::ScaledObjects(), "orders");
  ASSERT_TRUE(Reconcile().ok());
  EXPECT_TRUE(cluster_.Get(kube::ScaledObjects(), "orders").is_null()) << "the finalizer is off";
  EXPECT_TRUE(Hpa().is_null()) << "goes with its owner";
  EXPECT_EQ(cluster_.Replicas("web"), 2) << "the target keeps its replicas";
  ASSERT_TRUE(Reconcile().ok());
  const size_t calls = scalers_.calls().size();
  loop_.Advance(absl::Minutes(5));
  EXPECT_EQ(scalers_.calls().size(), calls) << "nobody is asked any more";
  EXPECT_EQ(registry_.size(), 0u);
  EXPECT_EQ(engine_.scheduled(), 0u);
  EXPECT_EQ(health_.size(), 0u);
  EXPECT_EQ(resolver_.size(), 0u);
  EXPECT_EQ(status_.known_objects(), 0u);
  EXPECT_EQ(events_.remembered(), 0u);
}

TEST_F(ReconcilerTest, AnObjectThatNeverWorkedLeavesNothingBehindEither) {
  cluster_.CreateScaledObject("orders", R"("triggers":[])");
  ASSERT_TRUE(Reconcile().ok());
  loop_.Advance(absl::Seconds(2));
  cluster_.Delete(kube::ScaledObjects(), "orders");
  ASSERT_TRUE(Reconcile().ok());
  EXPECT_EQ(status_.known_objects(), 0u);
  EXPECT_EQ(events_.remembered(), 0u);
}

// Case B083.
TEST_F(ReconcilerTest, AnObjectThatWasMadeAnewStartsAnew) {
  CreateOrders();
  scalers_.SetError("redis", absl::UnavailableError("down"));
  ReconcileUntilSettled();
  StartPolls();
  loop_.Advance(absl::Minutes(3));
  EXPECT_THAT(Condition(api::kReady), StartsWith("False"));
  // Deleted by force and made again before anybody looked.
  cluster_.Patch(kube::ScaledObjects(), "orders", R"({"metadata":{"finalizers":null}})");
  cluster_.Delete(kube::ScaledObjects(), "orders");
  scalers_["other"].values = {{"queue", 1}};
  cluster_.CreateScaledObject("orders",
                              R"("triggers":[{"type":"redis","metadata":{"script":"other"}}])");
  scalers_.Clear();
  ReconcileUntilSettled();
  loop_.Advance(absl::Minutes(3));
  EXPECT_EQ(Condition(api::kReady), "True ScaledObjectReady");
  EXPECT_EQ(scalers_.Count("metrics", "redis"), 0) << "the old source is never asked again";
}

// Case B149.
TEST_F(ReconcilerTest, DeletingAnObjectWhoseTargetIsMissingWorks) {
  CreateOrders();
  ReconcileUntilSettled();
  cluster_.Delete(kube::Deployments(), "web");
  cluster_.Delete(kube::ScaledObjects(), "orders");
  ASSERT_TRUE(Reconcile().ok());
  EXPECT_TRUE(cluster_.Get(kube::ScaledObjects(), "orders").is_null());
}

// Case B147.
TEST_F(ReconcilerTest, AConflictOnTheFinalizerIsAnErrorThatIsTriedAgainSoon) {
  CreateOrders();
  ReconcileUntilSettled();
  cluster_.Delete(kube::ScaledObjects(), "orders");
  cluster_.view().Freeze();
  cluster_.Patch(kube::ScaledObjects(), "orders", R"({"metadata":{"annotations":{"a":"b"}}})");
  EXPECT_EQ(Reconcile().status().code(), absl::StatusCode::kAborted);
  cluster_.view().Thaw();
  ASSERT_TRUE(Reconcile().ok());
  EXPECT_TRUE(cluster_.Get(kube::ScaledObjects(), "orders").is_null());
}

TEST_F(ReconcilerTest, ForeignFinalizersStay) {
  CreateOrders();
  ReconcileUntilSettled();
  cluster_.Patch(kube::ScaledObjects(), "orders",
                 R"({"metadata":{"finalizers":["other/one","finalizer.keda.sh","other/two"]}})");
  cluster_.Delete(kube::ScaledObjects(), "orders");
  ASSERT_TRUE(Reconcile().ok());
  EXPECT_THAT(cluster_.ScaledObject("orders").meta.finalizers,
              ElementsAre("other/one", "other/two"));
}

// A new leader starts from what the one before published.
TEST_F(ReconcilerTest, WhatFailedWhenAnotherLedStaysFailedUntilOneSuccess) {
  CreateOrders(R"(,"fallback":{"failureThreshold":3,"replicas":4})");
  ReconcileUntilSettled();
  scalers_.SetError("redis", absl::UnavailableError("down"));
  StartPolls();
  loop_.Advance(absl::Minutes(3));
  ASSERT_EQ(Condition(api::kFallback), "True FallbackExists");
  ForgetAsANewOperator();
  cluster_.faults().Clear();
  ReconcileUntilSettled();
  loop_.Advance(absl::Minutes(1));
  EXPECT_EQ(Condition(api::kFallback), "True FallbackExists");
  EXPECT_THAT(cluster_.faults().Writes(), IsEmpty()) << "no flap: nothing was written";
  scalers_.SetValue("redis", 3);
  loop_.Advance(absl::Seconds(35));
  EXPECT_EQ(Condition(api::kFallback), "False NoFallbackFound");
}

TEST_F(ReconcilerTest, AnObjectThatWasActiveWhenAnotherLedCountsAsActiveNow) {
  CreateOrders(R"(,"cooldownPeriod":60)");
  scalers_.SetValue("redis", 5);
  ReconcileUntilSettled();
  StartPolls();
  loop_.Advance(absl::Minutes(30));
  ASSERT_EQ(Condition(api::kActive), "True ScalerActive");
  ForgetAsANewOperator();
  scalers_.SetValue("redis", 0);
  (void)Reconcile();
  loop_.Advance(absl::Seconds(55));
  EXPECT_EQ(cluster_.Replicas("web"), 2);
  loop_.Advance(absl::Seconds(40));
  EXPECT_EQ(cluster_.Replicas("web"), 0);
}

TEST_F(ReconcilerTest, WhileSomebodyElseOwnsTheMetricsApiNothingIsWritten) {
  CreateOrders("", 0);
  may_write_ = absl::FailedPreconditionError("the APIService belongs to keda");
  ReconcileUntilSettled();
  EXPECT_THAT(cluster_.faults().Writes(), IsEmpty());
  may_write_ = absl::OkStatus();
  ReconcileUntilSettled();
  EXPECT_FALSE(Hpa().is_null());
}

TEST_F(ReconcilerTest, GoodConnectionTestsGoToTheDecisionAndMoveTheFirstPoll) {
  CreateOrders("", 0);
  StartPolls();
  ASSERT_TRUE(Reconcile().ok());
  loop_.Advance(absl::Seconds(1));
  EXPECT_EQ(cluster_.Replicas("web"), 1) << "active by the test's answer";
  loop_.Advance(absl::Seconds(28));
  EXPECT_EQ(scalers_.Polls(), 0);
  loop_.Advance(absl::Seconds(2));
  EXPECT_EQ(scalers_.Polls(), 1);
}

TEST_F(ReconcilerTest, AnObjectOfCpuTriggersOnlyIsKeptUp) {
  cluster_.CreateDeployment("web", 0);
  cluster_.CreateScaledObject("orders", R"("minReplicaCount":1,
          "triggers":[{"type":"cpu","metricType":"Utilization","metadata":{"value":"50"}}])");
  StartPolls();
  ReconcileUntilSettled();
  EXPECT_EQ(cluster_.Replicas("web"), 1);
  EXPECT_THAT(HpaMetrics(), ElementsAre("cpu"));
  cluster_.SetReplicas("web", 0);
  loop_.Advance(absl::Seconds(31));
  EXPECT_EQ(cluster_.Replicas("web"), 1) << "polled at its interval";
}

}  // namespace
}  // namespace outrigger::controller::reconcile
