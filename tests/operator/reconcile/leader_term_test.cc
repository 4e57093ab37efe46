// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/leader_term.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/operator/support/memory_cluster.h"
#include "tests/operator/support/scripted_scalers.h"

namespace outrigger::controller::reconcile {
namespace {

// Terms of leading, one after another, over one cluster. Events come from the test, not from
// watches.
class LeaderTermTest : public testing::Test {
 protected:
  LeaderTermTest() {
    scalers_.Connect("redis", {"redis"});
    scalers_.SetValue("redis", 10);
    cluster_.CreateDeployment("web", 0);
  }
  ~LeaderTermTest() override { StopTerm(); }

  void StartTerm() {
    health_ = std::make_unique<host::HealthCache>(loop_.clock(), host::HealthCache::Options{});
    term_ =
        std::make_unique<LeaderTerm>(LeaderTerm::Parts{.clock = loop_.clock(),
                                                       .api = cluster_.api(),
                                                       .view = cluster_.view(),
                                                       .scalers = scalers_,
                                                       .health = *health_,
                                                       .resolver = resolver_,
                                                       .metrics = metrics_,
                                                       .strand = loop_.executor(),
                                                       .log = host::Logger(host::MakeNullSink()),
                                                       .may_write = [this] { return may_write_; }},
                                     LeaderTerm::Options{});
    ended_ = false;
    loop_.Spawn(RunTerm());
    loop_.Settle();
  }
  host::Task<void> RunTerm() {
    co_await term_->Run();
    ended_ = true;
  }
  // How long it took to end.
  absl::Duration StopTerm() {
    if (term_ == nullptr) return absl::ZeroDuration();
    const host::SteadyTime start = loop_.clock().SteadyNow();
    term_->Stop();
    loop_.Settle();
    while (!ended_ && loop_.clock().SteadyNow() - start < absl::Minutes(5)) {
      loop_.Advance(absl::Milliseconds(10));
    }
    EXPECT_TRUE(ended_) << "Run() did not return";
    term_.reset();
    return loop_.clock().SteadyNow() - start;
  }
  void CreateAndEnqueue(const std::string& name, const std::string& spec = "") {
    cluster_.CreateScaledObject(
        name, absl::StrCat(R"("triggers":[{"type":"redis","metadata":{}}])", spec));
    term_->Enqueue({"ns", name});
  }

