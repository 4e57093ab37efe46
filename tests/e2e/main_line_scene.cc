// SPDX-License-Identifier: Apache-2.0
#include "tests/e2e/main_line_scene.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_replace.h>
#include <gtest/gtest.h>

#include <regex>
#include <string>

#include "tests/cluster/cache.h"
#include "tests/e2e/scene.h"

namespace outrigger::tests {
namespace {

// As a KEDA user would write them.
constexpr char kDeployment[] = R"(
apiVersion: apps/v1
kind: Deployment
metadata: {name: worker, namespace: main-line}
spec:
  replicas: 0
  selector: {matchLabels: {app: worker}}
  template:
    metadata: {labels: {app: worker}}
    spec:
      containers:
        - {name: worker, image: worker, env: [{name: REDIS_ADDRESS, value: "HOST_AND_PORT"}]}
)";
constexpr char kScaledObject[] = R"(
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: worker, namespace: main-line}
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

// What `kubectl get` prints. Ages differ from run to run.
std::string Table(ControlPlane& plane, const std::string& kind) {
  const std::string table =
      plane.MustKubectl({"-n", "main-line", "get", kind}).value_or("(kubectl failed)");
  return std::regex_replace(table, std::regex("[0-9]+m?[0-9]*s *\n"), "AGE\n");
}

// What is the user's of the workload: all but its replicas and its status.
std::string WorkloadAsWritten(Scene& scene) {
  std::string written;
  for (const char* field : {".metadata.labels", ".metadata.ownerReferences", ".metadata.finalizers",
                            ".spec.selector", ".spec.template"}) {
    absl::StrAppend(&written, field, "=", scene.Get("deployment", "worker", field), "\n");
  }
  return written;
}

// Shows R26.
void ExpectEachStepWasTimed(OperatorProcess& process) {
  const std::string metrics =
      OperatorProcess::HttpGet(process.metrics_port(), "/metrics").value_or("");
  for (const char* step : {"event", "queue", "reconcile", "read", "decide", "write", "status"}) {
    const std::string series =
        absl::StrCat("\noutrigger_loop_step_duration_seconds_count{step=\"", step, "\"} ");
    const size_t at = metrics.find(series);
    ASSERT_NE(at, std::string::npos) << step << "\n" << metrics;
    EXPECT_NE(metrics[at + series.size()], '0') << step;
  }
}

}  // namespace

void QueueDrivesDeploymentFromZeroToFiveAndBack(ControlPlane& plane) {
  Scene scene(plane, "main-line");
  scene.StartAll();
  scene.Apply(absl::StrReplaceAll(kDeployment, {{"HOST_AND_PORT", scene.redis().address()}}));
  const std::string written = WorkloadAsWritten(scene);
  scene.Apply(kScaledObject);
  scene.WaitUntil("worker", "Ready", absl::Seconds(20),
                  [&] { return scene.Condition("worker", "Ready") == "True"; });
  EXPECT_EQ(scene.Replicas("worker"), "0");
  EXPECT_EQ(scene.Get("hpa", "keda-hpa-worker", ".spec.metrics[0].external.metric.name"),
            "s0-redis-orders");

  scene.Push("orders", 23);
  scene.WaitUntil("worker", "5 replicas", absl::Seconds(40),
                  [&] { return scene.Replicas("worker") == "5"; });
  scene.WaitUntil("worker", "the HPA sees 5 replicas", absl::Seconds(20), [&] {
    return scene.Get("hpa", "keda-hpa-worker", ".status.currentReplicas") == "5";
  });
  // The workload is as it was, its pods run what the user wrote and nothing beside it, and whoever
  // last wrote the replicas is Kubernetes' own controller.
  EXPECT_EQ(WorkloadAsWritten(scene), written);
  EXPECT_EQ(scene.Get("pods", "", ".items[*].spec['initContainers','containers'][*].name"),
            "worker worker worker worker worker");
  EXPECT_EQ(scene.Get("deployment", "worker",
                      ".metadata.managedFields[?(@.subresource=='scale')].manager"),
            "kube-controller-manager");
  EXPECT_EQ(Table(plane, "so"), Golden("kubectl_get_so.txt"));
  EXPECT_EQ(Table(plane, "hpa"), Golden("kubectl_get_hpa.txt"));

  scene.Drain("orders");
  scene.WaitUntil("worker", "0 replicas", absl::Seconds(60),
                  [&] { return scene.Replicas("worker") == "0"; });
  EXPECT_EQ(scene.Condition("worker", "Active"), "False");
  ExpectEachStepWasTimed(*scene.operator_);
}

}  // namespace outrigger::tests
