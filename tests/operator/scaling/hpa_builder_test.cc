// SPDX-License-Identifier: Apache-2.0
#include "operator/scaling/hpa_builder.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <limits>
#include <string>
#include <vector>

#include "operator/api/scale_target.h"

namespace outrigger::controller::scaling {
namespace {

using api::MetricTargetType;
using testing::ElementsAre;
using testing::HasSubstr;

const api::GroupVersionKindResource kDeployment = {"apps", "v1", "Deployment", "deployments"};

api::ScaledObject Web() {
  api::ScaledObject object;
  object.meta.name = "web";
  object.meta.namespace_name = "default";
  object.meta.uid = "u-1";
  object.meta.labels = {{"team", "a"}, {"secret-label", "b"}};
  object.meta.annotations = {{"note", "x"}};
  object.spec.scale_target_ref.name = "web-target";
  object.spec.triggers = {{.type = "redis"}};
  return object;
}

std::vector<TriggerSpecs> RedisSpecs() {
  return {{.trigger_index = 0, .specs = {{.name = "redis-orders", .target = 5}}}};
}

api::HorizontalPodAutoscaler Build(const api::ScaledObject& object,
                                   const std::vector<TriggerSpecs>& external) {
  absl::StatusOr<api::HorizontalPodAutoscaler> hpa = BuildHpa(object, external, kDeployment);
  EXPECT_TRUE(hpa.ok()) << hpa.status();
  return hpa.ok() ? *std::move(hpa) : api::HorizontalPodAutoscaler();
}

// Shows R7, R8.
TEST(HpaBuilderTest, PrintsTheWholeHpa) {
  api::ScaledObject object = Web();
  object.meta.annotations[api::kHpaExcludedLabelsAnnotation] = "secret-label";
  object.spec.min_replica_count = 2;
  object.spec.max_replica_count = 9;
  object.spec.advanced.hpa_behavior =
      boost::json::parse(R"({"scaleDown":{"stabilizationWindowSeconds":0}})");
  const boost::json::value wanted = boost::json::parse(R"({
    "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "keda-hpa-web", "namespace": "default",
      "labels": {"app.kubernetes.io/name": "keda-hpa-web", "app.kubernetes.io/part-of": "web",
        "app.kubernetes.io/managed-by": "keda-operator", "scaledobject.keda.sh/name": "web",
        "team": "a"},
      "annotations": {"note": "x", "scaledobject.keda.sh/hpa-excluded-labels": "secret-label"},
      "ownerReferences": [{"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "web",
        "uid": "u-1", "controller": true, "blockOwnerDeletion": true}]},
    "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web-target"},
      "minReplicas": 2, "maxReplicas": 9,
      "metrics": [{"type": "External", "external": {
        "metric": {"name": "s0-redis-orders",
                   "selector": {"matchLabels": {"scaledobject.keda.sh/name": "web"}}},
        "target": {"type": "AverageValue", "averageValue": "5"}}}],
      "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}}}})");
  const boost::json::value got = api::HpaToJson(Build(object, RedisSpecs()));
  EXPECT_EQ(got, wanted) << boost::json::serialize(got);
}

TEST(HpaBuilderTest, DefaultsAreOneToAHundred) {
  const api::HorizontalPodAutoscaler hpa = Build(Web(), RedisSpecs());
  EXPECT_EQ(hpa.spec.min_replicas, 1);
  EXPECT_EQ(hpa.spec.max_replicas, 100);
  EXPECT_TRUE(hpa.spec.behavior.is_null());
}

TEST(HpaBuilderTest, MinZeroIsOneForTheHpa) {
  api::ScaledObject object = Web();
  object.spec.min_replica_count = 0;
  EXPECT_EQ(Build(object, RedisSpecs()).spec.min_replicas, 1);
}

TEST(HpaBuilderTest, TheTargetIsTheResolvedOne) {
  const absl::StatusOr<api::HorizontalPodAutoscaler> hpa =
      BuildHpa(Web(), RedisSpecs(), {"argoproj.io", "v1alpha1", "Rollout", "rollouts"});
  ASSERT_TRUE(hpa.ok()) << hpa.status();
  EXPECT_EQ(hpa->spec.scale_target_ref.api_version, "argoproj.io/v1alpha1");
  EXPECT_EQ(hpa->spec.scale_target_ref.kind, "Rollout");
}

