// SPDX-License-Identifier: Apache-2.0
#include "operator/scaling/hpa_diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <functional>
#include <string>

namespace outrigger::controller::scaling {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

api::HpaMetric External(const char* name, const char* target) {
  api::HpaMetric metric;
  metric.type = api::kExternalMetric;
  metric.name = name;
  metric.match_labels = {{"scaledobject.keda.sh/name", "web"}};
  metric.target.average_value = *api::Quantity::Parse(target);
  return metric;
}

api::HpaMetric Cpu(int32_t percent) {
  api::HpaMetric metric;
  metric.type = api::kResourceMetric;
  metric.name = "cpu";
  metric.target.type = api::MetricTargetType::kUtilization;
  metric.target.average_utilization = percent;
  return metric;
}

api::HorizontalPodAutoscaler Desired() {
  api::HorizontalPodAutoscaler hpa;
  hpa.meta.name = "keda-hpa-web";
  hpa.meta.labels = {{"team", "a"}};
  hpa.meta.annotations = {{"note", "x"}};
  hpa.meta.owner_references = {{"keda.sh/v1alpha1", "ScaledObject", "web", "u-1", true, true}};
  hpa.spec.scale_target_ref = {"apps/v1", "Deployment", "web"};
  hpa.spec.min_replicas = 1;
  hpa.spec.max_replicas = 5;
  hpa.spec.metrics = {External("s0-redis", "5"), External("s1-redis", "1500m"), Cpu(60)};
  return hpa;
}

// What the API server makes of a desired HPA that nobody touched.
api::HorizontalPodAutoscaler AsStored(api::HorizontalPodAutoscaler hpa) {
  hpa.meta.uid = "h-1";
  hpa.meta.resource_version = "7";
  hpa.status.desired_replicas = 3;
  return hpa;
}

struct DifferenceCase {
  const char* name;
  std::function<void(api::HorizontalPodAutoscaler&)> change;  // of the found one
  const char* reason;                                         // empty: no difference
};
class HpaDifferenceTest : public testing::TestWithParam<DifferenceCase> {};

// Shows R3, R7.
TEST_P(HpaDifferenceTest, IsFoundInWhatIsOurs) {
  api::HorizontalPodAutoscaler found = AsStored(Desired());
  GetParam().change(found);
  const std::string reason = HpaDifference(Desired(), found).value_or("");
  if (*GetParam().reason == '\0') {
    EXPECT_THAT(reason, IsEmpty());
  } else {
    EXPECT_EQ(reason, GetParam().reason);
  }
}

using Hpa = api::HorizontalPodAutoscaler;
INSTANTIATE_TEST_SUITE_P(
    Changes, HpaDifferenceTest,
    testing::ValuesIn<DifferenceCase>({
        {"None", [](Hpa&) {}, ""},
        {"Status", [](Hpa& hpa) { hpa.status.desired_replicas = 9; }, ""},
        {"MinDefaulted", [](Hpa& hpa) { hpa.spec.min_replicas.reset(); }, ""},
        {"ForeignLabel", [](Hpa& hpa) { hpa.meta.labels["argocd"] = "y"; }, ""},
        {"ForeignAnnotation", [](Hpa& hpa) { hpa.meta.annotations["argocd"] = "y"; }, ""},
        {"ForeignOwner",
         [](Hpa& hpa) { hpa.meta.owner_references.push_back({"v1", "Pod", "p", "u-2"}); }, ""},
        {"QuantityText",
         [](Hpa& hpa) { hpa.spec.metrics[1].target.average_value = *api::Quantity::Parse("1.5"); },
         ""},
        {"Min", [](Hpa& hpa) { hpa.spec.min_replicas = 2; }, "spec.minReplicas: want 1, found 2"},
        {"Max", [](Hpa& hpa) { hpa.spec.max_replicas = 9; }, "spec.maxReplicas: want 5, found 9"},
        {"Target", [](Hpa& hpa) { hpa.spec.scale_target_ref.name = "api"; },
         "spec.scaleTargetRef: want apps/v1 Deployment web, found apps/v1 Deployment api"},
        {"MetricTarget",
         [](Hpa& hpa) { hpa.spec.metrics[0].target.average_value = api::Quantity::FromInt(6); },
         "spec.metrics: want External s0-redis AverageValue 5, not found as such"},
        {"MetricSelector", [](Hpa& hpa) { hpa.spec.metrics[0].match_labels.clear(); },
         "spec.metrics: want External s0-redis AverageValue 5, not found as such"},
        {"MetricExpressions", [](Hpa& hpa) { hpa.spec.metrics[0].has_match_expressions = true; },
         "spec.metrics: want External s0-redis AverageValue 5, not found as such"},
        {"MetricMissing", [](Hpa& hpa) { hpa.spec.metrics.pop_back(); },
         "spec.metrics: want Resource cpu Utilization 60, not found as such"},
        {"MetricTooMany", [](Hpa& hpa) { hpa.spec.metrics.push_back(External("s2-x", "1")); },
         "spec.metrics: found External s2-x AverageValue 1, which is not wanted"},
        {"MetricTwice", [](Hpa& hpa) { hpa.spec.metrics.push_back(Cpu(60)); },
         "spec.metrics: found Resource cpu Utilization 60, which is not wanted"},
        {"LabelChanged", [](Hpa& hpa) { hpa.meta.labels["team"] = "b"; },
         "metadata.labels[team]: want \"a\", found \"b\""},
        {"LabelRemoved", [](Hpa& hpa) { hpa.meta.labels.clear(); },
         "metadata.labels[team]: want \"a\", found nothing"},
        {"AnnotationChanged", [](Hpa& hpa) { hpa.meta.annotations["note"] = "y"; },
         "metadata.annotations[note]: want \"x\", found \"y\""},
        {"OwnerRemoved", [](Hpa& hpa) { hpa.meta.owner_references.clear(); },
         "metadata.ownerReferences: want controller ScaledObject web u-1, found none"},
        {"OwnerOfAnEarlierLife", [](Hpa& hpa) { hpa.meta.owner_references[0].uid = "u-0"; },
         "metadata.ownerReferences: want controller ScaledObject web u-1, found ScaledObject web "
         "u-0"},
        {"BehaviorAdded",
         [](Hpa& hpa) {
           hpa.spec.behavior = boost::json::parse(R"({"scaleDown":{"selectPolicy":"Disabled"}})");
         },
         "spec.behavior: the found one differs from the wanted one, defaults considered"},
    }),
    [](const testing::TestParamInfo<DifferenceCase>& info) {
      return std::string(info.param.name);
    });

// Shows R3. Case B042.
TEST(HpaDiffTest, AnotherOrderOfMetricsIsNoDifference) {
  api::HorizontalPodAutoscaler found = AsStored(Desired());
  std::sort(found.spec.metrics.begin(), found.spec.metrics.end(),
            [](const auto& a, const auto& b) { return a.name > b.name; });
  do {
    EXPECT_EQ(HpaDifference(Desired(), found), std::nullopt);
  } while (std::next_permutation(found.spec.metrics.begin(), found.spec.metrics.end(),
                                 [](const auto& a, const auto& b) { return a.name < b.name; }));
}

struct BehaviorCase {
  const char* name;
  const char* wanted;  // as the user wrote it; "null": none
  const char* found;   // as the API server holds it
  bool differs;
};
class HpaBehaviorDifferenceTest : public testing::TestWithParam<BehaviorCase> {};

// Shows R3.
TEST_P(HpaBehaviorDifferenceTest, ConsidersTheDefaultsOfTheServer) {
  api::HorizontalPodAutoscaler desired = Desired();
  desired.spec.behavior = boost::json::parse(GetParam().wanted);
  api::HorizontalPodAutoscaler found = AsStored(desired);
  found.spec.behavior = boost::json::parse(GetParam().found);
  EXPECT_EQ(HpaDifference(desired, found).has_value(), GetParam().differs);
}

// What a real API server 1.36 answers to {"scaleDown":{"stabilizationWindowSeconds":0}}.
constexpr char kFilled[] = R"({
  "scaleUp": {"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": [
    {"type": "Pods", "value": 4, "periodSeconds": 15},
    {"type": "Percent", "value": 100, "periodSeconds": 15}]},
  "scaleDown": {"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": [
    {"type": "Percent", "value": 100, "periodSeconds": 15}]}})";

