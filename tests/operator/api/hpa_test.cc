// SPDX-License-Identifier: Apache-2.0
#include "operator/api/hpa.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <string>

namespace outrigger::controller::api {
namespace {

constexpr char kHpa[] = R"({
  "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
  "metadata": {"name": "keda-hpa-web", "namespace": "default", "uid": "u", "resourceVersion": "9"},
  "spec": {
    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
    "minReplicas": 1, "maxReplicas": 10,
    "metrics": [
      {"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "app",
        "target": {"type": "Utilization", "averageUtilization": 60}}},
      {"type": "External", "external": {
        "metric": {"name": "s0-redis-orders", "selector": {"matchLabels": {"scaledobject.keda.sh/name": "web"}}},
        "target": {"type": "AverageValue", "averageValue": "5"}}},
      {"type": "External", "external": {
        "metric": {"name": "s1-lag", "selector": {"matchLabels": {"scaledobject.keda.sh/name": "web"}}},
        "target": {"type": "Value", "value": "2500m"}}},
      {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}}],
    "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}}}})";

TEST(HpaTest, SurvivesJson) {
  const boost::json::value object = boost::json::parse(kHpa);
  const absl::StatusOr<HorizontalPodAutoscaler> hpa = ParseHpa(object);
  ASSERT_TRUE(hpa.ok()) << hpa.status();
  EXPECT_EQ(boost::json::value(HpaToJson(*hpa)), object);
}

TEST(HpaTest, ReadsStatus) {
  boost::json::value object = boost::json::parse(kHpa);
  object.as_object()["status"] = boost::json::parse(R"({"currentReplicas": 2, "desiredReplicas": 5,
    "conditions": [{"type": "ScalingActive", "status": "True", "reason": "ValidMetricFound"}]})");
  const absl::StatusOr<HorizontalPodAutoscaler> hpa = ParseHpa(object);
  ASSERT_TRUE(hpa.ok()) << hpa.status();
  EXPECT_EQ(hpa->status.current_replicas, 2);
  EXPECT_EQ(hpa->status.desired_replicas, 5);
  EXPECT_EQ(StatusOf(hpa->status.conditions, kScalingActive), kTrue);
}

TEST(HpaTest, KeepsMetricsOfOtherTypesAsOthers) {
  const absl::StatusOr<HorizontalPodAutoscaler> hpa =
      ParseHpa(boost::json::parse(R"({"metadata": {"name": "a"},
    "spec": {"maxReplicas": 1, "metrics": [{"type": "Pods", "pods": {"metric": {"name": "x"}}}]}})"));
  ASSERT_TRUE(hpa.ok()) << hpa.status();
  EXPECT_EQ(hpa->spec.metrics[0].type, "Pods");
}

TEST(HpaTest, NamesTheFieldOfABadTarget) {
  const absl::Status status =
      ParseHpa(boost::json::parse(R"({"metadata": {"name": "a"}, "spec": {"maxReplicas": 1,
    "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "AverageValue",
    "averageValue": "much"}}}]}})"))
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              testing::HasSubstr("spec.metrics[0].resource.target.averageValue: quantity: want"));
}

}  // namespace
}  // namespace outrigger::controller::api
