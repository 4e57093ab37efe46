// SPDX-License-Identifier: Apache-2.0
// How soon another replica leads, and how soon the one before has ended: limits of the wall clock,
// so nothing else runs beside this program (SERIAL). What else is to be seen of a take-over:
// failover_test.cc.
#include <absl/time/clock.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <string>

#include "tests/e2e/metric_reader.h"
#include "tests/e2e/replicas.h"
#include "tests/e2e/scene.h"

namespace outrigger::tests {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr absl::Duration kTakeOverAfterSigterm = absl::Milliseconds(4500);
constexpr absl::Duration kTakeOverAfterSigkill = absl::Seconds(20);
constexpr absl::Duration kEndAfterSigterm = absl::Seconds(5);

using TakeOverTest = ReplicasTest;

// Shows R25. Shows R32.
TEST_F(TakeOverTest, AfterSigtermOfTheLeaderNoReadFails) {
  Scene scene(*plane_, "sigterm");
  scene.StartRedis();
  auto [first, second] = StartTwo();
  scene.ApplyDeployment("worker", 0);
  scene.ApplyScaledObject("worker", "orders");
  scene.Push("orders", 23);
  const std::string path = MetricPath("sigterm", "s0-redis-orders", "worker");
  WaitUntilServed(path);

  MetricReaders readers(ThroughTheApiService(*plane_), path);
  readers.WaitForMore(kManyReads);
  const absl::Time terminated = absl::Now();
  Terminate(first);
  WaitUntilLeads(second, absl::Seconds(30));
  EXPECT_LE(absl::Now() - terminated, kTakeOverAfterSigterm);
  EXPECT_EQ(LeaseField("holderIdentity"), second.pod);
  EXPECT_EQ(first.controller->process().Wait(absl::Seconds(30)).value_or(-1), 0);
  EXPECT_LE(absl::Now() - terminated, kEndAfterSigterm);
  // The kubelet takes its time to see that the last container has ended.
  readers.WaitForMore(kManyReads);
  ReportEnd(first);
  readers.WaitForMore(kManyReads);
  readers.Stop();
  EXPECT_THAT(readers.Failures(), IsEmpty()) << Print(readers.Failures());
}

// Shows R25.
TEST_F(TakeOverTest, AfterSigkillOfTheLeaderAnotherLeadsOnceTheLeaseIsOver) {
  auto [first, second] = StartTwo();
  const absl::Time killed = absl::Now();
  first.controller->process().Kill(SIGKILL);
  WaitUntilLeads(second, absl::Seconds(60));
  EXPECT_LE(absl::Now() - killed, kTakeOverAfterSigkill);
  EXPECT_EQ(LeaseField("holderIdentity"), second.pod);
}

TEST_F(TakeOverTest, APluginThatHangsHoldsTheEndOfTheLeaderNoLonger) {
  Scene scene(*plane_, "hung");
  scene.StartRedis();
  // Each read is a call, and each call hangs for longer than the operator may take to end.
  auto [first, second] = StartTwo({"--metric-freshness=0s", "--scaler-timeout=20s"});
  scene.ApplyDeployment("worker", 0);
  scene.ApplyScaledObject("worker", "orders");
  const std::string path = MetricPath("hung", "s0-redis-orders", "worker");
  WaitUntilServed(path);

  first.plugin->Kill(SIGSTOP);
  MetricReaders hanging(DoorOf(first), path, {.keeping = 2, .dialling = 2});
  const absl::Time terminated = absl::Now();
  Terminate(first);
  WaitUntilLeads(second, absl::Seconds(30));
  EXPECT_LE(absl::Now() - terminated, kTakeOverAfterSigterm);
  EXPECT_EQ(first.controller->process().Wait(absl::Seconds(30)).value_or(-1), 0);
  EXPECT_LE(absl::Now() - terminated, kEndAfterSigterm);
  hanging.Stop();
  ASSERT_THAT(hanging.Answers(), Not(IsEmpty()));
  const MetricAnswer told = hanging.Answers().front();
  EXPECT_EQ(told.code, 503) << Print({told});
  EXPECT_THAT(told.text, HasSubstr("this replica is stopping"));
}

}  // namespace
}  // namespace outrigger::tests

int main(int argc, char** argv) { return outrigger::tests::RunInANetworkOfItsOwn(argc, argv); }
