// SPDX-License-Identifier: Apache-2.0
// Outages and restarts on real parts: nothing that cannot be read is taken for "no work".
#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <string>

#include "tests/cluster/deployed.h"
#include "tests/e2e/scene.h"
#include "tests/e2e/steady_scene.h"
#include "tests/support/wait_for.h"

namespace outrigger::tests {
namespace {

using testing::HasSubstr;

constexpr char kQuickScaleDown[] =
    "advanced: {horizontalPodAutoscalerConfig: {behavior: {scaleDown: {stabilizationWindowSeconds: "
    "0}}}}";

bool Leads(OperatorProcess& process) {
  const absl::StatusOr<std::string> metrics =
      OperatorProcess::HttpGet(process.metrics_port(), "/metrics");
  return metrics.ok() && metrics->find("\noutrigger_leader 1") != std::string::npos;
}

class OutageTest : public testing::Test {
 protected:
  ControlPlane& plane_ = DeployedControlPlane();
};

// Case B010. Case B138.
TEST_F(OutageTest, WithoutFallbackNothingIsScaledInWhileThePluginIsDead) {
  Scene scene(plane_, "outage-hold");
  scene.StartAll();
  scene.ApplyDeployment("worker", 0);
  scene.ApplyScaledObject("worker", "orders", kQuickScaleDown);
  scene.Push("orders", 23);
  scene.WaitUntil("worker", "5 replicas", absl::Seconds(60),
                  [&] { return scene.Replicas("worker") == "5"; });

  scene.plugin_->Kill(SIGKILL);
  ASSERT_TRUE(scene.plugin_->Wait(absl::Seconds(5)).ok());
  scene.WaitUntil("worker", "Ready says which trigger fails", absl::Seconds(30), [&] {
    return scene.Condition("worker", "Ready") != "True" &&
           scene.Condition("worker", "Ready", "message").find("trigger 0 (redis)") !=
               std::string::npos;
  });
  EXPECT_EQ(scene.Condition("worker", "Fallback"), "False");
  scene.StaysTrue("5 replicas through the outage", absl::Seconds(10),
                  [&] { return scene.Replicas("worker") == "5"; });

  scene.StartPlugin();
  scene.WaitUntil("worker", "Ready again", absl::Seconds(20),
                  [&] { return scene.Condition("worker", "Ready") == "True"; });
  EXPECT_EQ(scene.Replicas("worker"), "5");
}

// Shows R16. Shows R17. Case B001.
TEST_F(OutageTest, FallbackBeginsAtTheThirdFailedCycleAndEndsWithOneSuccess) {
  Scene scene(plane_, "outage-fallback");
  scene.StartAll();
  scene.ApplyDeployment("worker", 0);
  scene.ApplyScaledObject(
      "worker", "orders",
      absl::StrCat("fallback: {failureThreshold: 3, replicas: 2}, ", kQuickScaleDown));
  scene.Push("orders", 23);
  scene.WaitUntil("worker", "5 replicas", absl::Seconds(60),
                  [&] { return scene.Replicas("worker") == "5"; });

  // A restart's blink: one cycle may fail, three may not.
  scene.plugin_->Kill(SIGKILL);
  ASSERT_TRUE(scene.plugin_->Wait(absl::Seconds(5)).ok());
  scene.StartPlugin();
  scene.StaysTrue("no fallback in a restart's blink", absl::Seconds(4),
                  [&] { return scene.Condition("worker", "Fallback") != "True"; });

  scene.plugin_->Kill(SIGKILL);
  ASSERT_TRUE(scene.plugin_->Wait(absl::Seconds(5)).ok());
  scene.WaitUntil("worker", "Fallback=True", absl::Seconds(20),
                  [&] { return scene.Condition("worker", "Fallback") == "True"; });
  EXPECT_EQ(scene.Get("so", "worker", ".status.health.s0-redis-orders.numberOfFailures"), "3");
  scene.WaitUntil("worker", "2 replicas", absl::Seconds(30),
                  [&] { return scene.Replicas("worker") == "2"; });

  scene.StartPlugin();
  scene.WaitUntil("worker", "Fallback=False and 5 replicas", absl::Seconds(40), [&] {
    return scene.Condition("worker", "Fallback") == "False" && scene.Replicas("worker") == "5";
  });
  const std::string events =
      *plane_.MustKubectl({"-n", "outage-fallback", "get", "events.events.k8s.io", "-o",
                           "jsonpath={.items[*].reason}"});
  for (const char* reason :
       {"KEDAScaleTargetActivated", "KEDAScalerFailed", "ScaledObjectFallbackActivated",
        "ScaledObjectFallbackDeactivated", "ScaledObjectReady"}) {
    EXPECT_THAT(events, HasSubstr(reason));
  }
}

class RestartTest : public OutageTest {};

// The end state of a reconcile that was cut off after its n-th write is that of one that was not.
TEST_F(RestartTest, KilledAfterAnyWriteItEndsAsIfItHadNotBeen) {
  for (int writes = 1; writes <= 4; ++writes) {
    SCOPED_TRACE(absl::StrCat("killed after write ", writes));
    Scene scene(plane_, absl::StrCat("failpoint-", writes));
    scene.StartRedis();
    scene.StartPlugin();
    scene.ApplyDeployment("worker", 0);
    scene.ApplyScaledObject("worker", "orders");
    scene.StartOperator({.plane = plane_,
                         .plugin_dir = scene.plugins().path(),
                         .env = {{"OUTRIGGER_FAILPOINT", absl::StrCat("after-write:", writes)}},
                         .wait_until_ready = false});
    ASSERT_EQ(scene.operator_->process().Wait(absl::Seconds(40)).value_or(-1), 128 + SIGKILL)
        << scene.operator_->process().OutputTail();
    scene.StartOperator();
    scene.WaitUntil("worker", "Ready with an HPA", absl::Seconds(60), [&] {
      return scene.Condition("worker", "Ready") == "True" &&
             scene.Get("hpa", "keda-hpa-worker", ".spec.metrics[0].external.metric.name") ==
                 "s0-redis-orders" &&
             scene.Get("so", "worker", ".status.hpaName") == "keda-hpa-worker";
    });
    EXPECT_EQ(scene.Get("so", "worker", ".metadata.finalizers"), "[\"finalizer.keda.sh\"]");
    EXPECT_EQ(scene.Get("so", "worker", ".status.externalMetricNames"), "[\"s0-redis-orders\"]");
    EXPECT_EQ(scene.Replicas("worker"), "0");
  }
}

// Shows R25. Shows R32. Case B073.
TEST_F(RestartTest, AnotherReplicaLeadsAfterSigtermAndAfterSigkill) {
  Scene scene(plane_, "failover");
  scene.StartAll();
  scene.WaitUntil("worker", "the first leads", absl::Seconds(30),
                  [&] { return Leads(*scene.operator_); });
  absl::StatusOr<std::unique_ptr<OperatorProcess>> second = OperatorProcess::Start(
      {.plane = plane_, .plugin_dir = scene.plugins().path(), .name = "second"});
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_FALSE(Leads(**second));

  const absl::Time terminated = absl::Now();
  scene.operator_->process().Kill(SIGTERM);
  const absl::Status leads = WaitFor([&] { return Leads(**second); }, absl::Seconds(10),
                                     "the second leads", [] { return "it does not"; });
  EXPECT_TRUE(leads.ok()) << leads;
  EXPECT_LE(absl::Now() - terminated, absl::Milliseconds(4500));
  EXPECT_EQ(scene.operator_->process().Wait(absl::Seconds(10)).value_or(-1), 0);
  EXPECT_LE(absl::Now() - terminated, absl::Seconds(6));

  absl::StatusOr<std::unique_ptr<OperatorProcess>> third = OperatorProcess::Start(
      {.plane = plane_, .plugin_dir = scene.plugins().path(), .name = "third"});
  ASSERT_TRUE(third.ok()) << third.status();
  const absl::Time killed = absl::Now();
  (*second)->process().Kill(SIGKILL);
  const absl::Status took_over = WaitFor([&] { return Leads(**third); }, absl::Seconds(30),
                                         "the third leads", [] { return "it does not"; });
  EXPECT_TRUE(took_over.ok()) << took_over;
  EXPECT_LE(absl::Now() - killed, absl::Seconds(20));
  scene.operator_ = *std::move(third);
}

// A leader that was stopped for longer than its lease finds out before it writes.
TEST_F(RestartTest, LeaderThatWasSuspendedWritesNothingAfterItWakes) {
  Scene scene(plane_, "suspended");
  scene.StartAll();
  scene.ApplyDeployment("worker", 0);
  scene.ApplyScaledObject("worker", "orders");
  scene.WaitUntil("worker", "Ready", absl::Seconds(30),
                  [&] { return scene.Condition("worker", "Ready") == "True"; });
  absl::StatusOr<std::unique_ptr<OperatorProcess>> second = OperatorProcess::Start(
      {.plane = plane_, .plugin_dir = scene.plugins().path(), .name = "second"});
  ASSERT_TRUE(second.ok()) << second.status();
  scene.operator_->process().Kill(SIGSTOP);
  const absl::Status took_over = WaitFor([&] { return Leads(**second); }, absl::Seconds(30),
                                         "the second leads", [] { return "it does not"; });
  ASSERT_TRUE(took_over.ok()) << took_over;
  scene.Push("orders", 8);  // something that the first would like to act upon
  const absl::Time woken = absl::Now();
  scene.operator_->process().Kill(SIGCONT);
  const absl::Status noticed =
      WaitFor([&] { return !Leads(*scene.operator_); }, absl::Seconds(20),
              "the first knows that it leads no more", [] { return "it does not"; });
  EXPECT_TRUE(noticed.ok()) << noticed;
  scene.WaitUntil("worker", "1 replica, by the second", absl::Seconds(20),
                  [&] { return scene.Replicas("worker") != "0"; });
  for (const AuditedRequest& write : OperatorWrites(plane_, woken)) {
    EXPECT_THAT(write.user_agent, HasSubstr("(second)")) << Print({write});
  }
  scene.operator_ = *std::move(second);
}

class SteadyStateTest : public OutageTest {};

// Shows R3. Shows R6. Shows R13. Case B042. Case B075.
TEST_F(SteadyStateTest, NothingIsWrittenWhenNothingChanges) {
  NothingIsWrittenWhenNothingChanges(plane_);
}

class OwnershipTest : public OutageTest {};

TEST_F(OwnershipTest, NothingIsWrittenWhileTheMetricsApiBelongsToSomebodyElse) {
  Scene scene(plane_, "foreign");
  scene.Apply(
      "{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: "
      "v1beta1.external.metrics.k8s.io}, spec: "
      "{group: external.metrics.k8s.io, version: v1beta1, groupPriorityMinimum: 100, "
      "versionPriority: 100, "
      "insecureSkipTLSVerify: true, service: {namespace: keda, name: "
      "keda-operator-metrics-apiserver}}}");
  scene.StartRedis();
  scene.StartPlugin();
  scene.ApplyDeployment("worker", 0);
  scene.ApplyScaledObject("worker", "orders");
  const absl::Time start = absl::Now();
  absl::StatusOr<std::unique_ptr<OperatorProcess>> started =
      OperatorProcess::Start({.plane = plane_, .plugin_dir = scene.plugins().path()});
  ASSERT_TRUE(started.ok()) << started.status();
  scene.operator_ = *std::move(started);
  const absl::Status said = WaitFor(
      [&] {
        return scene.operator_->process().OutputTail().find(
                   "keda/keda-operator-metrics-apiserver") != std::string::npos;
      },
      absl::Seconds(20), "the log says whose it is",
      [&] { return scene.operator_->process().OutputTail(); });
  EXPECT_TRUE(said.ok()) << said;
  EXPECT_THAT(OperatorWrites(plane_, start), testing::IsEmpty())
      << Print(OperatorWrites(plane_, start));
  // It becomes ours: the work starts by itself.
  ASSERT_TRUE(plane_
                  .RegisterExternalMetrics(scene.operator_->metrics_api_port(),
                                           plane_.pki().authority().certificate())
                  .ok());
  scene.WaitUntil("worker", "Ready", absl::Seconds(30),
                  [&] { return scene.Condition("worker", "Ready") == "True"; });
}

}  // namespace
}  // namespace outrigger::tests