// Case B035.
TEST(HpaBuilderTest, LabelsAndAnnotationsComeFromTheObject) {
  api::ScaledObject object = Web();
  object.meta.labels["app.kubernetes.io/managed-by"] = "helm";  // overrides, as in KEDA
  const api::HorizontalPodAutoscaler hpa = Build(object, RedisSpecs());
  EXPECT_EQ(hpa.meta.labels.at("app.kubernetes.io/managed-by"), "helm");
  EXPECT_EQ(hpa.meta.labels.at("team"), "a");
  EXPECT_EQ(hpa.meta.annotations, object.meta.annotations);
  EXPECT_FALSE(hpa.meta.labels.contains("app.kubernetes.io/version"));
}

// Case B035.
TEST(HpaBuilderTest, ExcludedLabelsAreNotTrimmed) {
  api::ScaledObject object = Web();
  object.meta.annotations[api::kHpaExcludedLabelsAnnotation] = "team, secret-label";
  const api::HorizontalPodAutoscaler hpa = Build(object, RedisSpecs());
  EXPECT_FALSE(hpa.meta.labels.contains("team"));
  EXPECT_TRUE(hpa.meta.labels.contains("secret-label"));
}

TEST(HpaBuilderTest, ALongNameIsCutToALabelValue) {
  api::ScaledObject object = Web();
  object.spec.advanced.hpa_name = absl::StrCat(std::string(61, 'a'), "-.b-too-long");
  const api::HorizontalPodAutoscaler hpa = Build(object, RedisSpecs());
  EXPECT_EQ(hpa.meta.name, object.spec.advanced.hpa_name);
  EXPECT_EQ(hpa.meta.labels.at("app.kubernetes.io/name"), std::string(61, 'a'));
}

// Shows R8. Case B042.
TEST(HpaBuilderTest, MetricsAreOrderedByTypeThenTrigger) {
  api::ScaledObject object = Web();
  object.spec.triggers = {
      {.type = "cpu", .metadata = {{"value", "60"}}, .metric_type = "Utilization"},
      {.type = "redis"},
      {.type = "memory",
       .metadata = {{"value", "1Gi"}, {"containerName", "app"}},
       .metric_type = "AverageValue"},
      {.type = "kafka", .metric_type = "Value"},
      {.type = "memory", .metadata = {{"value", "250Mi"}}, .metric_type = "AverageValue"},
  };
  const std::vector<TriggerSpecs> external = {
      {.trigger_index = 3,
       .specs = {{.name = "kafka-b", .target = 2.5, .type = MetricTargetType::kValue},
                 {.name = "kafka-a", .target = 1}}},
      {.trigger_index = 1, .specs = {{.name = "redis-orders", .target = 5}}}};
  const api::HorizontalPodAutoscaler hpa = Build(object, external);
  std::vector<std::string> order;
  for (const api::HpaMetric& metric : hpa.spec.metrics) {
    order.push_back(absl::StrCat(metric.type, " ", metric.name));
  }
  EXPECT_THAT(order, ElementsAre("ContainerResource memory", "External s1-redis-orders",
                                 "External s3-kafka-b", "External s3-kafka-a", "Resource cpu",
                                 "Resource memory"));
  EXPECT_EQ(hpa.spec.metrics[2].target.value->ToString(), "2500m");
  EXPECT_FALSE(hpa.spec.metrics[2].target.average_value.has_value());
  EXPECT_EQ(hpa.spec.metrics[4].target.average_utilization, 60);
  EXPECT_THAT(ExternalMetricNames(external),
              ElementsAre("s1-redis-orders", "s3-kafka-b", "s3-kafka-a"));
  EXPECT_THAT(ResourceMetricNames(hpa), ElementsAre("cpu", "memory"));
}

// Case B033.
TEST(HpaBuilderTest, IsNotBuiltBeforeEveryTriggerHasASpec) {
  api::ScaledObject object = Web();
  object.spec.triggers.push_back({.type = "kafka"});
  for (const std::vector<TriggerSpecs>& external :
       {RedisSpecs(), std::vector<TriggerSpecs>{RedisSpecs()[0], {.trigger_index = 1}}}) {
    const absl::Status status = BuildHpa(object, external, kDeployment).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()), HasSubstr("spec.triggers[1] (kafka)"));
  }
}

