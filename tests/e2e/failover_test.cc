// SPDX-License-Identifier: Apache-2.0
// Two replicas of the operator behind one APIService, in a network of this program's own: what a
// reader of metrics and the scaled objects see when the leader ends.
//
// The Pods, and what becomes of their addresses, are as in a cluster: see OperatorPods.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <absl/time/clock.h>
#include <curl/curl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "host/base/status.h"
#include "tests/cluster/cache.h"
#include "tests/e2e/metric_reader.h"
#include "tests/e2e/operator_pods.h"
#include "tests/e2e/scene.h"
#include "tests/support/network_namespace.h"
#include "tests/support/wait_for.h"

namespace outrigger::tests {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr char kFirstAddress[] = "10.99.0.1";
constexpr char kSecondAddress[] = "10.99.0.2";
constexpr uint16_t kMetricsApiPort = 6443;  // of deploy/deployment.yaml
constexpr absl::Duration kTakeOverAfterSigterm = absl::Milliseconds(4500);
constexpr absl::Duration kTakeOverAfterSigkill = absl::Seconds(20);
constexpr absl::Duration kEndAfterSigterm = absl::Seconds(5);
// From when an address has left the EndpointSlice until kube-apiserver, which watches it, has
// noticed and the reads that it had begun are over.
constexpr absl::Duration kAggregatorNotices = absl::Seconds(2);
constexpr size_t kManyReads = 200;

void MustBeOk(const absl::Status& status) { ASSERT_TRUE(status.ok()) << status; }

// One replica: what is in its Pod, and the Pod.
struct Replica {
  std::string address;
  PluginDir plugins;
  std::unique_ptr<Process> plugin;
  std::unique_ptr<OperatorProcess> controller;
  std::string pod;
};

std::unique_ptr<ControlPlane> StartPlane() {
  absl::StatusOr<std::unique_ptr<ControlPlane>> plane = ControlPlane::Start(
      {.api_server_arguments = {"--enable-aggregator-routing=true",
                                // Else it looks for an interface with a default route.
                                absl::StrCat("--advertise-address=", kFirstAddress)}});
  MustBeOk(plane.status());
  MustBeOk((*plane)->ApplyDeployFiles());
  MustBeOk(OperatorPods(**plane).Deploy());
  return *std::move(plane);
}

class FailoverTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { plane_ = StartPlane(); }
  static void TearDownTestSuite() { plane_.reset(); }

  void TearDown() override {
    // While there is an operator that takes their finalizers off.
    (void)plane_->Kubectl({"delete", "so", "--all", "-A", "--timeout=20s"});
    for (const std::unique_ptr<Replica>& replica : replicas_) End(*replica);
    // They were killed, and the next test's need not wait until their lease is over.
    (void)plane_->Kubectl({"delete", "lease", "outrigger-operator", "-n", "outrigger"});
  }

  // A replica that serves, and whose Pod is published.
  Replica& Start(const std::string& address, std::vector<std::string> arguments = {}) {
    replicas_.push_back(std::make_unique<Replica>());
    Replica& replica = *replicas_.back();
    replica.address = address;
    Launch(replica, std::move(arguments));
    return replica;
  }

  // The first of the two leads.
  std::pair<Replica&, Replica&> StartTwo(const std::vector<std::string>& arguments = {}) {
    Replica& first = Start(kFirstAddress, arguments);
    WaitUntilLeads(first, absl::Seconds(30));
    Replica& second = Start(kSecondAddress, arguments);
    return {first, second};
  }

  static void WaitUntilLeads(Replica& replica, absl::Duration limit) {
    const absl::Status leads = WaitFor([&] { return replica.controller->Leads(); }, limit,
                                       absl::StrCat("the replica ", replica.address, " leads"),
                                       [&] { return replica.controller->process().OutputTail(); });
    ASSERT_TRUE(leads.ok()) << leads;
  }

  // What the kubelet does with a Pod that was deleted, to the end of the operator.
  void Terminate(Replica& replica) {
    MustBeOk(pods().Delete(replica.pod));
    replica.controller->process().Kill(SIGTERM);
  }

  void ReportEnd(Replica& replica) {
    MustBeOk(pods().ReportEnd(replica.pod));
    WaitUntilPublished(Not(Contains(replica.address)), replica.address + " is not published");
  }

