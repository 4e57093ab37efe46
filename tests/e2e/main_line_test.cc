// SPDX-License-Identifier: Apache-2.0
// The main line on real parts: a Redis list drives a Deployment from 0 to N and back, through the
// plugin, the operator and the real HPA controller.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_replace.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <string>

#include "tests/cluster/cache.h"
#include "tests/cluster/deployed.h"
#include "tests/e2e/operator_process.h"
#include "tests/support/redis_server.h"
#include "tests/support/wait_for.h"

namespace outrigger::tests {
namespace {

constexpr char kManifest[] = R"(
apiVersion: apps/v1
kind: Deployment
metadata: {name: worker, namespace: NAMESPACE}
spec:
  replicas: 0
  selector: {matchLabels: {app: worker}}
  template:
    metadata: {labels: {app: worker}}
    spec:
      containers:
        - {name: worker, image: worker, env: [{name: REDIS_ADDRESS, value: "ADDRESS"}]}
---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: worker, namespace: NAMESPACE}
spec:
  scaleTargetRef: {name: worker}
  pollingInterval: 1
  cooldownPeriod: 3
  maxReplicaCount: 10
  advanced:
    horizontalPodAutoscalerConfig:
      behavior: {scaleDown: {stabilizationWindowSeconds: 0}}
  triggers:
    - type: redis
      metadata: {addressFromEnv: REDIS_ADDRESS, listName: orders, listLength: "5"}
)";

std::string Golden(const std::string& name) {
  return ReadFile(SourcePath("tests/e2e/golden/" + name)).value_or("(no golden file)");
}

class MainLineTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    plane_ = &DeployedControlPlane();
    redis_ = *RedisServer::Start();
    plugins_ = new PluginDir();
    plugin_ = *StartPlugin(*plugins_, "redis", "outrigger-scaler-redis");
    absl::StatusOr<std::unique_ptr<OperatorProcess>> started =
        OperatorProcess::Start({.plane = *plane_, .plugin_dir = plugins_->path()});
    ASSERT_TRUE(started.ok()) << started.status();
    operator_ = *std::move(started);
    ASSERT_TRUE(plane_
                    ->RegisterExternalMetrics(operator_->metrics_api_port(),
                                              plane_->pki().authority().certificate())
                    .ok());
  }
  static void TearDownTestSuite() {
    operator_.reset();
    plugin_.reset();
    redis_.reset();
    delete plugins_;
  }

  std::string Get(const std::string& what, const std::string& name, const std::string& path) {
    return plane_
        ->MustKubectl({"-n", "main-line", "get", what, name, "-o", "jsonpath={" + path + "}"})
        .value_or("");
  }
  std::string Replicas() { return Get("deployment", "worker", ".spec.replicas"); }
  void Push(int items) {
    std::vector<std::string> command = {"RPUSH", "orders"};
    for (int i = 0; i < items; ++i) command.push_back(absl::StrCat("order-", i));
    ASSERT_TRUE(redis_->Command(command).ok());
  }
  void WaitForReplicas(const std::string& wanted, absl::Duration timeout) {
    const absl::Status reached = WaitFor(
        [&] { return Replicas() == wanted; }, timeout, absl::StrCat(wanted, " replicas"),
        [&] {
          return absl::StrCat("replicas ", Replicas(), "\n", Get("so", "worker", ".status"), "\n",
                              Get("hpa", "keda-hpa-worker", ".status"), "\n", operator_->Log());
        });
    ASSERT_TRUE(reached.ok()) << reached;
  }

  static ControlPlane* plane_;
  static std::unique_ptr<RedisServer> redis_;
  static PluginDir* plugins_;
  static std::unique_ptr<Process> plugin_;
  static std::unique_ptr<OperatorProcess> operator_;
};

ControlPlane* MainLineTest::plane_ = nullptr;
std::unique_ptr<RedisServer> MainLineTest::redis_;
PluginDir* MainLineTest::plugins_ = nullptr;
std::unique_ptr<Process> MainLineTest::plugin_;
std::unique_ptr<OperatorProcess> MainLineTest::operator_;

// Ages differ from run to run.
std::string WithoutAges(std::string table) {
  return std::regex_replace(table, std::regex("[0-9]+m?[0-9]*s *\n"), "AGE\n");
}

// Shows R1. Shows R2. Shows R7. Shows R8. Shows R23. Shows R27.
TEST_F(MainLineTest, QueueDrivesDeploymentFromZeroToFiveAndBack) {
  ASSERT_TRUE(plane_->CreateNamespace("main-line").ok());
  ASSERT_TRUE(plane_
                  ->Apply(absl::StrReplaceAll(
                      kManifest, {{"NAMESPACE", "main-line"}, {"ADDRESS", redis_->address()}}))
                  .ok());
  const absl::Status ready = WaitFor(
      [&] {
        return Get("so", "worker", ".status.conditions[?(@.type=='Ready')].status") == "True";
      },
      absl::Seconds(20), "Ready=True",
      [&] { return absl::StrCat(Get("so", "worker", ".status"), "\n", operator_->Log()); });
  ASSERT_TRUE(ready.ok()) << ready;
  EXPECT_EQ(Replicas(), "0");
  EXPECT_EQ(Get("hpa", "keda-hpa-worker", ".spec.metrics[0].external.metric.name"),
            "s0-redis-orders");

  Push(23);
  WaitForReplicas("5", absl::Seconds(40));
  const absl::Status shown =
      WaitFor([&] { return Get("hpa", "keda-hpa-worker", ".status.currentReplicas") == "5"; },
              absl::Seconds(20), "the HPA sees 5 replicas",
              [&] { return Get("hpa", "keda-hpa-worker", ".status"); });
  EXPECT_TRUE(shown.ok()) << shown;
  EXPECT_EQ(WithoutAges(*plane_->MustKubectl({"-n", "main-line", "get", "so"})),
            Golden("kubectl_get_so.txt"));
  EXPECT_EQ(WithoutAges(*plane_->MustKubectl({"-n", "main-line", "get", "hpa"})),
            Golden("kubectl_get_hpa.txt"));

  ASSERT_TRUE(redis_->Command({"DEL", "orders"}).ok());
  WaitForReplicas("0", absl::Seconds(60));
  EXPECT_EQ(Get("so", "worker", ".status.conditions[?(@.type=='Active')].status"), "False");
}

}  // namespace
}  // namespace outrigger::tests
