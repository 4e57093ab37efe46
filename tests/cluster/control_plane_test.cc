// SPDX-License-Identifier: Apache-2.0
#include "tests/cluster/control_plane.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/support/free_port.h"
#include "tests/support/wait_for.h"

namespace outrigger::tests {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr char kDeployment[] = R"(
apiVersion: apps/v1
kind: Deployment
metadata: {name: worker}
spec:
  replicas: 2
  selector: {matchLabels: {app: worker}}
  template:
    metadata: {labels: {app: worker}}
    spec: {containers: [{name: worker, image: worker}]}
)";

TEST(ControlPlaneTest, ServesThePinnedVersion) {
  ControlPlane& plane = SharedControlPlane();
  const auto version = plane.MustKubectl({"get", "--raw", "/version"});
  ASSERT_TRUE(version.ok()) << version.status();
  EXPECT_THAT(*version, HasSubstr("\"gitVersion\": \"v1.36.3\""));
  EXPECT_THAT(*version, HasSubstr("\"minor\": \"36\""));
}

TEST(ControlPlaneTest, ItsControllersMakePodsOfADeployment) {
  ControlPlane& plane = SharedControlPlane();
  ASSERT_TRUE(plane.CreateNamespace("controllers").ok());
  const auto created = plane.MustKubectl({"create", "-n", "controllers", "-f", "-"}, kDeployment);
  ASSERT_TRUE(created.ok()) << created.status();
  std::string phases;
  EXPECT_TRUE(WaitFor(
                  [&] {
                    const auto pods = plane.MustKubectl({"get", "pods", "-n", "controllers", "-o",
                                                         "jsonpath={.items[*].status.phase}"});
                    phases = pods.ok() ? *pods : pods.status().ToString();
                    return phases == "Pending Pending";
                  },
                  absl::Seconds(60), "two pods", [&] { return phases; })
                  .ok())
      << phases;
}

TEST(ControlPlaneTest, ServiceAccountHasOnlyTheRightsThatItIsGiven) {
  ControlPlane& plane = SharedControlPlane();
  ASSERT_TRUE(plane.CreateNamespace("tokens").ok());
  ASSERT_TRUE(plane.MustKubectl({"create", "serviceaccount", "reader", "-n", "tokens"}).ok());
  ASSERT_TRUE(plane
                  .MustKubectl({"create", "rolebinding", "reader", "-n", "tokens",
                                "--clusterrole=view", "--serviceaccount=tokens:reader"})
                  .ok());
  const auto kubeconfig = plane.ServiceAccountKubeconfig("tokens", "reader");
  ASSERT_TRUE(kubeconfig.ok()) << kubeconfig.status();
  const std::string as_reader = absl::StrCat("--kubeconfig=", *kubeconfig);

  const auto who = plane.MustKubectl({"auth", "whoami", as_reader, "-o", "yaml"});
  ASSERT_TRUE(who.ok()) << who.status();
  EXPECT_THAT(*who, HasSubstr("username: system:serviceaccount:tokens:reader"));
  const auto pods = plane.MustKubectl({"get", "pods", "-n", "tokens", as_reader});
  EXPECT_TRUE(pods.ok()) << pods.status();
  const auto secrets = plane.Kubectl({"get", "secrets", "-n", "tokens", as_reader});
  ASSERT_TRUE(secrets.ok()) << secrets.status();
  EXPECT_THAT(secrets->stderr_text, HasSubstr("Forbidden"));
}

