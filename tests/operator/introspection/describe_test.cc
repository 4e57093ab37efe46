// SPDX-License-Identifier: Apache-2.0
#include "operator/introspection/describe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/base/fake_clock.h"
#include "tests/operator/support/scripted_scalers.h"

namespace outrigger::controller::introspection {
namespace {

namespace pb = ::outrigger::introspection::v1;
using testing::ElementsAre;

class ListedScalers : public ScriptedScalers {
 public:
  using ScriptedScalers::ScriptedScalers;
  std::vector<host::PluginStatus> Plugins() const override { return plugins; }
  std::vector<host::PluginStatus> plugins;
};

class DescribeTest : public testing::Test {
 protected:
  polling::TrackedObject& Track(const std::string& namespace_name, const std::string& name) {
    auto object = std::make_shared<api::ScaledObject>();
    object->meta.namespace_name = namespace_name;
    object->meta.name = name;
    object->meta.uid = "uid-" + name;
    polling::TrackedObject& tracked = registry_.Put({namespace_name, name});
    tracked.object = std::move(object);
    return tracked;
  }
  static polling::TrackedTrigger Trigger(uint32_t index, const std::string& type,
                                         std::vector<scaling::MetricSpec> specs) {
    polling::TrackedTrigger trigger;
    trigger.resolved.index = index;
    trigger.resolved.type = type;
    trigger.specs = std::move(specs);
    return trigger;
  }
  pb::ListObjectsResponse Describe(const std::string& namespace_name = "",
                                   const std::string& name = "") {
    return DescribeObjects({registry_, health_, scalers_}, namespace_name, name);
  }
  std::vector<std::string> NamesOf(const pb::ListObjectsResponse& response) {
    std::vector<std::string> names;
    for (const pb::Object& object : response.objects())
      names.push_back(absl::StrCat(object.namespace_(), "/", object.name()));
    return names;
  }

