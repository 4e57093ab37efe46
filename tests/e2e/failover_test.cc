// SPDX-License-Identifier: Apache-2.0
// What a reader of metrics and the scaled objects see when another replica of the operator takes
// over. How soon it does: takeover_test.cc.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <absl/time/clock.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/cluster/cache.h"
#include "tests/e2e/metric_reader.h"
#include "tests/e2e/replicas.h"
#include "tests/e2e/scene.h"
#include "tests/support/wait_for.h"

namespace outrigger::tests {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

// From when an address has left the EndpointSlice until kube-apiserver, which watches it, has
// noticed and the reads that it had begun are over.
constexpr absl::Duration kAggregatorNotices = absl::Seconds(2);

using FailoverTest = ReplicasTest;

// Shows R25. Case B073.
TEST_F(FailoverTest, AfterSigkillTheSurvivorAnswersAndKeepsWhatWasActiveForItsCooldown) {
  Scene scene(*plane_, "sigkill");
  scene.StartRedis();
  auto [first, second] = StartTwo();
  constexpr absl::Duration kCooldown = absl::Seconds(8);
  scene.ApplyDeployment("worker", 0);
  scene.Apply(absl::StrCat(
      "{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: worker, namespace: "
      "sigkill}, spec: {scaleTargetRef: {name: worker}, pollingInterval: 1, cooldownPeriod: ",
      absl::ToInt64Seconds(kCooldown), ", triggers: [{type: redis, metadata: {address: \"",
      scene.redis().address(), "\", listName: orders, listLength: \"5\"}}]}}"));
  scene.Push("orders", 3);
  scene.WaitUntil(
      "worker", "1 replica, and that it is active is written down", absl::Seconds(30), [&] {
        return scene.Replicas("worker") == "1" && scene.Condition("worker", "Active") == "True";
      });
  const std::string path = MetricPath("sigkill", "s0-redis-orders", "worker");
  WaitUntilServed(path);

  MetricReaders through(ThroughTheApiService(*plane_), path);
  MetricReaders survivor(DoorOf(second), path, {.keeping = 1, .dialling = 1});
  through.WaitForMore(kManyReads);
  EXPECT_THAT(through.Failures(), IsEmpty()) << Print(through.Failures());
  const absl::Time killed = absl::Now();
  first.controller->process().Kill(SIGKILL);
  first.plugin->Kill(SIGKILL);
  // Its work is done just when nobody looks; the status still says active.
  scene.Drain("orders");
  MustBeOk(WaitFor([&] { return !through.Failures(killed).empty(); }, absl::Seconds(10),
                   "a read that was sent to the dead address", [] { return "none"; }));
  ReportEnd(first);
  const absl::Time settled = absl::Now() + kAggregatorNotices;
  WaitUntilLeads(second, absl::Seconds(60));

  scene.WaitUntil("worker", "no replica after the cooldown", kCooldown + absl::Seconds(10),
                  [&] { return scene.Replicas("worker") == "0"; });
  EXPECT_GE(absl::Now() - LeaseAcquiredAt(), kCooldown);
  through.Stop();
  survivor.Stop();
  EXPECT_THAT(survivor.Failures(), IsEmpty()) << Print(survivor.Failures());
  EXPECT_THAT(through.Failures(settled), IsEmpty()) << Print(through.Failures(settled));
}

// Shows R17.
TEST_F(FailoverTest, FallbackGoesOnThroughATakeOverAndAllReplicasTellTheSame) {
  Scene scene(*plane_, "fallback");
  scene.StartRedis();
  auto [first, second] = StartTwo();
  scene.ApplyDeployment("worker", 0);
  scene.ApplyScaledObject("worker", "orders", "fallback: {failureThreshold: 3, replicas: 2}");
  scene.Push("orders", 23);
  scene.WaitUntil("worker", "5 replicas", absl::Seconds(60),
                  [&] { return scene.Replicas("worker") == "5"; });
  MustBeOk(scene.redis().Stop());
  scene.WaitUntil("worker", "Fallback=True", absl::Seconds(20),
                  [&] { return scene.Condition("worker", "Fallback") == "True"; });

  // Every version of the condition from here on, as a watch sees it.
  const std::string seen_file = scene.plugins().dir().File("fallback.txt");
  absl::StatusOr<std::unique_ptr<Process>> watch = Process::Start(
      {.argv = {KubernetesProgram("kubectl"), "--kubeconfig", plane_->admin_kubeconfig(), "-n",
                "fallback", "get", "so", "worker", "-w", "-o",
                R"(jsonpath={.status.conditions[?(@.type=="Fallback")].status}{"\n"})"},
       .stdout_file = seen_file});
  MustBeOk(watch.status());
  const std::string path = MetricPath("fallback", "s0-redis-orders", "worker");
  // fallback.replicas times the target of 5.
  EXPECT_EQ(ReadMetric(DoorOf(first), path).Value(), "10");
  EXPECT_EQ(ReadMetric(DoorOf(second), path).Value(), "10");

  MetricReaders survivor(DoorOf(second), path, {.keeping = 1, .dialling = 1});
  Terminate(first);
  WaitUntilLeads(second, absl::Seconds(60));
  MustBeOk(first.controller->process().Wait(absl::Seconds(30)).status());
  ReportEnd(first);
  Replica& third = Start(kFirstAddress);
  EXPECT_EQ(ReadMetric(DoorOf(third), path).Value(), "10");
  // Poll cycles of the new leader: one a second.
  scene.StaysTrue("Fallback=True under the new leader", absl::Seconds(4),
                  [&] { return scene.Condition("worker", "Fallback") == "True"; });
  survivor.Stop();
  std::set<std::string> values;
  for (const MetricAnswer& answer : survivor.Answers()) values.insert(answer.Value());
  EXPECT_THAT(values, ElementsAre("10"));

  // A write that the watch shows, so that it has seen all before.
  MustBeOk(scene.redis().Restart());
  const absl::Status ended =
      WaitFor([&] { return ReadFile(seen_file).value_or("").find("False") != std::string::npos; },
              absl::Seconds(30), "the watch sees the end of the fallback",
              [&] { return ReadFile(seen_file).value_or(""); });
  ASSERT_TRUE(ended.ok()) << ended;
  const std::string seen = *ReadFile(seen_file);
  const std::vector<std::string> before =
      absl::StrSplit(seen.substr(0, seen.find("False")), '\n', absl::SkipEmpty());
  EXPECT_THAT(before, Not(IsEmpty()));
  EXPECT_THAT(before, Each("True"));
}

}  // namespace
}  // namespace outrigger::tests

int main(int argc, char** argv) { return outrigger::tests::RunInANetworkOfItsOwn(argc, argv); }
