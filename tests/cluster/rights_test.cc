// SPDX-License-Identifier: Apache-2.0
// deploy/rbac on a real kube-apiserver: what the operator's token and the HPA controller may do.
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/cluster/deployed.h"

namespace outrigger::tests {
namespace {

using testing::HasSubstr;

constexpr char kOperator[] = "system:serviceaccount:outrigger:outrigger-operator";
constexpr char kHpaController[] = "system:serviceaccount:kube-system:horizontal-pod-autoscaler";

// "--kubeconfig=…" of the operator's service account.
std::string AsOperator() {
  const auto kubeconfig =
      DeployedControlPlane().ServiceAccountKubeconfig("outrigger", "outrigger-operator");
  EXPECT_TRUE(kubeconfig.ok()) << kubeconfig.status();
  return absl::StrCat("--kubeconfig=", kubeconfig.value_or(""));
}

// What the operator may do in a namespace, "resource: verbs" by line, sorted, without what every
// authenticated user may.
std::string RightsIn(const std::string& namespace_name) {
  const auto listed = DeployedControlPlane().MustKubectl(
      {"auth", "can-i", "--list", "--no-headers", "-n", namespace_name, AsOperator()});
  EXPECT_TRUE(listed.ok()) << listed.status();
  std::vector<std::string> rights;
  for (absl::string_view line : absl::StrSplit(listed.value_or(""), '\n', absl::SkipEmpty())) {
    // Resource, non-resource URLs, names, verbs.
    const std::vector<std::string> columns =
        absl::StrSplit(line, absl::ByAnyChar("[]"), absl::SkipWhitespace());
    if (absl::StartsWith(line, " ") || absl::StartsWith(line, "self")) continue;
    const std::string resource(absl::StripAsciiWhitespace(columns.front()));
    rights.push_back(absl::StrCat(resource, ": ", columns.back()));
  }
  std::sort(rights.begin(), rights.end());
  return absl::StrJoin(rights, "\n");
}

constexpr char kRightsEverywhere[] =
    R"(apiservices.apiregistration.k8s.io: list watch
clustertriggerauthentications.keda.sh: list watch
configmaps: get list watch
deployments.apps/scale: get patch
deployments.apps: get list watch
events.events.k8s.io: create
horizontalpodautoscalers.autoscaling: get list watch create update delete
pods: list
replicasets.apps/scale: get patch
replicasets.apps: get
scaledobjects.keda.sh/finalizers: update
scaledobjects.keda.sh/status: patch
scaledobjects.keda.sh: get list watch patch
secrets: get list watch
statefulsets.apps/scale: get patch
statefulsets.apps: get list watch
subjectaccessreviews.authorization.k8s.io: create
triggerauthentications.keda.sh: list watch)";

TEST(RightsTest, OperatorMayDoExactlyWhatIsNamed) {
  EXPECT_EQ(RightsIn("default"), kRightsEverywhere);
}

TEST(RightsTest, OperatorMayLabelPodsInItsOwnNamespaceOnly) {
  EXPECT_THAT(RightsIn("outrigger"), HasSubstr("\npods: list patch\n"));
  EXPECT_THAT(RightsIn("kube-system"), HasSubstr("\npods: list\n"));
}

TEST(RightsTest, OperatorMayWriteLeasesInItsOwnNamespaceOnly) {
  const std::string rights = RightsIn("outrigger");
  EXPECT_THAT(rights, HasSubstr("\nleases.coordination.k8s.io: create\n"));
  EXPECT_THAT(rights, HasSubstr("\nleases.coordination.k8s.io: get update\n"));  // ours only
  EXPECT_THAT(RightsIn("kube-system"), testing::Not(HasSubstr("leases")));
}

TEST(RightsTest, OperatorsTokenIsItself) {
  const auto who = DeployedControlPlane().MustKubectl(
      {"auth", "whoami", AsOperator(), "-o", "jsonpath={.status.userInfo.username}"});
  ASSERT_TRUE(who.ok()) << who.status();
  EXPECT_EQ(*who, kOperator);
}

TEST(RightsTest, OperatorMayReadWhoMayActAsFrontProxy) {
  ControlPlane& plane = DeployedControlPlane();
  const auto read = plane.MustKubectl({"get", "configmap", "extension-apiserver-authentication",
                                       "-n", "kube-system", AsOperator()});
  EXPECT_TRUE(read.ok()) << read.status();
}

constexpr char kWorker[] = R"(
apiVersion: apps/v1
kind: Deployment
metadata: {name: worker, namespace: rights}
spec:
  replicas: 0
  selector: {matchLabels: {app: worker}}
  template:
    metadata: {labels: {app: worker}}
    spec: {containers: [{name: worker, image: worker}]}
)";

TEST(RightsTest, OperatorScalesADeploymentButCannotChangeIt) {
  ControlPlane& plane = DeployedControlPlane();
  ASSERT_TRUE(plane.CreateNamespace("rights").ok());
  ASSERT_TRUE(plane.Apply(kWorker).ok());
  const std::string as_operator = AsOperator();
  const std::vector<std::string> patch = {
      "patch",    "deployment",   "worker", "-n",
      "rights",   "--type=merge", "-p",     "{\"spec\": {\"replicas\": 2}}",
      as_operator};
  std::vector<std::string> scale = patch;
  scale.push_back("--subresource=scale");
  const auto scaled = plane.MustKubectl(scale);
  EXPECT_TRUE(scaled.ok()) << scaled.status();
  const auto replicas = plane.MustKubectl(
      {"get", "deployment", "worker", "-n", "rights", "-o", "jsonpath={.spec.replicas}"});
  ASSERT_TRUE(replicas.ok()) << replicas.status();
  EXPECT_EQ(*replicas, "2");

  const auto changed = plane.Kubectl(patch);
  ASSERT_TRUE(changed.ok()) << changed.status();
  EXPECT_THAT(changed->stderr_text, HasSubstr("cannot patch resource \"deployments\""));
}

struct Access {
  std::string user;
  std::string verb;
  std::string group;
  std::string resource;
  std::string subresource;
};

// Asked as a review: `kubectl auth can-i` forgets the group of a resource that nobody serves.
bool Allowed(const Access& access) {
  const std::string review = absl::StrCat(
      "{apiVersion: authorization.k8s.io/v1, kind: SubjectAccessReview, spec: {user: '",
      access.user, "', resourceAttributes: {namespace: default, verb: ", access.verb,
      ", group: ", access.group, ", resource: ", access.resource, ", subresource: '",
      access.subresource, "'}}}");
  const auto answer = DeployedControlPlane().MustKubectl(
      {"create", "-f", "-", "-o", "jsonpath={.status.allowed}"}, review);
  EXPECT_TRUE(answer.ok()) << answer.status();
  return answer.value_or("") == "true";
}

bool MayReadMetrics(const std::string& verb, const std::string& user) {
  return Allowed({.user = user,
                  .verb = verb,
                  .group = "external.metrics.k8s.io",
                  .resource = "s0-redis-orders"});
}

// Shows R23.
TEST(RightsTest, HpaControllerMayReadExternalMetricsAndOtherAccountsMayNot) {
  EXPECT_TRUE(MayReadMetrics("list", kHpaController));
  EXPECT_TRUE(MayReadMetrics("get", kHpaController));
  EXPECT_FALSE(MayReadMetrics("delete", kHpaController));
  EXPECT_FALSE(MayReadMetrics("list", "system:serviceaccount:default:default"));
  EXPECT_FALSE(MayReadMetrics("list", kOperator));
}

}  // namespace
}  // namespace outrigger::tests
