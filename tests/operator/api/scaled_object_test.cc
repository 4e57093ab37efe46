// SPDX-License-Identifier: Apache-2.0
#include "operator/api/scaled_object.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_replace.h>
#include <absl/strings/str_split.h>
#include <absl/strings/strip.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <string>
#include <system_error>

namespace outrigger::controller::api {
namespace {

constexpr char kFull[] = R"({
  "apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject",
  "metadata": {"name": "web", "namespace": "default", "uid": "u", "generation": 2},
  "spec": {
    "scaleTargetRef": {"name": "web", "apiVersion": "apps/v1", "kind": "Deployment", "envSourceContainerName": "app"},
    "pollingInterval": 5, "initialCooldownPeriod": 20, "cooldownPeriod": 60,
    "minReplicaCount": 0, "maxReplicaCount": 10,
    "fallback": {"failureThreshold": 3, "replicas": 2},
    "advanced": {"horizontalPodAutoscalerConfig": {"name": "my-hpa",
                   "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}}}},
    "triggers": [
      {"type": "redis", "name": "orders", "metadata": {"listName": "orders", "listLength": "5"},
       "authenticationRef": {"name": "redis-auth"}, "useCachedMetrics": true},
      {"type": "cpu", "metricType": "Utilization", "metadata": {"value": "60"}},
      {"type": "redis", "metadata": {}, "authenticationRef": {"name": "redis-auth", "kind": "ClusterTriggerAuthentication"}}]},
  "status": {
    "observedGeneration": 1, "phase": "Running", "scaleTargetKind": "apps/v1.Deployment",
    "scaleTargetGVKR": {"group": "apps", "version": "v1", "kind": "Deployment", "resource": "deployments"},
    "originalReplicaCount": 3, "lastActiveTime": "2026-01-02T03:04:05Z",
    "externalMetricNames": ["s0-redis-orders"], "resourceMetricNames": ["cpu"],
    "conditions": [{"type": "Ready", "status": "True"}],
    "health": {"s0-redis-orders": {"numberOfFailures": 3, "status": "Failing"}},
    "triggersActivity": {"s0-redis-orders": {"isActive": true}},
    "hpaName": "my-hpa", "triggersTypes": "redis,cpu", "authenticationsTypes": "redis-auth"}})";

// Sets the value at a JSON pointer whose parents exist.
void SetAt(boost::json::value& object, absl::string_view pointer, boost::json::value value) {
  boost::json::value* place = &object;
  for (absl::string_view part : absl::StrSplit(absl::StripPrefix(pointer, "/"), '/')) {
    const std::string key = absl::StrReplaceAll(part, {{"~1", "/"}});
    size_t index = 0;
    if (place->is_array() && absl::SimpleAtoi(key, &index)) {
      place = &place->as_array().at(index);
    } else {
      place = &place->as_object()[key];
    }
  }
  *place = std::move(value);
}

// A minimal valid object with one change: `pointer` (JSON pointer) becomes `value`.
boost::json::value With(const char* pointer, const std::string& value) {
  boost::json::value object =
      boost::json::parse(R"({"kind":"ScaledObject","metadata":{"name":"web","annotations":{}},
    "spec":{"scaleTargetRef":{"name":"web"},"fallback":{},"advanced":{"scalingModifiers":{},
    "horizontalPodAutoscalerConfig":{}},"triggers":[{"type":"redis","metadata":{}}]}})");
  SetAt(object, pointer, boost::json::parse(value));
  return object;
}

TEST(ScaledObjectTest, ReadsEveryFieldOfTheSpec) {
  const absl::StatusOr<ScaledObject> object = ParseScaledObject(boost::json::parse(kFull));
  ASSERT_TRUE(object.ok()) << object.status();
  const ScaledObjectSpec& spec = object->spec;
  EXPECT_EQ(spec.scale_target_ref.env_source_container_name, "app");
  EXPECT_EQ(spec.PollingInterval(), absl::Seconds(5));
  EXPECT_EQ(spec.InitialCooldownPeriod(), absl::Seconds(20));
  EXPECT_EQ(spec.CooldownPeriod(), absl::Seconds(60));
  EXPECT_EQ(spec.min_replica_count, 0);
  EXPECT_EQ(spec.HpaMinReplicas(), 1);
  EXPECT_EQ(spec.MaxReplicas(), 10);
  EXPECT_EQ(spec.fallback->failure_threshold, 3);
  EXPECT_EQ(spec.fallback->behavior, "static");
  EXPECT_EQ(object->HpaName(), "my-hpa");
  EXPECT_EQ(boost::json::serialize(spec.advanced.hpa_behavior),
            R"({"scaleDown":{"stabilizationWindowSeconds":0}})");
  ASSERT_EQ(spec.triggers.size(), 3u);
  EXPECT_EQ(spec.triggers[0].metadata.at("listLength"), "5");
  EXPECT_TRUE(spec.triggers[0].use_cached_metrics);
  EXPECT_EQ(spec.triggers[1].metric_type, "Utilization");
  EXPECT_EQ(spec.triggers[2].authentication_ref->kind, "ClusterTriggerAuthentication");
  EXPECT_EQ(TriggersTypes(spec), "redis,cpu");
  EXPECT_EQ(AuthenticationsTypes(spec), "redis-auth");
}

TEST(ScaledObjectTest, AppliesTheDefaults) {
  const absl::StatusOr<ScaledObject> object = ParseScaledObject(With("/metadata/name", "\"web\""));
  ASSERT_TRUE(object.ok()) << object.status();
  EXPECT_EQ(object->spec.PollingInterval(), absl::Seconds(30));
  EXPECT_EQ(object->spec.CooldownPeriod(), absl::Seconds(300));
  EXPECT_EQ(object->spec.InitialCooldownPeriod(), absl::ZeroDuration());
  EXPECT_EQ(object->spec.MinReplicas(), 0);
  EXPECT_EQ(object->spec.MaxReplicas(), 100);
  EXPECT_EQ(object->HpaName(), "keda-hpa-web");
}

// Shows R10.
TEST(ScaledObjectTest, StatusSurvivesJson) {
  const boost::json::value written = boost::json::parse(kFull).at("status");
  const absl::StatusOr<ScaledObjectStatus> status = ParseScaledObjectStatus(written);
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->phase, Phase::kRunning);
  EXPECT_EQ(boost::json::value(StatusToJson(*status)), written);
}

