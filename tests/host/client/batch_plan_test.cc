// SPDX-License-Identifier: Apache-2.0
#include "host/client/batch_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace outrigger::host {
namespace {

using testing::HasSubstr;

BatchItem MakeItem(const std::string& password, size_t metadata_bytes = 10) {
  scaler::v1::Trigger trigger;
  trigger.set_type("redis");
  (*trigger.mutable_metadata())["listName"] = std::string(metadata_bytes, 'x');
  if (!password.empty()) (*trigger.mutable_authentication())["password"] = password;
  return {.trigger = std::make_shared<const scaler::v1::Trigger>(std::move(trigger)),
          .query = {.metric_name = "depth", .selector = "a=b", .poll = true}};
}

BatchPlan Plan(const std::vector<BatchItem>& items, const BatchLimits& limits = {}) {
  return PlanBatch(items, std::vector<absl::Duration>(items.size(), absl::Milliseconds(2500)),
                   limits);
}

TEST(PlanBatchTest, SaysWhatIsAskedAndForHowLong) {
  const BatchPlan plan = Plan({MakeItem("")});
  ASSERT_EQ(plan.calls.size(), 1);
  const scaler::v1::BatchEntry& entry = plan.calls[0].request.entries(0);
  EXPECT_EQ(entry.request().metric_name(), "depth");
  EXPECT_EQ(entry.request().selector(), "a=b");
  EXPECT_TRUE(entry.request().poll());
  EXPECT_EQ(entry.timeout().seconds(), 2);
  EXPECT_EQ(entry.timeout().nanos(), 500'000'000);
}

TEST(PlanBatchTest, PutsAtMostTwoHundredEntriesIntoACall) {
  const BatchPlan plan = Plan(std::vector<BatchItem>(450, MakeItem("")));
  ASSERT_EQ(plan.calls.size(), 3);
  EXPECT_EQ(plan.calls[0].items.size(), 200);
  EXPECT_EQ(plan.calls[2].items.size(), 50);
  EXPECT_EQ(plan.calls[2].items.front(), 400);
}

TEST(PlanBatchTest, SendsSharedCredentialsOncePerCall) {
  const BatchPlan plan =
      Plan({MakeItem("one"), MakeItem("two"), MakeItem("one"), MakeItem("")}, {.max_entries = 3});
  ASSERT_EQ(plan.calls.size(), 2);
  const scaler::v1::BatchGetMetricsRequest& request = plan.calls[0].request;
  ASSERT_EQ(request.credentials_size(), 2);
  EXPECT_EQ(request.credentials(0).authentication().at("password"), "one");
  EXPECT_EQ(request.entries(0).request().trigger().credentials_index(), 0);
  EXPECT_EQ(request.entries(1).request().trigger().credentials_index(), 1);
  EXPECT_EQ(request.entries(2).request().trigger().credentials_index(), 0);
  EXPECT_TRUE(request.entries(0).request().trigger().authentication().empty());
  const scaler::v1::Trigger& without = plan.calls[1].request.entries(0).request().trigger();
  EXPECT_FALSE(without.has_credentials_index());
}

TEST(PlanBatchTest, KeepsEachCallBelowItsBytes) {
  const BatchLimits limits;
  const BatchPlan plan = Plan(std::vector<BatchItem>(50, MakeItem("secret", 100'000)), limits);
  EXPECT_EQ(plan.calls.size(), 5);
  for (const PlannedCall& call : plan.calls) {
    EXPECT_LE(call.request.ByteSizeLong(), limits.max_bytes);
  }
}

TEST(PlanBatchTest, ATriggerThatFitsNowhereCostsOnlyItself) {
  const BatchPlan plan = Plan({MakeItem(""), MakeItem("", 2 << 20), MakeItem("")});
  ASSERT_EQ(plan.refused.size(), 1);
  EXPECT_EQ(plan.refused[0].first, 1);
  EXPECT_EQ(plan.refused[0].second.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(plan.refused[0].second.message()),
              HasSubstr("want at most 1048576 bytes"));
  size_t sent = 0;
  for (const PlannedCall& call : plan.calls) sent += call.items.size();
  EXPECT_EQ(sent, 2);
}

TEST(LimitsOfTest, TakesWhatThePluginAnnouncesButNeverMoreThanTheContract) {
  scaler::v1::Limits announced;
  EXPECT_EQ(LimitsOf(announced).max_entries, 200);
  EXPECT_EQ(LimitsOf(announced).max_bytes, 1 << 20);
  announced.set_max_batch_entries(50);
  announced.set_max_message_bytes(64 << 20);
  EXPECT_EQ(LimitsOf(announced).max_entries, 50);
  EXPECT_EQ(LimitsOf(announced).max_bytes, 1 << 20);
}

}  // namespace
}  // namespace outrigger::host
