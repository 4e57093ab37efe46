// SPDX-License-Identifier: Apache-2.0
// Outages and restarts on real parts: nothing that cannot be read is taken for "no work".
#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <set>
#include <string>
#include <utility>
#include <vector>

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

// All that is to be seen of the object in the end, whoever was killed on the way.
std::string EndState(Scene& scene) {
  const char kStatus[] =
      "jsonpath={.metadata.finalizers} {.status.hpaName} {.status.externalMetricNames} "
      "{.status.health}{range .status.conditions[*]}\n{.type}={.status} {.reason}: "
      "{.message}{end}";
  const absl::StatusOr<std::string> status = scene.plane().MustKubectl(
      {"-n", scene.namespace_name(), "get", "so", "worker", "-o", kStatus});
  return absl::StrCat("replicas ", scene.Replicas("worker"), "\nHPA ",
                      scene.Get("hpa", "keda-hpa-worker", ".spec"), "\n", status.value_or("?"));
}

// An operator that kills itself right after its n-th write, and one after it that does not. `items`
// are in the list from before the first. Every n is tried until there is no n-th write.
class KilledAfterAnyWriteTest : public OutageTest, public testing::WithParamInterface<int> {
 protected:
  void Prepare(Scene& scene) {
    scene.StartRedis();
    scene.StartPlugin();
    if (GetParam() > 0) scene.Push("orders", GetParam());
    scene.ApplyDeployment("worker", 0);
    scene.ApplyScaledObject("worker", "orders");
  }

  // That of an operator that was left alone, once nothing changes any more.
  std::string UnkilledEnd() {
    Scene scene(plane_, absl::StrCat("unkilled-", GetParam()));
    Prepare(scene);
    scene.StartOperator();
    std::string last;
    absl::Time since = absl::Now();
    const absl::Status settled = WaitFor(
        [&] {
          std::string state = EndState(scene);
          if (state != last) since = absl::Now();
          last = std::move(state);
          return absl::Now() - since >= kSettled && IsWorking(scene);
        },
        absl::Seconds(90), "the end state of an operator that is left alone", [&] { return last; });
    EXPECT_TRUE(settled.ok()) << settled;
    return last;
  }

  bool IsWorking(Scene& scene) const {
    return scene.Condition("worker", "Ready") == "True" &&
           scene.Condition("worker", "Active") == (GetParam() > 0 ? "True" : "False");
  }

  // Whether the operator was killed; false: it does not write that often.
  bool EndsAs(const std::string& wanted, int writes) {
    SCOPED_TRACE(absl::StrCat("killed after write ", writes));
    Scene scene(plane_, absl::StrCat("killed-", GetParam(), "-", writes));
    Prepare(scene);
    OperatorAudit audit(plane_);
    scene.StartOperator({.plane = plane_,
                         .plugin_dir = scene.plugins().path(),
                         .env = {{"OUTRIGGER_FAILPOINT", absl::StrCat("after-write:", writes)}},
                         .wait_until_ready = false});
    scene.WaitUntil("worker", "the end of the operator, or of its work", absl::Seconds(60), [&] {
      return !scene.operator_->process().Running() || EndState(scene) == wanted;
    });
    if (scene.operator_->process().Running()) return false;
    EXPECT_EQ(scene.operator_->process().Wait(absl::Seconds(1)).value_or(-1), 128 + SIGKILL)
        << scene.operator_->process().OutputTail();
    for (const AuditedRequest& write : WritesOf(audit.Take())) written_.insert(write.resource);
    scene.StartOperator();
    std::string last;
    const absl::Status same = WaitFor(
        [&] {
          last = EndState(scene);
          return last == wanted;
        },
        absl::Seconds(60), wanted, [&] { return last; });
    EXPECT_TRUE(same.ok()) << same;
    return true;
  }

  std::set<std::string> written_;  // by operators that were killed: what kinds of objects
  static constexpr absl::Duration kSettled = absl::Seconds(6);
};

TEST_P(KilledAfterAnyWriteTest, EndsAsIfItHadNotBeen) {
  const std::string wanted = UnkilledEnd();
  int writes = 1;
  while (!HasFailure() && EndsAs(wanted, writes)) ++writes;
  // So it was killed before and after each of these.
  const std::set<std::string> always = {"scaledobjects", "horizontalpodautoscalers",
                                        "scaledobjects/status", "events"};
  EXPECT_THAT(written_, testing::IsSupersetOf(always)) << writes;
  if (GetParam() > 0) EXPECT_THAT(written_, testing::Contains("deployments/scale"));
}

INSTANTIATE_TEST_SUITE_P(Items, KilledAfterAnyWriteTest, testing::Values(0, 8),
                         [](const testing::TestParamInfo<int>& info) {
                           return std::string(info.param > 0 ? "Some" : "None");
                         });

// A leader that was stopped for longer than its lease finds out before it writes.
TEST_F(RestartTest, LeaderThatWasSuspendedWritesNothingAfterItWakes) {
  constexpr absl::Duration kSuspended = absl::Seconds(25);
  Scene scene(plane_, "suspended");
  scene.StartAll();
  scene.ApplyDeployment("worker", 0);
  scene.ApplyScaledObject("worker", "orders");
  scene.WaitUntil("worker", "Ready", absl::Seconds(30),
                  [&] { return scene.Condition("worker", "Ready") == "True"; });
  absl::StatusOr<std::unique_ptr<OperatorProcess>> second = OperatorProcess::Start(
      {.plane = plane_, .plugin_dir = scene.plugins().path(), .name = "second"});
  ASSERT_TRUE(second.ok()) << second.status();
  const absl::Time suspended = absl::Now();
  scene.operator_->process().Kill(SIGSTOP);
  const absl::Status took_over = WaitFor([&] { return (*second)->Leads(); }, absl::Seconds(30),
                                         "the second leads", [] { return "it does not"; });
  ASSERT_TRUE(took_over.ok()) << took_over;
  scene.StaysTrue("the second leads", kSuspended - (absl::Now() - suspended),
                  [&] { return (*second)->Leads(); });
  scene.Push("orders", 8);  // something that the first would like to act upon
  const absl::Time woken = absl::Now();
  EXPECT_GE(woken - suspended, kSuspended);
  scene.operator_->process().Kill(SIGCONT);
  const absl::Status noticed =
      WaitFor([&] { return !scene.operator_->Leads(); }, absl::Seconds(20),
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
  OperatorAudit audit(plane_);
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
  scene.WaitUntil("worker", "it leads, so it might write", absl::Seconds(30),
                  [&] { return scene.operator_->Leads(); });
  std::vector<AuditedRequest> writes;
  scene.StaysTrue("it leads and writes nothing", absl::Seconds(5), [&] {
    writes = WritesOf(audit.Take());
    return writes.empty() && scene.operator_->Leads();
  });
  EXPECT_THAT(writes, testing::IsEmpty()) << Print(writes);
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
