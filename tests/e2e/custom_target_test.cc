// SPDX-License-Identifier: Apache-2.0
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_replace.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cluster/deployed.h"
#include "tests/e2e/scene.h"

namespace outrigger::tests {
namespace {

using testing::HasSubstr;

// As somebody's operator would bring it.
constexpr char kKind[] = R"(
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Gadget, plural: gadgets, singular: gadget, listKind: GadgetList}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec: {type: object, properties: {replicas: {type: integer}, selector: {type: string}}}
            status: {type: object, properties: {replicas: {type: integer}, selector: {type: string}}}
      subresources:
        status: {}
        scale:
          specReplicasPath: .spec.replicas
          statusReplicasPath: .status.replicas
          labelSelectorPath: .status.selector
)";
constexpr char kRights[] = R"(
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: gadgets-for-outrigger
  labels: {outrigger.dev/aggregate-to-operator: "true"}
rules:
  - {apiGroups: [example.com], resources: [gadgets], verbs: [get]}
  - {apiGroups: [example.com], resources: [gadgets/scale], verbs: [get, patch]}
)";
constexpr char kObjects[] = R"(
apiVersion: example.com/v1
kind: Gadget
metadata: {name: worker, namespace: custom-target}
spec: {replicas: 0}
---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: worker, namespace: custom-target}
spec:
  scaleTargetRef: {apiVersion: example.com/v1, kind: Gadget, name: worker}
  pollingInterval: 1
  cooldownPeriod: 3
  triggers:
    - {type: redis, metadata: {address: "ADDRESS", listName: orders, listLength: "5"}}
)";

std::string Count(Scene& scene) { return scene.Get("gadget", "worker", ".spec.replicas"); }

// The HPA controller needs a selector and a count, which the kind's own controller would write.
void ReportStatus(Scene& scene, const std::string& replicas) {
  const absl::StatusOr<std::string> done = scene.plane().MustKubectl(
      {"-n", "custom-target", "patch", "gadget", "worker", "--subresource=status", "--type=merge",
       "-p", absl::StrCat(R"({"status":{"selector":"app=worker","replicas":)", replicas, "}}")});
  EXPECT_TRUE(done.ok()) << done.status();
}

TEST(CustomTargetTest, AKindOfOthersIsScaledOnceItsRightsAreThere) {
  ControlPlane& plane = DeployedControlPlane();
  ASSERT_TRUE(plane.Apply(kKind).ok());
  ASSERT_TRUE(plane
                  .MustKubectl({"wait", "--for=condition=Established", "--timeout=30s",
                                "crd/gadgets.example.com"})
                  .ok());
  Scene scene(plane, "custom-target");
  scene.StartAll();
  scene.Push("orders", 13);
  scene.Apply(absl::StrReplaceAll(kObjects, {{"ADDRESS", scene.redis().address()}}));
  scene.WaitUntil("worker", "the missing rule is told", absl::Seconds(30), [&] {
    return absl::StrContains(scene.Condition("worker", "Ready", "message"),
                             "needs a ClusterRole with the label outrigger.dev/aggregate");
  });
  EXPECT_THAT(scene.Condition("worker", "Ready", "message"),
              HasSubstr(R"({apiGroups: ["example.com"], resources: [gadgets/scale], verbs: [get, )"
                        "patch]}"));
  EXPECT_EQ(Count(scene), "0");

  ASSERT_TRUE(plane.Apply(kRights).ok());
  scene.WaitUntil("worker", "1 replica", absl::Seconds(60), [&] { return Count(scene) == "1"; });
  scene.WaitUntil("worker", "Ready", absl::Seconds(10),
                  [&] { return scene.Condition("worker", "Ready") == "True"; });
  ReportStatus(scene, "1");
  scene.WaitUntil("worker", "3 replicas by the HPA", absl::Seconds(60),
                  [&] { return Count(scene) == "3"; });
  ReportStatus(scene, "3");
  scene.Drain("orders");
  scene.WaitUntil("worker", "0 replicas", absl::Seconds(60), [&] { return Count(scene) == "0"; });
  EXPECT_TRUE(plane.MustKubectl({"delete", "clusterrole", "gadgets-for-outrigger"}).ok());
}

}  // namespace
}  // namespace outrigger::tests
