// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/hpa_keeper.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/operator/reconcile/reconcile_fixture.h"

namespace outrigger::controller::reconcile {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr char kHpas[] = "horizontalpodautoscalers.autoscaling";

// Through the reconciler, which has the only one.
using HpaKeeperTest = ReconcileFixture;

// Shows R7.
TEST_F(HpaKeeperTest, AnHpaThatSomebodyEditedIsPutBack) {
  CreateOrders(R"(,"maxReplicaCount":7)");
  ReconcileUntilSettled();
  cluster_.Patch(kube::HorizontalPodAutoscalers(), "keda-hpa-orders",
                 R"({"spec":{"maxReplicas":50}})");
  ASSERT_TRUE(Reconcile().ok());
  EXPECT_EQ(At(Hpa(), "/spec/maxReplicas"), "7");
}

// Case B035.
TEST_F(HpaKeeperTest, LabelsAndAnnotationsReachTheHpa) {
  CreateOrders();
  ReconcileUntilSettled();
  cluster_.Patch(kube::ScaledObjects(), "orders",
                 R"({"metadata":{"labels":{"team":"a"},"annotations":{"note":"b"}}})");
  ASSERT_TRUE(Reconcile().ok());
  EXPECT_EQ(At(Hpa(), "/metadata/labels/team"), "a");
  EXPECT_EQ(At(Hpa(), "/metadata/annotations/note"), "b");
}

TEST_F(HpaKeeperTest, AnHpaThatSomebodyDeletedIsMadeAgain) {
  CreateOrders();
  ReconcileUntilSettled();
  cluster_.Delete(kube::HorizontalPodAutoscalers(), "keda-hpa-orders");
  ASSERT_TRUE(Reconcile().ok());
  EXPECT_FALSE(Hpa().is_null());
}

TEST_F(HpaKeeperTest, RenamingTheHpaMakesTheNewOneAndDeletesTheOld) {
  CreateOrders();
  ReconcileUntilSettled();
  cluster_.Patch(kube::ScaledObjects(), "orders",
                 R"({"spec":{"advanced":{"horizontalPodAutoscalerConfig":{"name":"mine"}}}})");
  ReconcileUntilSettled();
  EXPECT_FALSE(Hpa("mine").is_null());
  EXPECT_TRUE(Hpa().is_null());
  EXPECT_EQ(Status().hpa_name, "mine");
}

TEST_F(HpaKeeperTest, TheOldHpaIsLeftAloneWhenItIsNotOurs) {
  CreateOrders();
  ReconcileUntilSettled();
  cluster_.Delete(kube::HorizontalPodAutoscalers(), "keda-hpa-orders");
  cluster_.Create(kube::HorizontalPodAutoscalers(),
                  R"({"metadata":{"name":"keda-hpa-orders"},"spec":{"maxReplicas":3,
                      "scaleTargetRef":{"kind":"Deployment","name":"other"}}})");
  cluster_.Patch(kube::ScaledObjects(), "orders",
                 R"({"spec":{"advanced":{"horizontalPodAutoscalerConfig":{"name":"mine"}}}})");
  ReconcileUntilSettled();
  EXPECT_FALSE(Hpa("mine").is_null());
  EXPECT_FALSE(Hpa("keda-hpa-orders").is_null());
}

TEST_F(HpaKeeperTest, AnHpaThatTheCacheDoesNotShowYetIsNotMadeTwice) {
  CreateOrders();
  ReconcileUntilSettled();
  cluster_.Delete(kube::HorizontalPodAutoscalers(), "keda-hpa-orders");
  cluster_.view().Freeze();  // knows of no HPA
  ASSERT_TRUE(Reconcile().ok());
  cluster_.faults().Clear();
  ASSERT_TRUE(Reconcile().ok());
  EXPECT_EQ(cluster_.faults().Count("update " + std::string(kHpas)), 0) << "it is as wanted";
  cluster_.Patch(kube::HorizontalPodAutoscalers(), "keda-hpa-orders",
                 R"({"spec":{"maxReplicas":50}})");
  ASSERT_TRUE(Reconcile().ok());
  EXPECT_EQ(At(Hpa(), "/spec/maxReplicas"), "100");
}

// Shows R19.
TEST_F(HpaKeeperTest, AConflictOnTheHpaIsReadAgainAndReadyStays) {
  CreateOrders();
  ReconcileUntilSettled();
  cluster_.Patch(kube::ScaledObjects(), "orders", R"({"spec":{"maxReplicaCount":9}})");
  cluster_.view().Freeze();
  // The HPA controller writes its status; the cache is one version behind.
  cluster_.Patch(kube::HorizontalPodAutoscalers(), "keda-hpa-orders",
                 R"({"status":{"desiredReplicas":4}})", "status");
  ASSERT_TRUE(Reconcile().ok());
  EXPECT_EQ(At(Hpa(), "/spec/maxReplicas"), "9");
  EXPECT_EQ(Condition(api::kReady), "True ScaledObjectReady");
}

