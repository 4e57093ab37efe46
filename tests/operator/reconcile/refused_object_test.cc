// SPDX-License-Identifier: Apache-2.0
// What a reconcile refuses, and what becomes of an object that ran until then
// (docs/adr/0015-a-refused-edit-stops-nothing.md).
#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/operator/reconcile/reconcile_fixture.h"

namespace outrigger::controller::reconcile {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class RefusalTest : public ReconcileFixture {
 protected:
  void LetOrdersFallBack() {
    CreateOrders(R"(,"fallback":{"failureThreshold":3,"replicas":4})");
    StartPolls();
    ReconcileUntilSettled();
    scalers_.SetError("redis", absl::UnavailableError("down"));
    loop_.Advance(absl::Minutes(3));
    ASSERT_EQ(Condition(api::kFallback), "True FallbackExists");
  }
};

struct Invalid {
  const char* name;
  const char* spec;  // beside scaleTargetRef
  const char* reason;
  const char* message;
};
class RefusedObjectTest : public ReconcileFixture, public testing::WithParamInterface<Invalid> {};

// Shows R5.
TEST_P(RefusedObjectTest, IsSaidInReadyAndItsHpaAndReplicasAreLeftAsTheyAre) {
  // It worked before, and then was changed for the worse.
  CreateOrders("", 3);
  ReconcileUntilSettled();
  const std::string hpa_version = At(Hpa(), "/metadata/resourceVersion");
  StartPolls();
  cluster_.Patch(kube::ScaledObjects(), "orders",
                 absl::StrCat(R"({"spec":{)", GetParam().spec, "}}"));
  loop_.Advance(absl::Seconds(2));
  (void)Reconcile();
  loop_.Advance(absl::Minutes(10));
  EXPECT_EQ(Condition(api::kReady), absl::StrCat("False ", GetParam().reason));
  EXPECT_THAT(ReadyMessage(), HasSubstr(GetParam().message));
  EXPECT_EQ(Status().observed_generation, 2);
  EXPECT_EQ(At(Hpa(), "/metadata/resourceVersion"), hpa_version);
  EXPECT_EQ(cluster_.Replicas("web"), 3);
  EXPECT_EQ(cluster_.CountEvents("ScaledObjectCheckFailed"), 1);
}

INSTANTIATE_TEST_SUITE_P(
    Specs, RefusedObjectTest,
    testing::ValuesIn<Invalid>({
        {"MinAboveMax", R"("minReplicaCount":9,"maxReplicaCount":3)", "ScaledObjectCheckFailed",
         "minReplicaCount"},
        {"NoTriggers", R"("triggers":[])", "ScaledObjectCheckFailed", "triggers"},
        {"NotSupported", R"("idleReplicaCount":0)", "NotSupported", "spec.idleReplicaCount"},
        {"Formula", R"("advanced":{"scalingModifiers":{"formula":"a+b","target":"1"}})",
         "NotSupported", "scalingModifiers"},
        {"MissingTarget", R"("scaleTargetRef":{"name":"nobody"})", "ScaledObjectCheckFailed",
         "want an existing target, got none: apps/v1.Deployment ns/nobody"},
        {"UnknownGroup", R"("scaleTargetRef":{"name":"web","apiVersion":"x.io/v1","kind":"Thing"})",
         "ScaledObjectCheckFailed",
         "want a kind that the API server has, got x.io/v1.Thing: the API server does not serve"},
        {"UnknownKind", R"("scaleTargetRef":{"name":"web","kind":"Thing","apiVersion":"apps/v1"})",
         "ScaledObjectCheckFailed", "got apps/v1.Thing: apps/v1 has no kind Thing"},
        {"NoScale", R"("scaleTargetRef":{"name":"web","kind":"Pod","apiVersion":"v1"})",
         "ScaledObjectCheckFailed", "want a target with a scale subresource, got /v1.Pod"},
        {"NoNamespace",
         R"("scaleTargetRef":{"name":"a","kind":"APIService","apiVersion":"apiregistration.k8s.io/v1"})",
         "ScaledObjectCheckFailed", "scale subresource in a namespace"},
    }),
    [](const testing::TestParamInfo<Invalid>& info) { return std::string(info.param.name); });

TEST_F(RefusalTest, ARefusedObjectWorksOnceItIsMended) {
  cluster_.CreateScaledObject("orders", R"("triggers":[{"type":"redis","metadata":{}}])");
  ASSERT_TRUE(Reconcile().ok());
  EXPECT_THAT(Condition(api::kReady), StartsWith("False"));
  cluster_.CreateDeployment("web", 1);
  loop_.Advance(absl::Seconds(2));
  ASSERT_TRUE(Reconcile().ok());
  EXPECT_EQ(Condition(api::kReady), "True ScaledObjectReady");
  EXPECT_FALSE(Hpa().is_null());
}

constexpr char kMinAboveMax[] = R"({"spec":{"minReplicaCount":9,"maxReplicaCount":3}})";

TEST_F(RefusalTest, ARefusedEditDoesNotStopARunningObject) {
  scalers_.SetValue("redis", 0);
  CreateOrders("", 0);
  StartPolls();
  ReconcileUntilSettled();
  cluster_.Patch(kube::ScaledObjects(), "orders", kMinAboveMax);
  (void)Reconcile();
  scalers_.SetValue("redis", 10);
  loop_.Advance(absl::Minutes(1));
  EXPECT_EQ(cluster_.Replicas("web"), 1) << "there is work, and the last good spec says what to do";
  EXPECT_EQ(Condition(api::kReady), "False ScaledObjectCheckFailed") << "polls do not hide it";
  EXPECT_THAT(Condition(api::kActive), StartsWith("True"));
  cluster_.Patch(kube::ScaledObjects(), "orders", R"({"spec":{"minReplicaCount":2}})");
  ReconcileUntilSettled();
  EXPECT_EQ(Condition(api::kReady), "True ScaledObjectReady");
  EXPECT_EQ(At(Hpa(), "/spec/minReplicas"), "2");
}

// After a restart nobody knows the last good spec.
TEST_F(RefusalTest, ARefusedObjectThatNeverRanHereIsNotScaled) {
  CreateOrders(R"(,"minReplicaCount":9,"maxReplicaCount":3)", 0);
  StartPolls();
  (void)Reconcile();
  loop_.Advance(absl::Minutes(5));
  EXPECT_EQ(cluster_.Replicas("web"), 0);
  EXPECT_EQ(scalers_.Polls(), 0);
}

// Else its HPA would be answered by a failure, or its fallback, that no poll takes back.
TEST_F(RefusalTest, NoVerdictStaysOfAnObjectThatIsNotPolledAnyMore) {
  LetOrdersFallBack();
  cluster_.Patch(kube::ScaledObjects(), "orders", R"({"spec":{"idleReplicaCount":0}})");
  (void)Reconcile();
  loop_.Advance(absl::Minutes(3));
  EXPECT_EQ(Condition(api::kReady), "False NotSupported");
  EXPECT_EQ(Condition(api::kFallback), "False NoFallbackFound");
  EXPECT_THAT(Status().health, IsEmpty());
  EXPECT_EQ(
      health_.FailedCycles({.uid = cluster_.ScaledObject("orders").meta.uid, .metric = "queue"}),
      0);
}

TEST_F(RefusalTest, NeitherDoesThatOfALeaderBefore) {
  LetOrdersFallBack();
  cluster_.Patch(kube::ScaledObjects(), "orders", kMinAboveMax);
  ForgetAsANewOperator();
  (void)Reconcile();
  loop_.Advance(absl::Seconds(5));
  EXPECT_EQ(Condition(api::kReady), "False ScaledObjectCheckFailed");
  EXPECT_EQ(Condition(api::kFallback), "False NoFallbackFound");
  EXPECT_THAT(Status().health, IsEmpty());
}

}  // namespace
}  // namespace outrigger::controller::reconcile
