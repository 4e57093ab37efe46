// SPDX-License-Identifier: Apache-2.0
#include "operator/api/validation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace outrigger::controller::api {
namespace {

using testing::HasSubstr;

ScaledObject Valid() {
  ScaledObject object;
  object.meta.name = "web";
  object.meta.namespace_name = "default";
  object.spec.scale_target_ref.name = "web";
  object.spec.triggers = {{.type = "redis", .name = "orders"}};
  return object;
}

std::string Fault(const ScaledObject& object) {
  return JoinViolations(ValidateScaledObject(object));
}

TEST(ValidationTest, AValidObjectHasNoViolations) {
  EXPECT_EQ(Fault(Valid()), "");
  EXPECT_TRUE(ViolationsToStatus(ValidateScaledObject(Valid())).ok());
}

struct BoundsCase {
  const char* name;
  std::optional<int32_t> min;
  std::optional<int32_t> idle;
  std::optional<int32_t> max;
  const char* message;
};
class ReplicaBoundsTest : public testing::TestWithParam<BoundsCase> {};

TEST_P(ReplicaBoundsTest, FollowTheSheet) {
  ScaledObject object = Valid();
  object.spec.min_replica_count = GetParam().min;
  object.spec.idle_replica_count = GetParam().idle;
  object.spec.max_replica_count = GetParam().max;
  EXPECT_EQ(Fault(object), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Vectors, ReplicaBoundsTest,
    testing::ValuesIn<BoundsCase>({
        {"IdleWithoutMin",
         {},
         0,
         {},
         "spec.idleReplicaCount: want less than minReplicaCount, which is 0 by default, got 0"},
        {"IdleWithMinZero", 0, 0, {}, ""},
        {"IdleBelowMin", 1, 0, 5, ""},
        {"IdleEqualsMin", 2, 2, 5,
         "spec.idleReplicaCount: want less than minReplicaCount, which is 2, got 2"},
        {"MinAboveDefaultMax",
         200,
         {},
         {},
         "spec.minReplicaCount: want at most maxReplicaCount, which is 100 by default, got 200"},
        {"MinZeroMaxOne", 0, {}, 1, ""},
        {"IdleOneMinZero", 0, 1, 5,
         "spec.idleReplicaCount: want less than minReplicaCount, which is 1, got 1"},
        {"MinAboveMax",
         5,
         {},
         3,
         "spec.minReplicaCount: want at most maxReplicaCount, which is 3, got 5"},
        {"MaxZero", {}, {}, 0, "spec.maxReplicaCount: want an integer >= 1, got 0"},
        {"NegativeMin", -1, {}, {}, "spec.minReplicaCount: want an integer >= 0, got -1"},
    }),
    [](const testing::TestParamInfo<BoundsCase>& info) { return std::string(info.param.name); });

struct TriggerCase {
  const char* name;
  Trigger trigger;
  const char* message;
};
class TriggerValidationTest : public testing::TestWithParam<TriggerCase> {};

TEST_P(TriggerValidationTest, NamesFieldWantedAndGot) {
  ScaledObject object = Valid();
  object.spec.triggers.push_back(GetParam().trigger);
  EXPECT_EQ(Fault(object), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Triggers, TriggerValidationTest,
    testing::ValuesIn<TriggerCase>({
        {"NoType", {}, "spec.triggers[1].type: want a trigger type, got nothing"},
        {"SameName",
         {.type = "kafka", .name = "orders"},
         "spec.triggers[1].name: want a name that no other trigger has, got \"orders\", the name "
         "of spec.triggers[0]"},
        {"Utilization",
         {.type = "redis", .metric_type = "Utilization"},
         "spec.triggers[1].metricType: want AverageValue or Value for a redis trigger, got "
         "\"Utilization\""},
        {"UnknownMetricType",
         {.type = "redis", .metric_type = "Average"},
         "spec.triggers[1].metricType: want AverageValue or Value for a redis trigger, got "
         "\"Average\""},
        {"CachedCron",
         {.type = "cron", .use_cached_metrics = true},
         "spec.triggers[1].useCachedMetrics: want false for a cron trigger, got true"},
        {"CachedCpu",
         {.type = "cpu",
          .metadata = {{"value", "60"}},
          .use_cached_metrics = true,
          .metric_type = "Utilization"},
         "spec.triggers[1].useCachedMetrics: want false for a cpu trigger, got true"},
        {"CachedRedis", {.type = "redis", .use_cached_metrics = true}, ""},
        {"BadCpu",
         {.type = "cpu", .metadata = {{"value", "x"}}, .metric_type = "Utilization"},
         "spec.triggers[1].metadata.value: want a percentage as an integer > 0, got \"x\""},
        {"AuthWithoutName",
         {.type = "redis", .authentication_ref = AuthenticationRef{}},
         "spec.triggers[1].authenticationRef.name: want the name of an authentication object, got "
         "nothing"},
        {"AuthOfUnknownKind",
         {.type = "redis", .authentication_ref = AuthenticationRef{"a", "Secret"}},
         "spec.triggers[1].authenticationRef.kind: want TriggerAuthentication or "
         "ClusterTriggerAuthentication, got "
         "\"Secret\""},
    }),
    [](const testing::TestParamInfo<TriggerCase>& info) { return std::string(info.param.name); });

// Case B039.
TEST(ValidationTest, ANameMustFitInALabelValue) {
  ScaledObject object = Valid();
  object.meta.name = std::string(63, 'a');
  EXPECT_EQ(Fault(object), "");
  object.meta.name = std::string(64, 'a');
  EXPECT_EQ(
      Fault(object),
      "metadata.name: want at most 63 characters (it is used as a label value), got 64 characters");
}

TEST(ValidationTest, FallbackNumbersAndBehaviorAreChecked) {
  ScaledObject object = Valid();
  object.spec.fallback = Fallback{.failure_threshold = -1, .replicas = -2, .behavior = "magic"};
  EXPECT_EQ(
      Fault(object),
      "spec.fallback.failureThreshold: want an integer >= 0, got -1; spec.fallback.replicas: want "
      "an integer >= 0, "
      "got -2; spec.fallback.behavior: want static, currentReplicas, currentReplicasIfHigher, "
      "currentReplicasIfLower or scalingModifiers, got \"magic\"");
}

TEST(ValidationTest, NamesAllViolationsAtOnce) {
  ScaledObject object = Valid();
  object.spec.scale_target_ref = {.api_version = "a/b/c"};
  object.spec.polling_interval_seconds = 0;
  object.spec.cooldown_period_seconds = -1;
  object.spec.triggers.clear();
  const absl::Status status = ViolationsToStatus(ValidateScaledObject(object));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  for (const char* part :
       {"spec.scaleTargetRef.name: want the name of the workload to scale, got nothing",
        "spec.scaleTargetRef.apiVersion: want group/version or version, got \"a/b/c\"",
        "spec.pollingInterval: want an integer >= 1, got 0",
        "spec.cooldownPeriod: want an integer >= 0, got -1",
        "spec.triggers: want at least one trigger, got none"}) {
    EXPECT_THAT(std::string(status.message()), HasSubstr(part));
  }
}

}  // namespace
}  // namespace outrigger::controller::api