INSTANTIATE_TEST_SUITE_P(
    Behaviors, HpaBehaviorDifferenceTest,
    testing::ValuesIn<BehaviorCase>({
        {"PartlyGiven", R"({"scaleDown":{"stabilizationWindowSeconds":0}})", kFilled, false},
        {"NullMembers",
         R"({"scaleDown":{"stabilizationWindowSeconds":0,"selectPolicy":null},"scaleUp":null})",
         kFilled, false},
        {"Empty", "{}", "null", false},
        {"PrunedMember", R"({"scaleDown":{"stabilizationWindowSeconds":0,"typo":1}})", kFilled,
         false},
        {"OtherWindow", R"({"scaleDown":{"stabilizationWindowSeconds":1}})", kFilled, true},
        {"OtherPolicy", R"({"scaleDown":{"stabilizationWindowSeconds":0},
           "scaleUp":{"policies":[{"type":"Pods","value":1,"periodSeconds":15}]}})",
         kFilled, true},
        {"WindowRemoved", "null", kFilled, true},
        {"ToleranceByValue", R"({"scaleUp":{"tolerance":"0.05"}})",
         R"({"scaleUp":{"tolerance":"50m"}})", false},
        {"OtherTolerance", R"({"scaleUp":{"tolerance":"0.05"}})",
         R"({"scaleUp":{"tolerance":"100m"}})", true},
    }),
    [](const testing::TestParamInfo<BehaviorCase>& info) { return std::string(info.param.name); });

TEST(HpaDiffTest, AnUpdateKeepsTheIdentityAndTheNeighbours) {
  api::HorizontalPodAutoscaler found = AsStored(Desired());
  found.meta.finalizers = {"example.com/hold"};
  found.meta.labels["gone-from-the-object"] = "y";
  found.meta.owner_references = {{"v1", "ConfigMap", "c", "u-3", false, false},
                                 {"keda.sh/v1alpha1", "ScaledObject", "web", "u-0", true, true}};
  const api::HorizontalPodAutoscaler update = MergeForUpdate(Desired(), found);
  EXPECT_EQ(update.meta.uid, "h-1");
  EXPECT_EQ(update.meta.resource_version, "7");
  EXPECT_EQ(update.meta.finalizers, found.meta.finalizers);
  EXPECT_EQ(update.meta.labels, Desired().meta.labels);
  ASSERT_EQ(update.meta.owner_references.size(), 2u);
  EXPECT_EQ(update.meta.owner_references[0].uid, "u-1");
  EXPECT_EQ(update.meta.owner_references[1].name, "c");
}

// Shows R3.
TEST(HpaDiffTest, AnUpdateEndsTheDifference) {
  api::HorizontalPodAutoscaler found = AsStored(Desired());
  found.spec.max_replicas = 50;
  found.meta.owner_references.clear();
  ASSERT_THAT(HpaDifference(Desired(), found).value_or(""), HasSubstr("maxReplicas"));
  EXPECT_EQ(HpaDifference(Desired(), MergeForUpdate(Desired(), found)), std::nullopt);
}

}  // namespace
}  // namespace outrigger::controller::scaling