  host::FakeClock clock_;
  polling::ObjectRegistry registry_;
  host::HealthCache health_{clock_, {}};
  ListedScalers scalers_{clock_};
};

TEST_F(DescribeTest, PluginsComeByNameWithTheirState) {
  scalers_.plugins = {{.name = "redis",
                       .address = "unix:/run/redis/scaler.sock",
                       .state = host::PluginState::kUnavailable,
                       .reason = "connection refused",
                       .since = clock_.WallNow(),
                       .version = "1.0",
                       .trigger_types = {"redis"},
                       .ignored_types = {"kafka"},
                       .waiting_calls = 3},
                      {.name = "kafka", .state = host::PluginState::kReady}};
  const pb::ListPluginsResponse response = DescribePlugins(scalers_);
  ASSERT_EQ(response.plugins_size(), 2);
  EXPECT_EQ(response.plugins(0).name(), "kafka");
  EXPECT_EQ(response.plugins(0).state(), "ready");
  const pb::Plugin& redis = response.plugins(1);
  EXPECT_EQ(redis.address(), "unix:/run/redis/scaler.sock");
  EXPECT_EQ(redis.state(), "unavailable");
  EXPECT_EQ(redis.reason(), "connection refused");
  EXPECT_EQ(redis.since().seconds(), absl::ToUnixSeconds(clock_.WallNow()));
  EXPECT_THAT(redis.trigger_types(), ElementsAre("redis"));
  EXPECT_THAT(redis.ignored_types(), ElementsAre("kafka"));
  EXPECT_EQ(redis.waiting_calls(), 3u);
}

TEST_F(DescribeTest, ObjectsComeByNameAndCanBeChosen) {
  Track("shop", "b");
  Track("shop", "a");
  Track("bank", "b");
  EXPECT_THAT(NamesOf(Describe()), ElementsAre("bank/b", "shop/a", "shop/b"));
  EXPECT_THAT(NamesOf(Describe("shop")), ElementsAre("shop/a", "shop/b"));
  EXPECT_THAT(NamesOf(Describe("", "b")), ElementsAre("bank/b", "shop/b"));
  EXPECT_THAT(NamesOf(Describe("shop", "b")), ElementsAre("shop/b"));
  EXPECT_THAT(NamesOf(Describe("shop", "c")), ElementsAre());
}

TEST_F(DescribeTest, ATriggerTellsValueFailuresAndPlugin) {
  scalers_.Connect("redis-plugin", {"redis"});
  polling::TrackedObject& object = Track("shop", "orders");
  object.triggers.push_back(Trigger(0, "redis", {{.name = "redis-orders", .target = 5}}));
  health_.RecordSuccess(object.HealthKeyOf(object.triggers[0], "redis-orders"), 23, true);
  clock_.Advance(absl::Seconds(30));
  health_.RecordFailure(object.HealthKeyOf(object.triggers[0], "redis-orders"),
                        absl::UnavailableError("connection refused"), /*ends_cycle=*/true);
  const pb::ListObjectsResponse response = Describe();
  ASSERT_EQ(response.objects(0).triggers_size(), 1);
  const pb::TriggerState& state = response.objects(0).triggers(0);
  EXPECT_EQ(state.metric(), "s0-redis-orders");
  EXPECT_EQ(state.target(), 5);
  EXPECT_EQ(state.metric_type(), "AverageValue");
  EXPECT_EQ(state.plugin(), "redis-plugin");
  EXPECT_EQ(state.value(), 23);
  EXPECT_EQ(state.measured_at().seconds(),
            absl::ToUnixSeconds(clock_.WallNow() - absl::Seconds(30)));
  EXPECT_TRUE(state.active());
  EXPECT_EQ(state.failed_cycles(), 1u);
  EXPECT_EQ(state.error(), "UNAVAILABLE: connection refused");
}

TEST_F(DescribeTest, ATriggerTellsWhenItFallsBack) {
  scalers_.Connect("redis-plugin", {"redis"});
  polling::TrackedObject& object = Track("shop", "orders");
  auto spec = std::make_shared<api::ScaledObject>(*object.object);
  spec->spec.fallback = api::Fallback{.failure_threshold = 2, .replicas = 7};
  object.object = spec;
  object.triggers.push_back(Trigger(0, "redis", {{.name = "redis-orders", .target = 5}}));
  const host::HealthKey key = object.HealthKeyOf(object.triggers[0], "redis-orders");
  for (const bool falls_back : {false, true}) {
    health_.RecordFailure(key, absl::UnavailableError("down"), /*ends_cycle=*/true);
    const pb::TriggerState state = Describe().objects(0).triggers(0);
    EXPECT_EQ(state.fallback_threshold(), 2);
    EXPECT_EQ(state.has_fallback_replicas(), falls_back);
    if (falls_back) EXPECT_EQ(state.fallback_replicas(), 7);
  }
  health_.RecordSuccess(key, 1, true);
  EXPECT_FALSE(Describe().objects(0).triggers(0).has_fallback_replicas());
}

TEST_F(DescribeTest, ATriggerThatNeverAnsweredHasNoValue) {
  polling::TrackedObject& object = Track("shop", "orders");
  object.triggers.push_back(Trigger(0, "redis", {}));
  object.triggers.push_back(Trigger(1, "redis", {{.name = "q", .target = 5}}));
  object.triggers[1].resolved.error =
      absl::InvalidArgumentError("TriggerAuthentication shop/creds: not found");
  const pb::ListObjectsResponse response = Describe();
  ASSERT_EQ(response.objects(0).triggers_size(), 2);
  const pb::TriggerState& unknown = response.objects(0).triggers(0);
  EXPECT_EQ(unknown.metric(), "");
  EXPECT_EQ(unknown.plugin(), "") << "nobody serves the type";
  EXPECT_FALSE(unknown.has_value());
  EXPECT_FALSE(unknown.has_target());
  EXPECT_FALSE(unknown.has_measured_at());
  EXPECT_EQ(response.objects(0).triggers(1).error(),
            "INVALID_ARGUMENT: TriggerAuthentication shop/creds: not found");
}

TEST_F(DescribeTest, ATriggerWithSeveralMetricsHasAStateForEach) {
  polling::TrackedObject& object = Track("shop", "orders");
  object.triggers.push_back(Trigger(2, "external", {{.name = "a"}, {.name = "b"}}));
  const pb::ListObjectsResponse response = Describe();
  ASSERT_EQ(response.objects(0).triggers_size(), 2);
  EXPECT_EQ(response.objects(0).triggers(0).metric(), "s2-a");
  EXPECT_EQ(response.objects(0).triggers(1).metric(), "s2-b");
}

TEST_F(DescribeTest, CpuBelongsToTheHpaController) {
  polling::TrackedObject& object = Track("shop", "orders");
  object.triggers.push_back(Trigger(0, "cpu", {}));
  object.triggers[0].resolved.resource = true;
  const pb::TriggerState state = Describe().objects(0).triggers(0);
  EXPECT_EQ(state.metric(), "cpu");
  EXPECT_EQ(state.plugin(), "the HPA controller");
}

TEST_F(DescribeTest, TheLastDecisionIsToldInItsOwnWords) {
  polling::TrackedObject& object = Track("shop", "orders");
  EXPECT_FALSE(Describe().objects(0).has_decision());
  object.decided_at = clock_.WallNow();
  object.decided_replicas = 0;
  object.last_decision.scale_to = 1;
  object.last_decision.explanation = "s0-redis-orders is active (23 > 0): 0 -> 1";
  object.last_decision.outcome = "0 -> 1";
  const pb::Decision decision = Describe().objects(0).decision();
  EXPECT_EQ(decision.at().seconds(), absl::ToUnixSeconds(clock_.WallNow()));
  EXPECT_TRUE(decision.has_current_replicas());
  EXPECT_EQ(decision.current_replicas(), 0);
  EXPECT_EQ(decision.set_replicas(), 1);
  EXPECT_EQ(decision.explanation(), "s0-redis-orders is active (23 > 0): 0 -> 1");
  EXPECT_EQ(decision.outcome(), "0 -> 1");
}

TEST_F(DescribeTest, AnObjectTellsTargetLimitsAndWhetherItIsReady) {
  polling::TrackedObject& tracked = Track("shop", "orders");
  EXPECT_EQ(Describe().objects(0).ready(), "Unknown");
  auto object = std::make_shared<api::ScaledObject>(*tracked.object);
  object->spec.scale_target_ref.name = "worker";
  object->spec.min_replica_count = 2;
  api::SetCondition(object->status.conditions, api::kReady, api::kFalse, "TriggerError", "down",
                    clock_.WallNow(), 1);
  tracked.object = object;
  const pb::Object described = Describe().objects(0);
  EXPECT_EQ(described.target(), "Deployment worker");
  EXPECT_EQ(described.min_replicas(), 2);
  EXPECT_EQ(described.max_replicas(), 100);
  EXPECT_EQ(described.ready(), "False");
  EXPECT_EQ(described.ready_message(), "TriggerError: down");
}

TEST_F(DescribeTest, ReplicasThatCouldNotBeReadAreAbsent) {
  polling::TrackedObject& object = Track("shop", "orders");
  object.decided_at = clock_.WallNow();
  object.decided_replicas = -1;
  EXPECT_FALSE(Describe().objects(0).decision().has_current_replicas());
  EXPECT_FALSE(Describe().objects(0).decision().has_set_replicas());
}

}  // namespace
}  // namespace outrigger::controller::introspection