  MetricDoor DoorOf(const Replica& replica) const {
    return DirectlyAt(*plane_, replica.address, kMetricsApiPort);
  }
  // Until the metric is had through the APIService, too.
  void WaitUntilServed(const std::string& path) {
    MetricAnswer last;
    const absl::Status served = WaitFor(
        [&] {
          last = ReadMetric(ThroughTheApiService(*plane_), path);
          return last.ok();
        },
        absl::Seconds(60), "the metric through the APIService", [&] { return Print({last}); });
    ASSERT_TRUE(served.ok()) << served;
  }

  std::string LeaseField(const std::string& name) {
    return plane_
        ->MustKubectl({"get", "lease", "outrigger-operator", "-n", "outrigger", "-o",
                       absl::StrCat("jsonpath={.spec.", name, "}")})
        .value_or("");
  }
  absl::Time LeaseAcquiredAt() {
    const std::string text = LeaseField("acquireTime");
    absl::Time acquired;
    std::string error;
    EXPECT_TRUE(absl::ParseTime(absl::RFC3339_full, text, &acquired, &error)) << text << error;
    return acquired;
  }

  static OperatorPods pods() { return OperatorPods(*plane_); }

  static std::unique_ptr<ControlPlane> plane_;
  std::vector<std::unique_ptr<Replica>> replicas_;

 private:
  void Launch(Replica& replica, std::vector<std::string> arguments) {
    absl::StatusOr<std::string> pod = pods().Run(replica.address);
    MustBeOk(pod.status());
    replica.pod = *std::move(pod);
    absl::StatusOr<std::unique_ptr<Process>> plugin =
        StartPlugin(replica.plugins, "redis", "outrigger-scaler-redis");
    MustBeOk(plugin.status());
    replica.plugin = *std::move(plugin);
    arguments.push_back("--pod-name=" + replica.pod);
    absl::StatusOr<std::unique_ptr<OperatorProcess>> controller =
        OperatorProcess::Start({.plane = *plane_,
                                .plugin_dir = replica.plugins.path(),
                                .name = replica.pod,
                                .arguments = std::move(arguments),
                                .address = replica.address,
                                .metrics_api_port = kMetricsApiPort});
    MustBeOk(controller.status());
    replica.controller = *std::move(controller);
    WaitUntilPublished(Contains(replica.address), replica.address + " is published");
  }

  static void WaitUntilPublished(const testing::Matcher<std::set<std::string>>& wanted,
                                 const std::string& what) {
    std::set<std::string> last;
    const absl::Status reached = WaitFor(
        [&] {
          last = pods().PublishedAddresses().value_or(std::set<std::string>());
          return testing::Value(last, wanted);
        },
        absl::Seconds(30), what, [&] { return testing::PrintToString(last); });
    ASSERT_TRUE(reached.ok()) << reached;
  }

  static void End(Replica& replica) {
    replica.controller.reset();
    replica.plugin.reset();
    (void)pods().ReportEnd(replica.pod);
  }
};

std::unique_ptr<ControlPlane> FailoverTest::plane_;

// Shows R25. Shows R32.
TEST_F(FailoverTest, AfterSigtermOfTheLeaderNoReadFails) {
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
  WaitUntilLeads(second, absl::Seconds(10));
  EXPECT_LE(absl::Now() - terminated, kTakeOverAfterSigterm);
  EXPECT_EQ(LeaseField("holderIdentity"), second.pod);
  EXPECT_EQ(first.controller->process().Wait(absl::Seconds(10)).value_or(-1), 0);
  EXPECT_LE(absl::Now() - terminated, kEndAfterSigterm);
  // The kubelet takes its time to see that the last container has ended.
  readers.WaitForMore(kManyReads);
  ReportEnd(first);
  readers.WaitForMore(kManyReads);
  readers.Stop();
  EXPECT_THAT(readers.Failures(), IsEmpty()) << Print(readers.Failures());
}

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
  WaitUntilLeads(second, absl::Seconds(30));
  EXPECT_LE(absl::Now() - killed, kTakeOverAfterSigkill);

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
  WaitUntilLeads(second, absl::Seconds(10));
  MustBeOk(first.controller->process().Wait(absl::Seconds(10)).status());
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

TEST_F(FailoverTest, APluginThatHangsHoldsTheEndOfTheLeaderNoLonger) {
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
  WaitUntilLeads(second, absl::Seconds(10));
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

int main(int argc, char** argv) {
  const absl::Status moved = outrigger::tests::EnterNetworkNamespace(
      {outrigger::tests::kFirstAddress, outrigger::tests::kSecondAddress});
  if (!moved.ok()) {
    std::fprintf(stderr, "a network of its own: %s\n", outrigger::host::Describe(moved).c_str());
    return 1;
  }
  curl_global_init(CURL_GLOBAL_DEFAULT);  // not thread-safe, and readers have threads
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
