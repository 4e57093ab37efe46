// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/trigger_observer.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/operator/reconcile/reconcile_fixture.h"

namespace outrigger::controller::reconcile {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class TriggerObserverTest : public ReconcileFixture {
 protected:
  void CreateObjects(int count, const std::string& type = "redis") {
    for (int i = 0; i < count; ++i) {
      cluster_.CreateScaledObject(absl::StrCat(type, i),
                                  absl::StrCat(R"("triggers":[{"type":")", type, R"("}])"));
    }
  }
  auto Start(const std::string& name) {
    auto started = loop_.Start(reconciler_.Reconcile(
        {"ns", name}, host::Deadline::After(loop_.clock(), absl::Seconds(60))));
    loop_.Settle();
    return started;
  }
};

// Shows R22. Case B081.
TEST_F(TriggerObserverTest, AtMostThreeReconcilesWaitForAHungPlugin) {
  cluster_.CreateDeployment("web", 1);
  CreateObjects(5);
  CreateObjects(1, "kafka");
  scalers_.Connect("kafka", {"kafka"});
  scalers_["redis"].spec_delay = absl::Hours(1);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(Start(absl::StrCat("redis", i))->has_value());
  const auto refused = Start("redis3");
  ASSERT_TRUE(refused->has_value()) << "it must hold no worker";
  EXPECT_EQ((**refused)->requeue_after, absl::Seconds(1));
  EXPECT_TRUE(Start("redis4")->has_value());
  EXPECT_TRUE(Start("kafka0")->has_value());
  EXPECT_EQ(Condition(api::kReady, "kafka0"), "True ScaledObjectReady");
  EXPECT_THAT(room_for_, IsEmpty());
  loop_.Advance(absl::Seconds(4));
  EXPECT_THAT(room_for_, ElementsAre("redis3", "redis4")) << "told in order, once each";
}

TEST_F(TriggerObserverTest, HowOftenAnObjectAsksForRoomItIsToldOnce) {
  cluster_.CreateDeployment("web", 1);
  CreateObjects(4);
  scalers_["redis"].spec_delay = absl::Seconds(2);
  for (int i = 0; i < 3; ++i) Start(absl::StrCat("redis", i));
  for (int i = 0; i < 5; ++i) Start("redis3");
  loop_.Advance(absl::Seconds(4));
  EXPECT_THAT(room_for_, ElementsAre("redis3"));
}

// Case B001.
TEST_F(TriggerObserverTest, ASpecThatDoesNotComeDoesNotHoldUpTheReconcileBeyondTheTimeout) {
  cluster_.CreateDeployment("web", 1);
  CreateObjects(1);
  scalers_["redis"].spec_delay = absl::Hours(1);
  const host::SteadyTime start = loop_.clock().SteadyNow();
  (void)Reconcile("redis0");
  EXPECT_LE(loop_.clock().SteadyNow() - start, absl::Seconds(4));
}

// Of a stateful type only a poll tells, so Fallback does not flap at a take-over.
TEST_F(TriggerObserverTest, AfterATakeOverTheTestOfAStatefulTypeLeavesWhatWasPublished) {
  scaler::v1::TriggerType schema;
  schema.set_name("redis");
  schema.set_stateful(true);
  scalers_.SetSchema(schema);
  CreateOrders(R"(,"fallback":{"failureThreshold":3,"replicas":2})");
  ReconcileUntilSettled();
  scalers_.SetError("redis", absl::UnavailableError("down"));
  StartPolls();
  loop_.Advance(absl::Minutes(3));
  const host::HealthKey key{
      .uid = cluster_.ScaledObject("orders").meta.uid, .trigger_index = 0, .metric = "queue"};
  ASSERT_GE(health_.FailedCycles(key), 3);
  ForgetAsANewOperator();
  engine_.Stop();  // a poll would be right to forget the failures
  loop_.Settle();
  scalers_.SetValue("redis", 10);
  const int before = scalers_.Count("metrics");
  (void)Reconcile();
  EXPECT_GT(scalers_.Count("metrics"), before) << "it was asked";
  EXPECT_GE(health_.FailedCycles(key), 3);
}

TEST_F(TriggerObserverTest, RecordsOfATriggerThatIsGoneGo) {
  cluster_.CreateDeployment("web", 1);
  cluster_.CreateScaledObject("orders", R"("triggers":[{"type":"redis"},{"type":"redis"}])");
  ReconcileUntilSettled();
  EXPECT_EQ(health_.size(), 2u);
  cluster_.Patch(kube::ScaledObjects(), "orders", R"({"spec":{"triggers":[{"type":"redis"}]}})");
  ReconcileUntilSettled();
  EXPECT_EQ(health_.size(), 1u);
  EXPECT_EQ(Status().health.count("s1-queue"), 0u);
}

}  // namespace
}  // namespace outrigger::controller::reconcile
