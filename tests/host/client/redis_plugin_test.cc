// SPDX-License-Identifier: Apache-2.0
//
// The operator's end and the plugin's end together: the real Redis plugin on a real Redis.
#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>

#include "tests/host/client/process_fixture.h"
#include "tests/support/process.h"
#include "tests/support/redis_server.h"

namespace outrigger::host {
namespace {

using tests::Process;

class RedisPluginTest : public PluginProcessTest {
 protected:
  void StartPlugin() {
    std::filesystem::create_directories(dir_.File("redis"));
    const char* bin = std::getenv("OUTRIGGER_BIN_DIR");
    ASSERT_NE(bin, nullptr);
    auto started = Process::Start({.argv = {absl::StrCat(bin, "/outrigger-scaler-redis"),
                                            "--listen-socket", dir_.File("redis/scaler.sock")},
                                   .stdout_file = logs_.File("redis.log")});
    ASSERT_TRUE(started.ok()) << started.status();
    plugin_ = *std::move(started);
  }
  void StartAll() {
    auto redis = tests::RedisServer::Start();
    ASSERT_TRUE(redis.ok()) << redis.status();
    redis_ = *std::move(redis);
    Connect();
    StartPlugin();
    ASSERT_TRUE(WaitForState("redis", PluginState::kReady).ok()) << plugin_->OutputTail();
  }

  TriggerPtr MakeTrigger(const std::string& list, const std::string& address) {
    scaler::v1::Trigger trigger;
    trigger.set_type("redis");
    (*trigger.mutable_metadata())["listName"] = list;
    (*trigger.mutable_metadata())["listLength"] = "5";
    (*trigger.mutable_metadata())["address"] = address;
    SetFingerprint(trigger, false, "key");
    return std::make_shared<const scaler::v1::Trigger>(std::move(trigger));
  }
  Deadline InThreeSeconds() { return Deadline::After(clock_, absl::Seconds(3)); }
  absl::StatusOr<MetricsAnswer> Get(const TriggerPtr& trigger) {
    return Await(client_->GetMetrics(trigger, {.poll = true}, InThreeSeconds()));
  }

  std::unique_ptr<tests::RedisServer> redis_;
  std::unique_ptr<Process> plugin_;
};

// Shows R1. Specs and values of a real queue, one by one and as a batch.
TEST_F(RedisPluginTest, ReadsARealQueue) {
  StartAll();
  for (int i = 0; i < 23; ++i) ASSERT_TRUE(redis_->Command({"LPUSH", "orders", "x"}).ok());
  const TriggerPtr trigger = MakeTrigger("orders", redis_->address());
  const auto specs = Await(client_->GetMetricSpecForScaling(trigger, InThreeSeconds()));
  ASSERT_TRUE(specs.ok()) << specs.status();
  EXPECT_EQ(specs->at(0).name(), "redis-orders");
  EXPECT_EQ(specs->at(0).target(), 5);
  const auto answer = Get(trigger);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->values.at(0).value(), 23);
  EXPECT_TRUE(answer->active);

  std::vector<BatchItem> items(250, {.trigger = trigger, .query = {.poll = true}});
  int good = 0;
  Await(client_->BatchGetMetrics(
      std::move(items),
      [&](size_t, const absl::StatusOr<MetricsAnswer>& one) {
        EXPECT_TRUE(one.ok()) << one.status();
        good += one.ok() && one->values.at(0).value() == 23 ? 1 : 0;
      },
      InThreeSeconds()));
  EXPECT_EQ(good, 250);
}

TEST_F(RedisPluginTest, NamesEveryViolationAndKnowsItsSchema) {
  StartAll();
  scaler::v1::Trigger trigger = *MakeTrigger("orders", "no port");
  (*trigger.mutable_metadata())["listLength"] = "many";
  const auto violations = Await(client_->ValidateTrigger(
      std::make_shared<const scaler::v1::Trigger>(trigger), InThreeSeconds()));
  ASSERT_TRUE(violations.ok()) << violations.status();
  EXPECT_GE(violations->size(), 2);
  EXPECT_FALSE(OnStrand([&] { return client_->SchemaFor("redis"); })->parameters().empty());
}

// Case B154. Case B081. The plugin's death and its source's death are two things.
TEST_F(RedisPluginTest, SourceAndPluginDieAndComeBack) {
  StartAll();
  const TriggerPtr trigger = MakeTrigger("orders", redis_->address());
  ASSERT_TRUE(Get(trigger).ok());
  ASSERT_TRUE(redis_->Stop().ok());
  const absl::Status no_source = Get(trigger).status();
  EXPECT_FALSE(no_source.ok());
  EXPECT_FALSE(IsPluginUnreachable(no_source)) << no_source;
  EXPECT_EQ(StatusOf("redis").state, PluginState::kReady);
  ASSERT_TRUE(redis_->Restart().ok());
  EXPECT_TRUE(
      tests::WaitForOk([&] { return Get(trigger).status(); }, absl::Seconds(10), "Redis").ok());

  for (const int signal : {SIGKILL, SIGTERM, SIGKILL}) {
    plugin_->Kill(signal);
    ASSERT_TRUE(plugin_->Wait(absl::Seconds(20)).ok());
    EXPECT_TRUE(IsPluginUnreachable(Get(trigger).status()));
    StartPlugin();
    EXPECT_TRUE(tests::WaitForOk([&] { return Get(trigger).status(); }, absl::Seconds(5),
                                 "the plugin's answer")
                    .ok());
  }
}

}  // namespace
}  // namespace outrigger::host
