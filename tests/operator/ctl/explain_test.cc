// SPDX-License-Identifier: Apache-2.0
#include "operator/ctl/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace outrigger::controller::ctl {
namespace {

namespace pb = ::outrigger::introspection::v1;
using testing::HasSubstr;
using testing::Not;

const absl::Time kNow = absl::FromUnixSeconds(1000);

pb::ListObjectsResponse Orders() {
  pb::ListObjectsResponse response;
  pb::Object& object = *response.add_objects();
  object.set_kind("ScaledObject");
  object.set_namespace_("shop");
  object.set_name("orders");
  object.set_target("Deployment worker");
  object.set_max_replicas(10);
  object.set_ready("True");
  pb::TriggerState& trigger = *object.add_triggers();
  trigger.set_type("redis");
  trigger.set_metric("s0-redis-orders");
  trigger.set_plugin("redis");
  trigger.set_value(23);
  trigger.mutable_measured_at()->set_seconds(998);
  trigger.set_active(true);
  trigger.set_target(5);
  trigger.set_metric_type("AverageValue");
  pb::Decision& decision = *object.mutable_decision();
  decision.mutable_at()->set_seconds(999);
  decision.set_current_replicas(5);
  decision.set_outcome("active: min to max is the HPA's work -> stay at 5");
  return response;
}

TEST(ExplainTest, ADecisionHasInputsFormulaLimitsAndResult) {
  EXPECT_EQ(ExplainObjects(Orders(), kNow), R"(ScaledObject shop/orders scales Deployment worker
  inputs:    s0-redis-orders = 23, active, measured 2s ago, by redis
  formula:   s0-redis-orders asks for ceil(value 23 / target 5) = 5
  limits:    min 0, max 10; so while it is active the HPA is asked for 5
  result:    active: min to max is the HPA's work -> stay at 5 (1s ago, at 5 replicas)
)");
}

TEST(ExplainTest, AFailedTriggerSaysHowAndWhatWasKnownLast) {
  pb::ListObjectsResponse response = Orders();
  pb::Object& object = *response.mutable_objects(0);
  object.set_ready("False");
  object.set_ready_message("TriggerError: 1 trigger does not work");
  object.mutable_triggers(0)->set_error("UNAVAILABLE: connection refused");
  object.mutable_triggers(0)->set_failed_cycles(3);
  const std::string text = ExplainObjects(response, kNow);
  EXPECT_THAT(text, HasSubstr("  ready:     no: TriggerError: 1 trigger does not work\n"));
  EXPECT_THAT(text, HasSubstr("s0-redis-orders = 23, active, measured 2s ago, by redis; the last "
                              "answer failed: UNAVAILABLE: connection refused; 3 failed polls in "
                              "a row\n"));
}

TEST(ExplainTest, ATriggerThatFallsBackAsksForItsFallback) {
  pb::ListObjectsResponse response = Orders();
  pb::TriggerState& trigger = *response.mutable_objects(0)->mutable_triggers(0);
  trigger.set_error("UNAVAILABLE: connection refused");
  trigger.set_failed_cycles(2);
  trigger.set_fallback_threshold(3);
  EXPECT_THAT(ExplainObjects(response, kNow),
              HasSubstr("; 2 failed polls in a row, falls back at 3\n"));
  trigger.set_failed_cycles(5);
  trigger.set_fallback_replicas(7);
  const std::string text = ExplainObjects(response, kNow);
  EXPECT_THAT(text, HasSubstr("; 5 failed polls in a row\n"));
  EXPECT_THAT(text,
              HasSubstr("  formula:   s0-redis-orders falls back to 7 replicas, since 3 polls "
                        "in a row failed\n"));
  EXPECT_THAT(text, HasSubstr("so while it is active the HPA is asked for 7\n"));
}

TEST(ExplainTest, AValueTargetCountsTheReplicasAndMaxLimits) {
  pb::ListObjectsResponse response = Orders();
  response.mutable_objects(0)->mutable_triggers(0)->set_metric_type("Value");
  const std::string text = ExplainObjects(response, kNow);
  EXPECT_THAT(text, HasSubstr("ceil(5 replicas * value 23 / target 5) = 23\n"));
  EXPECT_THAT(text, HasSubstr("max 10; so while it is active the HPA is asked for 10\n"));
}

TEST(ExplainTest, BeforeTheFirstAnswerNothingIsMadeUp) {
  pb::ListObjectsResponse response = Orders();
  pb::Object& object = *response.mutable_objects(0);
  object.clear_decision();
  object.clear_triggers();
  object.add_triggers()->set_type("kafka");
  object.set_ready("Unknown");
  const std::string text = ExplainObjects(response, kNow);
  EXPECT_THAT(text, HasSubstr("trigger 0 (kafka) without a value so far, which no plugin serves"));
  EXPECT_THAT(text, HasSubstr("  ready:     unknown: not judged yet\n"));
  EXPECT_THAT(text, HasSubstr("  result:    nothing decided yet\n"));
  EXPECT_THAT(text, Not(HasSubstr("formula")));
}

TEST(ExplainTest, AMessageOfAPluginMovesNoCursor) {
  pb::ListObjectsResponse response = Orders();
  response.mutable_objects(0)->mutable_triggers(0)->set_error("a\x1b[2J\nb");
  EXPECT_THAT(ExplainObjects(response, kNow), HasSubstr("failed: a?[2J?b\n"));
}

TEST(ExplainTest, NoObjectIsSaidToo) {
  EXPECT_THAT(ExplainObjects({}, kNow), HasSubstr("no ScaledObject is known here"));
}

TEST(DescribePluginsTest, ALineForEachAndItsReasonBelow) {
  pb::ListPluginsResponse response;
  pb::Plugin& ready = *response.add_plugins();
  ready.set_name("redis");
  ready.set_state("ready");
  ready.set_address("unix:/run/redis/scaler.sock");
  ready.set_version("0.1.0");
  ready.mutable_since()->set_seconds(400);
  ready.add_trigger_types("redis");
  ready.add_ignored_types("kafka");
  pb::Plugin& away = *response.add_plugins();
  away.set_name("mine");
  away.set_state("unavailable");
  away.set_reason("connection refused");
  away.set_address("127.0.0.1:9000");
  away.mutable_since()->set_seconds(999);
  EXPECT_EQ(DescribePlugins(response, kNow),
            R"(NAME   STATE        SINCE    VERSION  TYPES  ADDRESS
redis  ready        10m ago  0.1.0    redis  unix:/run/redis/scaler.sock
  ignored:   kafka, which it announces and another plugin serves
mine   unavailable  1s ago   -        -      127.0.0.1:9000
  reason:    connection refused
)");
  EXPECT_EQ(DescribePlugins({}, kNow), "no plugin is known here\n");
}

}  // namespace
}  // namespace outrigger::controller::ctl
