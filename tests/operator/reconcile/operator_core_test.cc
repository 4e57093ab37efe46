// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/operator_core.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/operator/support/memory_cluster.h"
#include "tests/operator/support/scripted_scalers.h"

namespace outrigger::controller::reconcile {
namespace {

// One replica over a cluster that has a ScaledObject "orders" on Deployment "web".
class OperatorCoreTest : public testing::Test {
 protected:
  OperatorCoreTest() {
    scalers_.Connect("redis", {"redis"});
    scalers_.SetValue("redis", 10);
    cluster_.CreateDeployment("web", 2);
    cluster_.CreateScaledObject("orders", R"("triggers":[{"type":"redis","metadata":{}}])");
    loop_.Spawn(RunCore());
    loop_.Settle();
    EXPECT_TRUE(core_.Synced());
  }
  ~OperatorCoreTest() override {
    core_.Stop();
    while (!ended_) loop_.Advance(absl::Seconds(1));
  }

  host::Task<void> RunCore() {
    co_await core_.Run();
    ended_ = true;
  }
  // A replica loses its lease and lives on.
  void StopLeading() { loop_.Run(Stopped()); }
  host::Task<bool> Stopped() {
    co_await core_.StopLeading(host::Deadline::Never());
    co_return true;
  }
  absl::StatusOr<std::vector<polling::MetricReading>> Read() {
    return loop_.Run(core_.metric_source().Read(
        {.namespace_name = "ns", .scaled_object = "orders", .metric_name = "s0-queue"},
        host::Deadline::After(loop_.clock(), absl::Seconds(5))));
  }

  CoreLoop loop_;
  MemoryCluster cluster_{loop_};
  ScriptedScalers scalers_{loop_.clock()};
  runtime::MetricsSink metrics_;
  bool ended_ = false;
  OperatorCore core_{{.clock = loop_.clock(),
                      .api = cluster_.api(),
                      .leader_api = cluster_.api(),
                      .scalers = scalers_,
                      .metrics = metrics_,
                      .strand = loop_.executor(),
                      .log = host::Logger(host::MakeNullSink())},
                     {.term = {.seed = 1}, .informers = {.api_service = false}}};
};

// Shows R25: nobody polls on a standby, so what failed in its own term would fail for ever.
TEST_F(OperatorCoreTest, AReplicaThatLostTheLeadAnswersByWhatTheNextOnePublishes) {
  core_.StartLeading();
  loop_.Advance(absl::Seconds(5));
  scalers_.SetError("redis", absl::UnavailableError("down"));
  loop_.Advance(absl::Minutes(3));
  ASSERT_EQ(cluster_.ScaledObject("orders").status.health["s0-queue"].number_of_failures, 3);
  StopLeading();
  EXPECT_FALSE(Read().ok()) << "it was published as unhealthy";

  scalers_.SetValue("redis", 7);
  cluster_.Patch(kube::ScaledObjects(), "orders",
                 R"({"status":{"health":{"s0-queue":{"numberOfFailures":0,"status":"Happy"}}}})",
                 "status");
  loop_.Settle();
  const auto readings = Read();
  ASSERT_TRUE(readings.ok()) << readings.status();
  ASSERT_EQ(readings->size(), 1u);
  EXPECT_EQ((*readings)[0].value, 7);
}

// The edit is refused for its limits, and asks another question too.
TEST_F(OperatorCoreTest, ReadsGoByTheSpecThatRuns) {
  core_.StartLeading();
  loop_.Advance(absl::Seconds(5));
  scalers_.SetValue("other", 99);
  cluster_.Patch(kube::ScaledObjects(), "orders", R"({"spec":{"minReplicaCount":9,
      "maxReplicaCount":3,"triggers":[{"type":"redis","metadata":{"script":"other"}}]}})");
  loop_.Advance(absl::Seconds(20));
  ASSERT_EQ(cluster_.Condition("orders", api::kReady), "False ScaledObjectCheckFailed");
  const auto readings = Read();
  ASSERT_TRUE(readings.ok()) << readings.status();
  ASSERT_EQ(readings->size(), 1u);
  EXPECT_EQ((*readings)[0].value, 10);
  EXPECT_EQ(scalers_.Polls("other"), 0);
}

}  // namespace
}  // namespace outrigger::controller::reconcile