// Shows R3: two that name one HPA must not write it in turn without end.
TEST_F(HpaKeeperTest, TheHpaOfAnotherScaledObjectIsNotTaken) {
  constexpr char kShared[] = R"(,"advanced":{"horizontalPodAutoscalerConfig":{"name":"shared"}})";
  CreateOrders(kShared);
  ReconcileUntilSettled();
  cluster_.CreateDeployment("other", 1);
  cluster_.CreateScaledObject(
      "copy", absl::StrCat(R"("triggers":[{"type":"redis","metadata":{}}])", kShared),
      R"({"name":"other"})");
  const std::string version = At(Hpa("shared"), "/metadata/resourceVersion");
  const absl::StatusOr<runtime::Result> refused = Reconcile("copy");
  ASSERT_TRUE(refused.ok()) << refused.status();
  EXPECT_TRUE(refused->requeue_after.has_value()) << "the other may go without an event for us";
  ReconcileUntilSettled("copy");
  ReconcileUntilSettled();
  EXPECT_EQ(At(Hpa("shared"), "/metadata/resourceVersion"), version);
  EXPECT_EQ(Condition(api::kReady), "True ScaledObjectReady");
  EXPECT_EQ(Condition(api::kReady, "copy"), "False ScaledObjectCheckFailed");
  EXPECT_THAT(ReadyMessage("copy"),
              HasSubstr("spec.advanced.horizontalPodAutoscalerConfig.name: want an HPA of its own, "
                        "got \"shared\", which is that of ScaledObject ns/orders"));
  // The first takes another name: the second may have it.
  cluster_.Patch(kube::ScaledObjects(), "orders",
                 R"({"spec":{"advanced":{"horizontalPodAutoscalerConfig":{"name":"mine"}}}})");
  ReconcileUntilSettled();
  ReconcileUntilSettled("copy");
  EXPECT_EQ(Condition(api::kReady, "copy"), "True ScaledObjectReady");
  EXPECT_EQ(At(Hpa("shared"), "/spec/scaleTargetRef/name"), "other");
}

TEST_F(HpaKeeperTest, AnHpaThatGoesWhileItIsWrittenIsMadeAnew) {
  CreateOrders();
  ReconcileUntilSettled();
  cluster_.Patch(kube::ScaledObjects(), "orders", R"({"spec":{"maxReplicaCount":9}})");
  cluster_.faults().Fail("update " + std::string(kHpas), absl::NotFoundError("not found"));
  EXPECT_EQ(Reconcile().status().code(), absl::StatusCode::kAborted) << "tried again soon";
  loop_.Advance(absl::Seconds(2));
  EXPECT_EQ(Condition(api::kReady), "True ScaledObjectReady");
}

absl::Status WebhookFails() {
  return kube::ToStatus({.http_code = 500,
                         .reason = "InternalError",
                         .message = "failed calling webhook \"policy\""});
}

// Shows R19.
TEST_F(HpaKeeperTest, AFaultOfTheApiServerIsNotAWorkingObjects) {
  CreateOrders();
  ReconcileUntilSettled();
  cluster_.Patch(kube::HorizontalPodAutoscalers(), "keda-hpa-orders",
                 R"({"spec":{"maxReplicas":50}})");
  cluster_.faults().Fail("update " + std::string(kHpas), WebhookFails());
  EXPECT_EQ(Reconcile().status().code(), absl::StatusCode::kInternal);
  loop_.Advance(absl::Seconds(2));
  EXPECT_EQ(Condition(api::kReady), "True ScaledObjectReady");
  EXPECT_EQ(cluster_.CountEvents("ScaledObjectCheckFailed"), 0);
}

TEST_F(HpaKeeperTest, AnEditThatDoesNotReachTheHpaIsTold) {
  CreateOrders();
  ReconcileUntilSettled();
  StartPolls();
  cluster_.Patch(kube::ScaledObjects(), "orders", R"({"spec":{"maxReplicaCount":9}})");
  cluster_.faults().Fail("update " + std::string(kHpas), WebhookFails(), 9);
  for (int i = 0; i < 3; ++i) {
    (void)Reconcile();
    loop_.Advance(absl::Minutes(1));
  }
  EXPECT_EQ(Condition(api::kReady), "False ScaledObjectCheckFailed");
  EXPECT_THAT(ReadyMessage(), HasSubstr("failed calling webhook"));
}

TEST_F(HpaKeeperTest, WhoeverWaitsForAFirstHpaIsToldOfTheFault) {
  CreateOrders();
  cluster_.faults().Fail("create " + std::string(kHpas), WebhookFails(), 9);
  (void)Reconcile();
  loop_.Advance(absl::Seconds(2));
  EXPECT_THAT(Condition(api::kReady), StartsWith("False"));
  EXPECT_THAT(ReadyMessage(), HasSubstr("failed calling webhook"));
}

}  // namespace
}  // namespace outrigger::controller::reconcile
