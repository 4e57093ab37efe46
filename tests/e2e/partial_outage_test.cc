// SPDX-License-Identifier: Apache-2.0
// A part is out: one trigger of two, or some of the sources behind a plugin. The rest goes on.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>
#include <absl/time/clock.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "tests/cluster/deployed.h"
#include "tests/e2e/hpa_watch.h"
#include "tests/e2e/scene.h"
#include "tests/support/black_hole.h"
#include "tests/support/scripted/scripted_plugin.h"

namespace outrigger::tests {
namespace {

constexpr char kBothMetrics[] = "s0-redis-orders s1-scripted-orders";

// An object with a trigger of the redis plugin and one of the scripted one.
class TwoTriggersTest : public testing::TestWithParam<const char*> {
 protected:
  TwoTriggersTest() : scene_(DeployedControlPlane(), absl::StrCat("two-triggers-", GetParam())) {}

  void SetUp() override {
    absl::StatusOr<std::unique_ptr<ScriptedPlugin>> scripted =
        ScriptedPlugin::Start({.name = "scripted", .folder = scene_.plugins().path()});
    ASSERT_TRUE(scripted.ok()) << scripted.status();
    scripted_ = *std::move(scripted);
    scene_.StartAll();
    scene_.ApplyDeployment("worker", 0);
  }

  void ApplyScaledObject(int max_replicas) {
    scene_.Apply(absl::StrCat(
        "{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: worker, namespace: ",
        scene_.namespace_name(),
        "}, spec: {scaleTargetRef: {name: worker}, pollingInterval: 1, maxReplicaCount: ",
        max_replicas, ", triggers: [{type: redis, metadata: {address: \"", scene_.redis().address(),
        "\", listName: orders, listLength: \"5\"}}, {type: scripted, metadata: {script: "
        "orders}}]}}"));
  }

  bool Says(const std::string& type, const std::string& status) {
    return scene_.Condition("worker", type) == status;
  }

  // What the plugin that is left says: 8 items with 5 per replica.
  void PushToTheOther() {
    if (PluginIsRedis()) {
      const absl::Status set = scripted_->SetValue("orders", 8);
      ASSERT_TRUE(set.ok()) << set;
    } else {
      scene_.Push("orders", 8);
    }
  }

  bool PluginIsRedis() const { return absl::string_view(GetParam()) == "redis"; }
  Process& Plugin() { return PluginIsRedis() ? *scene_.plugin_ : scripted_->plugin().process(); }

  Scene scene_;
  std::unique_ptr<ScriptedPlugin> scripted_;
};

// A new operator has never heard the specs of the trigger whose plugin is down: they are in the
// HPA.
TEST_P(TwoTriggersTest, TheHpaKeepsBothMetricsWhileOnePluginIsDownAndTheOperatorRestarts) {
  const HpaWatch watch(scene_.plane(), {"-n", scene_.namespace_name()},
                       "{.spec.metrics[*].external.metric.name}");
  ApplyScaledObject(10);
  scene_.WaitUntil("worker", "Ready", absl::Seconds(30), [&] { return Says("Ready", "True"); });

  Plugin().Kill(SIGKILL);
  ASSERT_TRUE(Plugin().Wait(absl::Seconds(5)).ok());
  scene_.operator_->process().Kill(SIGTERM);
  ASSERT_EQ(scene_.operator_->process().Wait(absl::Seconds(20)).value_or(-1), 0);
  scene_.StartOperator();
  scene_.WaitUntil("worker", "not Ready", absl::Seconds(30),
                   [&] { return Says("Ready", "False"); });
  // The HPA must be written, and still has both; and the trigger that is left scales.
  ApplyScaledObject(7);
  scene_.WaitUntil("worker", "maxReplicas 7", absl::Seconds(20), [&] {
    return scene_.Get("hpa", "keda-hpa-worker", ".spec.maxReplicas") == "7";
  });
  PushToTheOther();
  scene_.WaitUntil("worker", "2 replicas", absl::Seconds(30),
                   [&] { return scene_.Replicas("worker") == "2"; });

  if (PluginIsRedis()) {
    scene_.StartPlugin();
  } else {
    ASSERT_TRUE(scripted_->plugin().Restart().ok());
  }
  scene_.WaitUntil("worker", "Ready again", absl::Seconds(30),
                   [&] { return Says("Ready", "True"); });
  EXPECT_THAT(watch.Seen(), testing::SizeIs(testing::Ge(2)));
  EXPECT_THAT(watch.Seen(), testing::Each(kBothMetrics));
}

INSTANTIATE_TEST_SUITE_P(Down, TwoTriggersTest, testing::Values("redis", "scripted"),
                         [](const testing::TestParamInfo<const char*>& info) {
                           return std::string(info.param);
                         });

// The plugin is well, and says of each of these sources that it does not answer. Case B081.
TEST(BlackHoleSourcesTest, FiveBlackHoledHostsLeaveTheHealthyObjectOfThePluginAlone) {
  Scene scene(DeployedControlPlane(), "black-holes");
  scene.StartAll();
  scene.ApplyDeployment("worker", 0);
  scene.ApplyScaledObject("worker", "orders");
  scene.WaitUntil("worker", "Ready", absl::Seconds(30),
                  [&] { return scene.Condition("worker", "Ready") == "True"; });
  std::vector<BlackHole> holes(5);
  std::vector<std::string> documents;
  for (size_t i = 0; i < holes.size(); ++i) {
    documents.push_back(scene.DeploymentYaml(absl::StrCat("hole-", i), 0));
    documents.push_back(
        scene.ScaledObjectYaml(absl::StrCat("hole-", i), "orders", "", holes[i].address()));
  }
  scene.Apply(absl::StrJoin(documents, "\n---\n"));
  const std::string ready = ".items[*].status.conditions[?(@.type=='Ready')].message";
  scene.WaitUntil("hole-4", "all five say that their host does not answer", absl::Seconds(40), [&] {
    const std::vector<std::string> parts =
        absl::StrSplit(scene.Get("so", "", ready), "no connection in time");
    return parts.size() == holes.size() + 1;
  });

  const std::string read = absl::StrCat(
      "/apis/external.metrics.k8s.io/v1beta1/namespaces/black-holes/s0-redis-orders"
      "?labelSelector=scaledobject.keda.sh%2Fname%3Dworker");
  scene.StaysTrue("reads of the healthy metric are answered", absl::Seconds(10),
                  [&] { return scene.plane().MustKubectl({"get", "--raw", read}).ok(); });
  scene.Push("orders", 23);
  const absl::Time pushed = absl::Now();
  scene.WaitUntil("worker", "activated by the next poll", absl::Seconds(20),
                  [&] { return scene.Replicas("worker") != "0"; });
  EXPECT_LE(absl::Now() - pushed, absl::Seconds(5));
  scene.WaitUntil("worker", "5 replicas", absl::Seconds(30),
                  [&] { return scene.Replicas("worker") == "5"; });
  EXPECT_EQ(scene.Condition("worker", "Ready"), "True");
  EXPECT_THAT(scene.operator_->Log(), testing::Not(testing::HasSubstr("plugin does not answer")))
      << "the breaker has opened";
}

}  // namespace
}  // namespace outrigger::tests
