// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/kinds.h"

#include <boost/json/parse.hpp>

namespace outrigger::conformance {
namespace {

namespace json = boost::json;
namespace kube = controller::kube;

constexpr char kTemplate[] = R"({
  "metadata": {"labels": {"app": "web"}},
  "spec": {
    "containers": [{
      "name": "main", "image": "example:1", "imagePullPolicy": "IfNotPresent", "resources": {},
      "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}],
    "dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "schedulerName": "default-scheduler",
    "securityContext": {}, "terminationGracePeriodSeconds": 30}})";

const char* TextOf(Kind kind) {
  switch (kind) {
    case Kind::kConfigMap:
      return R"({"apiVersion": "v1", "kind": "ConfigMap", "data": {"key": "value"}})";
    case Kind::kSecret:
      return R"({"apiVersion": "v1", "kind": "Secret", "data": {"key": "dmFsdWU="}})";
    case Kind::kLease:
      return R"({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15}})";
    case Kind::kDeployment:
      return R"({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {
        "progressDeadlineSeconds": 600, "revisionHistoryLimit": 10,
        "selector": {"matchLabels": {"app": "web"}},
        "strategy": {"type": "RollingUpdate",
                     "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}}})";
    case Kind::kStatefulSet:
      return R"({"apiVersion": "apps/v1", "kind": "StatefulSet", "spec": {
        "podManagementPolicy": "OrderedReady", "revisionHistoryLimit": 10, "serviceName": "web",
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
        "selector": {"matchLabels": {"app": "web"}},
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}}})";
    case Kind::kHpa:
      return R"({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "maxReplicas": 10, "metrics": [{"type": "External", "external": {
          "metric": {"name": "m", "selector": {"matchLabels": {"a": "b"}}},
          "target": {"type": "AverageValue", "averageValue": "5"}}}]}})";
    case Kind::kScaledObject:
      return R"({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "spec": {
        "scaleTargetRef": {"name": "web"},
        "triggers": [{"type": "redis", "metadata": {"listName": "l", "listLength": "5"}}]}})";
    case Kind::kUnknown:
      return R"({"apiVersion": "example.org/v1", "kind": "Nothing"})";
  }
  return "{}";
}

}  // namespace

const std::vector<Kind>& AllKinds() {
  static const auto* const kKinds = new std::vector<Kind>{
      Kind::kConfigMap,   Kind::kSecret, Kind::kLease,       Kind::kDeployment,
      Kind::kStatefulSet, Kind::kHpa,    Kind::kScaledObject};
  return *kKinds;
}

const kube::Resource& ResourceOf(Kind kind) {
  static const auto* const kNothings = new kube::Resource{"example.org", "v1", "nothings", true};
  switch (kind) {
    case Kind::kConfigMap:
      return kube::ConfigMaps();
    case Kind::kSecret:
      return kube::Secrets();
    case Kind::kLease:
      return kube::Leases();
    case Kind::kDeployment:
      return kube::Deployments();
    case Kind::kStatefulSet:
      return kube::StatefulSets();
    case Kind::kHpa:
      return kube::HorizontalPodAutoscalers();
    case Kind::kScaledObject:
      return kube::ScaledObjects();
    case Kind::kUnknown:
      break;
  }
  return *kNothings;
}

json::object Sample(Kind kind, const std::string& name) {
  json::object object = json::parse(TextOf(kind)).as_object();
  object["metadata"] = json::object{{"name", name}, {"labels", json::object{{"team", "x"}}}};
  if (kind == Kind::kDeployment || kind == Kind::kStatefulSet) {
    object["spec"].as_object()["template"] = json::parse(kTemplate);
  }
  return object;
}

}  // namespace outrigger::conformance