// Case B033.
TEST(HpaBuilderTest, IsNotBuiltWithoutMetrics) {
  api::ScaledObject object = Web();
  object.spec.triggers.clear();
  EXPECT_EQ(BuildHpa(object, {}, kDeployment).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(HpaBuilderTest, ABadResourceTriggerIsRefusedByField) {
  api::ScaledObject object = Web();
  object.spec.triggers = {{.type = "cpu", .metadata = {{"value", "60"}}, .metric_type = "Value"}};
  const absl::Status status = BuildHpa(object, {}, kDeployment).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("spec.triggers[0].metricType"));
}

struct SpecCase {
  const char* name;
  MetricSpec spec;
  const char* message;  // empty: accepted
};
class PluginSpecTest : public testing::TestWithParam<SpecCase> {};

// A plugin may lie: its words are checked before they reach the API server.
TEST_P(PluginSpecTest, IsChecked) {
  const absl::Status status =
      BuildHpa(Web(), {{.trigger_index = 0, .specs = {GetParam().spec}}}, kDeployment).status();
  if (*GetParam().message == '\0') {
    EXPECT_TRUE(status.ok()) << status;
    return;
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(status.message()),
            absl::StrCat("spec.triggers[0] (redis): ", GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Specs, PluginSpecTest,
    testing::ValuesIn<SpecCase>({
        {"Thousandth", {.name = "a", .target = 0.001}, ""},
        {"TooSmall", {.name = "a", .target = 0.0004}, "target: want at least 0.001, got 0.0004"},
        {"Zero", {.name = "a", .target = 0}, "target: want a number > 0 and < 9.2e15, got 0"},
        {"Negative", {.name = "a", .target = -3}, "target: want a number > 0 and < 9.2e15, got -3"},
        {"NaN",
         {.name = "a", .target = std::numeric_limits<double>::quiet_NaN()},
         "target: want a number > 0 and < 9.2e15, got nan"},
        {"Infinite",
         {.name = "a", .target = std::numeric_limits<double>::infinity()},
         "target: want a number > 0 and < 9.2e15, got inf"},
        {"NoName",
         {.name = "", .target = 1},
         "metric name: want text without '/' and '%', got \"\""},
        {"Slash",
         {.name = "a/b", .target = 1},
         "metric name: want text without '/' and '%', got \"a/b\""},
        {"Utilization",
         {.name = "a", .target = 1, .type = MetricTargetType::kUtilization},
         "metric type: want AverageValue or Value, got Utilization"},
    }),
    [](const testing::TestParamInfo<SpecCase>& info) { return std::string(info.param.name); });

TEST(HpaBuilderTest, TwoMetricsOfOneNameAreRefusedWhateverTheCase) {
  const absl::Status status =
      BuildHpa(Web(),
               {{.trigger_index = 0,
                 .specs = {{.name = "orders", .target = 1}, {.name = "Orders", .target = 1}}}},
               kDeployment)
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("got s0-Orders"));
}

TEST(HpaBuilderTest, TheIndexKeepsEqualNamesApart) {
  api::ScaledObject object = Web();
  object.spec.triggers = {{.type = "redis"}, {.type = "redis"}};
  const api::HorizontalPodAutoscaler hpa =
      Build(object, {{.trigger_index = 0, .specs = {{.name = "redis-orders", .target = 5}}},
                     {.trigger_index = 1, .specs = {{.name = "redis-orders", .target = 5}}}});
  ASSERT_EQ(hpa.spec.metrics.size(), 2u);
  EXPECT_EQ(hpa.spec.metrics[1].name, "s1-redis-orders");
}

TEST(HpaBuilderTest, SpecsComeBackFromTheHpa) {
  api::ScaledObject object = Web();
  object.spec.triggers = {
      {.type = "redis"},
      {.type = "cpu", .metadata = {{"value", "60"}}, .metric_type = "Utilization"},
      {.type = "kafka"}};
  const std::vector<TriggerSpecs> external = {
      {.trigger_index = 0, .specs = {{.name = "redis-orders", .target = 7.5}}},
      {.trigger_index = 2,
       .specs = {{.name = "kafka-a", .target = 3, .type = MetricTargetType::kValue}}}};
  // Through JSON, as after a restart of the operator.
  const absl::StatusOr<api::HorizontalPodAutoscaler> hpa =
      api::ParseHpa(api::HpaToJson(Build(object, external)));
  ASSERT_TRUE(hpa.ok()) << hpa.status();
  EXPECT_EQ(SpecsFromHpa(*hpa, 0), external[0]);
  EXPECT_EQ(SpecsFromHpa(*hpa, 2), external[1]);
  EXPECT_TRUE(SpecsFromHpa(*hpa, 1).specs.empty());
}

TEST(HpaBuilderTest, MetricTypeOfAnExternalTrigger) {
  EXPECT_EQ(*ExternalMetricType({.type = "redis"}, 0), MetricTargetType::kAverageValue);
  EXPECT_EQ(*ExternalMetricType({.type = "redis", .metric_type = "Value"}, 0),
            MetricTargetType::kValue);
  const absl::Status status =
      ExternalMetricType({.type = "redis", .metric_type = "Utilization"}, 3).status();
  EXPECT_EQ(std::string(status.message()),
            "spec.triggers[3].metricType: want AverageValue or Value for a redis trigger, got "
            "\"Utilization\"");
}

}  // namespace
}  // namespace outrigger::controller::scaling