  CoreLoop loop_;
  MemoryCluster cluster_{loop_};
  ScriptedScalers scalers_{loop_.clock()};
  std::unique_ptr<host::HealthCache> health_;
  polling::TriggerResolver resolver_{
      cluster_.api(), cluster_.view(), scalers_, {.fingerprint_key = "k"}};
  runtime::MetricsSink metrics_;
  absl::Status may_write_;
  std::unique_ptr<LeaderTerm> term_;
  bool ended_ = false;
};

TEST_F(LeaderTermTest, DrivesATargetFromZeroToOneAndBack) {
  StartTerm();
  CreateAndEnqueue("orders", R"(,"cooldownPeriod":60)");
  loop_.Advance(absl::Seconds(2));
  EXPECT_EQ(cluster_.Replicas("web"), 1);
  EXPECT_EQ(cluster_.Condition("orders", api::kReady), "True ScaledObjectReady");
  EXPECT_EQ(cluster_.Condition("orders", api::kActive), "True ScalerActive");
  scalers_.SetValue("redis", 0);
  loop_.Advance(absl::Seconds(55));
  EXPECT_EQ(cluster_.Replicas("web"), 1);
  loop_.Advance(absl::Seconds(70));
  EXPECT_EQ(cluster_.Replicas("web"), 0);
}

// Shows R3. Shows R13.
TEST_F(LeaderTermTest, ASteadyStateOfManyObjectsWritesNothing) {
  StartTerm();
  for (int i = 0; i < 50; ++i) {
    cluster_.CreateDeployment(absl::StrCat("d", i), 1);
    const std::string script = i % 5 == 0 ? "failing" : "good";
    cluster_.CreateScaledObject(
        absl::StrCat("so", i),
        absl::StrCat(R"("triggers":[{"type":"redis","metadata":{"script":")", script, R"("}}])"),
        absl::StrCat(R"({"name":"d)", i, R"("})"));
    term_->Enqueue({"ns", absl::StrCat("so", i)});
  }
  scalers_.SetValue("good", 5);
  scalers_.SetError("failing", absl::UnavailableError("down"));
  loop_.Advance(absl::Minutes(5));
  cluster_.faults().Clear();
  for (int i = 0; i < 50; ++i) term_->Enqueue({"ns", absl::StrCat("so", i)});
  loop_.Advance(absl::Minutes(5));
  EXPECT_THAT(cluster_.faults().Writes(), testing::IsEmpty());
}

// Shows R22.
TEST_F(LeaderTermTest, ManyNewObjectsAreReadySoonAtOneStatusPatchASecondEach) {
  StartTerm();
  for (int i = 0; i < 100; ++i) CreateAndEnqueue(absl::StrCat("so", i));
  loop_.Advance(absl::Milliseconds(500));
  // What the informers would bring: each object's label and HPA.
  for (int i = 0; i < 100; ++i) term_->Enqueue({"ns", absl::StrCat("so", i)});
  loop_.Advance(absl::Milliseconds(500));
  int ready = 0;
  for (int i = 0; i < 100; ++i) {
    ready += cluster_.Condition(absl::StrCat("so", i), api::kReady) == "True ScaledObjectReady";
  }
  EXPECT_EQ(ready, 100);
  EXPECT_EQ(term_->queue().known_keys(), 0u) << "no worker waits for the interval of an object";
}

// Shows R22. Case B081.
TEST_F(LeaderTermTest, ManyObjectsOfAHungPluginDelayNoOther) {
  StartTerm();
  scalers_["redis"].spec_delay = absl::Hours(1);
  scalers_["redis"].delay = absl::Hours(1);
  for (int i = 0; i < 200; ++i) CreateAndEnqueue(absl::StrCat("so", i));
  loop_.Advance(absl::Seconds(5));
  scalers_.Connect("kafka", {"kafka"});
  cluster_.CreateScaledObject("new", R"("triggers":[{"type":"kafka","metadata":{}}])");
  term_->Enqueue({"ns", "new"});
  loop_.Advance(absl::Milliseconds(100));
  EXPECT_EQ(cluster_.Condition("new", api::kReady), "True ScaledObjectReady");
}

TEST_F(LeaderTermTest, StopEndsEverythingWithinTheScalersTimeout) {
  StartTerm();
  scalers_["redis"].delay = absl::Hours(1);
  CreateAndEnqueue("orders");
  loop_.Advance(absl::Seconds(1));
  EXPECT_LE(StopTerm(), absl::Seconds(5));
  cluster_.faults().Clear();
  scalers_.Clear();
  loop_.Advance(absl::Minutes(5));
  EXPECT_THAT(cluster_.faults().Writes(), testing::IsEmpty());
  EXPECT_TRUE(scalers_.calls().empty());
}

TEST_F(LeaderTermTest, StopRightAfterTheStartEndsIt) {
  StartTerm();
  EXPECT_LE(StopTerm(), absl::Seconds(1));
}

TEST_F(LeaderTermTest, ANewTermCarriesOnWithoutAWrite) {
  StartTerm();
  CreateAndEnqueue("orders");
  loop_.Advance(absl::Minutes(2));
  StopTerm();
  cluster_.faults().Clear();
  StartTerm();
  term_->Enqueue({"ns", "orders"});
  loop_.Advance(absl::Minutes(2));
  EXPECT_THAT(cluster_.faults().Writes(), testing::IsEmpty());
  EXPECT_GT(scalers_.Polls(), 0);
}

TEST_F(LeaderTermTest, AFailedStatusWriteOfAPollIsTriedAgainBeforeTheNextPoll) {
  StartTerm();
  CreateAndEnqueue("orders", R"(,"pollingInterval":300)");
  loop_.Advance(absl::Seconds(3));
  cluster_.faults().Fail("patch scaledobjects.keda.sh/status", absl::UnavailableError("down"), 2);
  scalers_.SetValue("redis", 0);
  loop_.Advance(absl::Seconds(300));
  EXPECT_THAT(cluster_.Condition("orders", api::kActive), testing::StartsWith("False"));
}

// Shows R12.
TEST_F(LeaderTermTest, AForeignChangeOfTheStatusIsPutBack) {
  StartTerm();
  CreateAndEnqueue("orders");
  loop_.Advance(absl::Seconds(5));
  cluster_.Patch(kube::ScaledObjects(), "orders", R"({"status":{"hpaName":"stolen"}})", "status");
  term_->Adopt(cluster_.view().ScaledObject({"ns", "orders"}));
  loop_.Advance(absl::Seconds(2));
  EXPECT_EQ(cluster_.ScaledObject("orders").status.hpa_name, "keda-hpa-orders");
}

// Each older one that somebody keeps costs as much as the one in the informer.
TEST_F(LeaderTermTest, WhileOnlyTheStatusChangesTheNewestSnapshotIsTheOnlyOne) {
  StartTerm();
  CreateAndEnqueue("orders");
  loop_.Advance(absl::Seconds(5));
  term_->Enqueue({"ns", "orders"});  // as for the finalizer that it now has
  loop_.Advance(absl::Seconds(5));
  const auto adopt = [this] {
    const auto newest = cluster_.view().ScaledObject({"ns", "orders"});
    term_->Adopt(newest);
    return newest;
  };
  const std::weak_ptr<const api::ScaledObject> before = adopt();
  EXPECT_FALSE(before.expired());
  cluster_.Patch(kube::ScaledObjects(), "orders", R"({"status":{"hpaName":"x"}})", "status");
  const auto newest = adopt();
  EXPECT_TRUE(before.expired()) << "somebody keeps it";
  EXPECT_EQ(term_->registry().Find({"ns", "orders"})->object, newest);
  // A change that means something waits for its reconcile.
  cluster_.Patch(kube::ScaledObjects(), "orders", R"({"spec":{"pollingInterval":7}})");
  EXPECT_NE(adopt(), newest);
  EXPECT_EQ(term_->registry().Find({"ns", "orders"})->object, newest);
}

TEST_F(LeaderTermTest, LosingTheRightToWriteStopsAllWrites) {
  StartTerm();
  CreateAndEnqueue("orders");
  loop_.Advance(absl::Seconds(5));
  may_write_ = absl::FailedPreconditionError("the APIService is somebody else's");
  cluster_.faults().Clear();
  scalers_.SetValue("redis", 0);
  term_->Enqueue({"ns", "orders"});
  loop_.Advance(absl::Minutes(20));
  // Its new master writes what is its own now.
  cluster_.Patch(kube::ScaledObjects(), "orders",
                 R"({"status":{"health":{"s0-queue":{"numberOfFailures":2,"status":"Failing"}}}})",
                 "status");
  term_->Adopt(cluster_.view().ScaledObject({"ns", "orders"}));
  loop_.Advance(absl::Minutes(20));
  EXPECT_THAT(cluster_.faults().Writes(), testing::IsEmpty());
  // And goes.
  may_write_ = absl::OkStatus();
  term_->Enqueue({"ns", "orders"});
  loop_.Advance(absl::Minutes(20));
  EXPECT_EQ(cluster_.Replicas("web"), 0);
}

}  // namespace
}  // namespace outrigger::controller::reconcile