TEST(ScaledObjectTest, PrintsTheQuotaPhase) {
  ScaledObjectStatus status;
  status.phase = Phase::kQuotaExceeded;
  EXPECT_EQ(boost::json::serialize(StatusToJson(status)), R"({"phase":"QuotaExceeded"})");
}

TEST(ScaledObjectTest, AnUnreadableStatusIsAnEmptyOne) {
  boost::json::value object = boost::json::parse(kFull);
  object.as_object()["status"] = boost::json::parse(R"({"conditions": 5, "hpaName": "x"})");
  const absl::StatusOr<ScaledObject> parsed = ParseScaledObject(object);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->status, ScaledObjectStatus());
}

struct RefusedCase {
  const char* name;
  const char* pointer;
  const char* value;
  const char* message;
};
class ScaledObjectRefusedTest : public testing::TestWithParam<RefusedCase> {};

TEST_P(ScaledObjectRefusedTest, NamesPathWantedAndGot) {
  const absl::Status status =
      ParseScaledObject(With(GetParam().pointer, GetParam().value)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(status.message()), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Objects, ScaledObjectRefusedTest,
    testing::ValuesIn<RefusedCase>({
        {"OtherKind", "/kind", "\"ScaledJob\"", "kind: want ScaledObject, got \"ScaledJob\""},
        {"NoSpec", "/spec", "null", "spec: want an object, got nothing"},
        {"SpecIsArray", "/spec", "[]", "spec: want an object, got an array"},
        {"NumberAsText", "/spec/pollingInterval", "\"30\"",
         "spec.pollingInterval: want an integer of 32 bits, got \"30\""},
        {"Fraction", "/spec/cooldownPeriod", "1.5",
         "spec.cooldownPeriod: want an integer of 32 bits, got 1.5E0"},
        {"TooLarge", "/spec/maxReplicaCount", "2147483648",
         "spec.maxReplicaCount: want an integer of 32 bits, got 2147483648"},
        {"HugeUnsigned", "/spec/maxReplicaCount", "18446744073709551615",
         "spec.maxReplicaCount: want an integer of 32 bits, got 18446744073709551615"},
        {"TriggersAreAnObject", "/spec/triggers", "{}",
         "spec.triggers: want an array, got an object"},
        {"TriggerIsText", "/spec/triggers/0", "\"redis\"",
         "spec.triggers[0]: want an object, got \"redis\""},
        {"MetadataNumber", "/spec/triggers/0/metadata/listLength", "5",
         "spec.triggers[0].metadata[listLength]: want a string, got 5"},
        {"AuthIsText", "/spec/triggers/0/authenticationRef", "\"x\"",
         "spec.triggers[0].authenticationRef: want an object, got \"x\""},
        {"BehaviorIsText", "/spec/advanced/horizontalPodAutoscalerConfig/behavior", "\"fast\"",
         "spec.advanced.horizontalPodAutoscalerConfig.behavior: want an object, got \"fast\""},
        {"ModifierTargetIsNumber", "/spec/advanced/scalingModifiers/target", "5",
         "spec.advanced.scalingModifiers.target: want a string, got 5"},
        {"FallbackIsBool", "/spec/fallback", "true", "spec.fallback: want an object, got true"},
    }),
    [](const testing::TestParamInfo<RefusedCase>& info) { return std::string(info.param.name); });

TEST(ScaledObjectTest, TruncatedJsonAtEveryByteIsAnErrorNeverACrash) {
  const std::string full = kFull;
  for (size_t size = 0; size < full.size(); ++size) {
    boost::json::error_code error;
    const boost::json::value cut = boost::json::parse(full.substr(0, size), error);
    ASSERT_TRUE(error) << "a prefix of " << size << " bytes parses";
    // What a tolerant reader would have made of it: null.
    EXPECT_EQ(ParseScaledObject(cut).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

struct UnsupportedCase {
  const char* name;
  const char* pointer;
  const char* value;
  const char* field;  // empty: supported
};
class UnsupportedFieldTest : public testing::TestWithParam<UnsupportedCase> {};

TEST_P(UnsupportedFieldTest, NamesTheField) {
  const absl::StatusOr<ScaledObject> object =
      ParseScaledObject(With(GetParam().pointer, GetParam().value));
  ASSERT_TRUE(object.ok()) << object.status();
  EXPECT_EQ(UnsupportedField(*object).value_or(""), GetParam().field);
}

INSTANTIATE_TEST_SUITE_P(
    Fields, UnsupportedFieldTest,
    testing::ValuesIn<UnsupportedCase>({
        {"Plain", "/metadata/name", "\"web\"", ""},
        {"Formula", "/spec/advanced/scalingModifiers/formula", "\"a+b\"",
         "spec.advanced.scalingModifiers"},
        {"Idle", "/spec/idleReplicaCount", "0", "spec.idleReplicaCount"},
        {"StaticFallback", "/spec/fallback/behavior", "\"static\"", ""},
        {"OtherFallback", "/spec/fallback/behavior", "\"currentReplicas\"",
         "spec.fallback.behavior: currentReplicas"},
        {"Restore", "/spec/advanced/restoreToOriginalReplicaCount", "true",
         "spec.advanced.restoreToOriginalReplicaCount"},
        {"NoRestore", "/spec/advanced/restoreToOriginalReplicaCount", "false", ""},
        {"Paused", "/metadata/annotations/autoscaling.keda.sh~1paused", "\"banana\"",
         "metadata.annotations[autoscaling.keda.sh/paused]"},
        {"NotPaused", "/metadata/annotations/autoscaling.keda.sh~1paused", "\"False\"", ""},
        {"PausedReplicasHasNoOff", "/metadata/annotations/autoscaling.keda.sh~1paused-replicas",
         "\"0\"", "metadata.annotations[autoscaling.keda.sh/paused-replicas]"},
        {"PausedScaleIn", "/metadata/annotations/autoscaling.keda.sh~1paused-scale-in", "\"true\"",
         "metadata.annotations[autoscaling.keda.sh/paused-scale-in]"},
        {"ForceActivation", "/metadata/annotations/autoscaling.keda.sh~1force-activation",
         "\"true\"", "metadata.annotations[autoscaling.keda.sh/force-activation]"},
        {"Transfer", "/metadata/annotations/scaledobject.keda.sh~1transfer-hpa-ownership",
         "\"true\"", "metadata.annotations[scaledobject.keda.sh/transfer-hpa-ownership]"},
        {"ExcludedLabels", "/metadata/annotations/scaledobject.keda.sh~1hpa-excluded-labels",
         "\"a,b\"", ""},
        {"CachedMetrics", "/spec/triggers/0/useCachedMetrics", "true", ""},
    }),
    [](const testing::TestParamInfo<UnsupportedCase>& info) {
      return std::string(info.param.name);
    });

}  // namespace
}  // namespace outrigger::controller::api