TEST(ControlPlaneTest, AuditLogNamesWhoWroteWhat) {
  ControlPlane& plane = SharedControlPlane();
  ASSERT_TRUE(plane.MustKubectl({"create", "configmap", "audited", "-n", "default"}).ok());
  const auto log = ReadFile(plane.audit_log());
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_THAT(
      *log,
      HasSubstr(R"("objectRef":{"resource":"configmaps","namespace":"default","name":"audited")"));
  EXPECT_THAT(*log, HasSubstr(R"("userAgent":"kubectl/v1.36.3)"));
  EXPECT_THAT(*log, Not(HasSubstr("RequestReceived")));
}

TEST(ControlPlaneTest, PublishesWhoMayActAsFrontProxy) {
  ControlPlane& plane = SharedControlPlane();
  const auto config = plane.MustKubectl({"get", "configmap", "extension-apiserver-authentication",
                                         "-n", "kube-system", "-o", "yaml"});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(*config, HasSubstr("front-proxy-client"));
  EXPECT_THAT(*config, HasSubstr("requestheader-client-ca-file"));
}

TEST(ControlPlaneTest, ObjectsOutliveARestartOfTheApiServer) {
  ControlPlane::Options options;
  options.controller_manager = false;
  auto plane = ControlPlane::Start(std::move(options));
  ASSERT_TRUE(plane.ok()) << plane.status();
  ASSERT_TRUE((*plane)->MustKubectl({"create", "configmap", "kept", "-n", "default"}).ok());
  const ControlPlane::Pids before = (*plane)->pids();
  EXPECT_EQ(before.controller_manager, 0);

  ASSERT_TRUE((*plane)->StopApiServer().ok());
  EXPECT_EQ((*plane)->pids().api_server, 0);
  EXPECT_FALSE((*plane)->MustKubectl({"get", "configmap", "kept", "-n", "default"}).ok());
  const absl::Status started = (*plane)->StartApiServer();
  ASSERT_TRUE(started.ok()) << started;
  EXPECT_NE((*plane)->pids().api_server, before.api_server);
  const auto kept = (*plane)->MustKubectl({"get", "configmap", "kept", "-n", "default"});
  EXPECT_TRUE(kept.ok()) << kept.status();

  plane->reset();
  EXPECT_NE(kill(before.etcd, 0), 0) << "etcd outlived the control plane";
}

// The way that tests of the metrics API take: an APIService becomes available only if its name,
// certificate and port are right. openssl's test server says 200 to every path.
TEST(ControlPlaneTest, AggregatorReachesAServerOfThisMachine) {
  ControlPlane& plane = SharedControlPlane();
  const uint16_t port = FreePort();
  const auto served = plane.pki().Issue(
      "adapter", {.common_name = "adapter", .dns_names = {ControlPlane::kMetricsServerName}});
  ASSERT_TRUE(served.ok()) << served.status();
  const auto server =
      Process::Start({.argv = {"openssl", "s_server", "-accept", absl::StrCat(port), "-cert",
                               served->certificate, "-key", served->key, "-www", "-quiet"},
                      .stdout_file = plane.dir().File("s_server.log")});
  ASSERT_TRUE(server.ok()) << server.status();
  const absl::Status registered =
      plane.RegisterExternalMetrics(port, plane.pki().authority().certificate());
  ASSERT_TRUE(registered.ok()) << registered;
  std::string seen;
  EXPECT_TRUE(WaitFor(
                  [&] {
                    const auto condition = plane.MustKubectl(
                        {"get", "apiservice", "v1beta1.external.metrics.k8s.io", "-o",
                         "jsonpath={.status.conditions[?(@.type==\"Available\")]}"});
                    seen = condition.ok() ? *condition : condition.status().ToString();
                    return seen.find("\"status\":\"True\"") != std::string::npos;
                  },
                  absl::Seconds(60), "the APIService to be available", [&] { return seen; })
                  .ok())
      << seen;
  EXPECT_TRUE(plane.MustKubectl({"delete", "apiservice", "v1beta1.external.metrics.k8s.io"}).ok());
}

// Tests of the operator on KEDA's CRDs start here: they serve the same API, but drop what is ours
// in the status.
TEST(ControlPlaneTest, KedasCrdsServeTheSameApiAndPruneOurStatusFields) {
  ControlPlane::Options options;
  options.controller_manager = false;
  const auto plane = ControlPlane::Start(std::move(options));
  ASSERT_TRUE(plane.ok()) << plane.status();
  const absl::Status applied = (*plane)->ApplyDeployFilesWithKedaCrds();
  ASSERT_TRUE(applied.ok()) << applied;
  const absl::Status created = (*plane)->Apply(
      "{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: a, namespace: default}, "
      "spec: {scaleTargetRef: {name: w}, triggers: [{type: redis, metadata: {}}]}}");
  ASSERT_TRUE(created.ok()) << created;
  const auto status = (*plane)->MustKubectl(
      {"patch", "so", "a", "--subresource=status", "--type=merge", "-p",
       R"({"status": {"phase": "Running", "observedGeneration": 1, "hpaName": "h"}})", "-o",
       "jsonpath={.status}"});
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(*status, R"({"hpaName":"h"})");
}

}  // namespace
}  // namespace outrigger::tests
