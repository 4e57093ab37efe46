// SPDX-License-Identifier: Apache-2.0
// The plugin as a process against a real redis-server, over its Unix socket.
#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/plugin/plugin_client.h"
#include "tests/support/plugin/plugin_process.h"
#include "tests/support/redis_server.h"

namespace outrigger::tests {
namespace {

using scaler::v1::Trigger;
using testing::HasSubstr;
using testing::Not;

class RedisPluginTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto started = PluginProcess::Start({.binary = "outrigger-scaler-redis"});
    ASSERT_TRUE(started.ok()) << started.status();
    plugin_ = started->release();
    client_ = new PluginClient(plugin_->socket_address());
    auto redis = RedisServer::Start({.users = {"reader on >reader-pass ~* +@all",
                                               "narrow on >narrow-pass ~other +eval +llen +type"}});
    ASSERT_TRUE(redis.ok()) << redis.status();
    redis_ = redis->release();
  }
  static void TearDownTestSuite() {
    delete client_;
    delete plugin_;
    delete redis_;
  }

  void SetUp() override { Redis({"FLUSHALL"}); }

  static std::string Redis(std::vector<std::string> command) {
    const absl::StatusOr<std::string> reply = redis_->Command(std::move(command));
    EXPECT_TRUE(reply.ok()) << reply.status();
    return reply.value_or("");
  }

  static Trigger List(const std::map<std::string, std::string>& more = {}) {
    std::map<std::string, std::string> metadata = {{"address", redis_->address()},
                                                   {"listName", "orders"}};
    for (auto& [key, value] : more) metadata[key] = value;
    return MakeTrigger("redis", metadata);
  }

  // "12 active", "0 idle" or "CODE: message".
  static std::string Ask(const Trigger& trigger) {
    const auto answer = client_->Metrics(trigger);
    if (!answer.ok()) return answer.status().ToString();
    if (answer->values_size() != 1) return absl::StrCat(answer->values_size(), " values");
    return absl::StrCat(answer->values(0).value(), answer->active() ? " active" : " idle");
  }

  static PluginProcess* plugin_;
  static PluginClient* client_;
  static RedisServer* redis_;
};

PluginProcess* RedisPluginTest::plugin_ = nullptr;
PluginClient* RedisPluginTest::client_ = nullptr;
RedisServer* RedisPluginTest::redis_ = nullptr;

std::vector<std::string> Fill(const std::string& command, int items) {
  std::vector<std::string> words = {command, "orders"};
  for (int i = 0; i < items; ++i) {
    if (command == "ZADD") words.push_back(absl::StrCat(i));
    words.push_back(absl::StrCat("item", i));
    if (command == "HSET") words.push_back("value");
  }
  return words;
}

// Shows R1.
TEST_F(RedisPluginTest, AnswersValueNameLabelsAndTime) {
  Redis(Fill("RPUSH", 12));
  scaler::v1::GetMetricsRequest request;
  *request.mutable_trigger() = List();
  request.set_metric_name("redis-orders");
  const auto answer = client_->Metrics(request);
  ASSERT_TRUE(answer.ok()) << answer.status();
  ASSERT_EQ(answer->values_size(), 1);
  EXPECT_EQ(answer->values(0).name(), "redis-orders");
  EXPECT_EQ(answer->values(0).value(), 12);
  EXPECT_GT(answer->values(0).measured_at().seconds(), 1'700'000'000);
  EXPECT_TRUE(answer->active());
}

TEST_F(RedisPluginTest, AMetricThatTheTriggerHasNotIsNotFound) {
  scaler::v1::GetMetricsRequest request;
  *request.mutable_trigger() = List();
  request.set_metric_name("redis-others");
  const auto answer = client_->Metrics(request);
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(answer.status().message()), HasSubstr("want one of redis-orders"));
}

TEST_F(RedisPluginTest, MeasuresEachKindOfKey) {
  EXPECT_EQ(Ask(List()), "0 idle") << "missing";
  EXPECT_EQ(Ask(List({{"activationListLength", "-1"}})), "0 active") << "missing, activation -1";
  Redis(Fill("RPUSH", 12));
  EXPECT_EQ(Ask(List()), "12 active") << "list";
  Redis({"DEL", "orders"});
  Redis(Fill("ZADD", 10));
  EXPECT_EQ(Ask(List({{"activationListLength", "10"}})), "10 idle") << "zset at the threshold";
  Redis({"DEL", "orders"});
  Redis(Fill("HSET", 11));
  EXPECT_EQ(Ask(List({{"activationListLength", "10"}})), "11 active") << "hash";
  Redis({"DEL", "orders"});
  Redis(Fill("SADD", 3));
  EXPECT_EQ(Ask(List()), "3 active") << "set";
}

TEST_F(RedisPluginTest, AKeyOfAnotherTypeIsNamed) {
  Redis({"SET", "orders", "x"});
  EXPECT_THAT(Ask(List()), HasSubstr("FAILED_PRECONDITION: redis " + redis_->address() +
                                     ": key \"orders\": want a list, set, zset or hash, got a "
                                     "\"string\""));
  Redis({"DEL", "orders"});
  Redis({"XADD", "orders", "*", "a", "b"});
  EXPECT_THAT(Ask(List()), HasSubstr("got a \"stream\""));
  Redis({"DEL", "orders"});
  Redis(Fill("RPUSH", 2));
  EXPECT_EQ(Ask(List()), "2 active") << "it heals without a change of the trigger";
}

TEST_F(RedisPluginTest, ReadsTheDatabaseOfTheTrigger) {
  Redis(Fill("RPUSH", 2));
  EXPECT_EQ(Ask(List({{"databaseIndex", "3"}})), "0 idle");
  EXPECT_EQ(Ask(List({{"databaseIndex", "0"}})), "2 active");
  EXPECT_THAT(Ask(List({{"databaseIndex", "99"}})), HasSubstr("FAILED_PRECONDITION"));
}

TEST_F(RedisPluginTest, SpecsNeedNoSource) {
  const auto specs = client_->Specs(MakeTrigger(
      "redis", {{"address", "127.0.0.1:1"}, {"listName", "a.b:c"}, {"listLength", "7"}}));
  ASSERT_TRUE(specs.ok()) << specs.status();
  ASSERT_EQ(specs->specs_size(), 1);
  EXPECT_EQ(specs->specs(0).name(), "redis-a-b-c");
  EXPECT_EQ(specs->specs(0).target(), 7);
}

TEST_F(RedisPluginTest, MalformedMetadataIsNamedAllAtOnce) {
  const auto answer = client_->Metrics(MakeTrigger(
      "redis", {{"host", "a,b"}, {"port", "1"}, {"listLength", "05"}, {"enableTLS", "yes"}}));
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(answer.status().message(),
            "redis trigger: enableTLS: want true or false, got \"yes\"; listName: want a value in "
            "metadata, got nothing; listLength: want an integer, got \"05\"; host: want as many "
            "hosts as ports, got 2 and 1");
  const auto validated = client_->Validate(MakeTrigger("redis", {{"address", "x"}}));
  ASSERT_TRUE(validated.ok()) << validated.status();
  EXPECT_EQ(validated->violations_size(), 2);
}

TEST_F(RedisPluginTest, AnUnknownTypeIsRefusedByName) {
  EXPECT_EQ(Ask(MakeTrigger("kafka", {})),
            "INVALID_ARGUMENT: type: want one of redis, got \"kafka\"");
}

TEST_F(RedisPluginTest, AnAclUserReadsAndARefusedOneIsNamedWithoutItsPassword) {
  Redis(Fill("RPUSH", 2));
  Trigger trigger = List({{"username", "reader"}});
  (*trigger.mutable_authentication())["password"] = "reader-pass";
  EXPECT_EQ(Ask(trigger), "2 active");
  (*trigger.mutable_authentication())["password"] = "canary-7f3a";
  const std::string refused = Ask(trigger);
  EXPECT_THAT(refused, HasSubstr("UNAUTHENTICATED: redis " + redis_->address() +
                                 ": AUTH of user \"reader\" refused (WRONGPASS)"));
  EXPECT_THAT(refused, Not(HasSubstr("canary-7f3a")));
  EXPECT_THAT(plugin_->Output(), Not(HasSubstr("canary-7f3a")));
  EXPECT_THAT(plugin_->Output(), Not(HasSubstr("reader-pass")));
}

TEST_F(RedisPluginTest, AUserWithoutRightsIsPermissionDenied) {
  Trigger trigger = List({{"username", "narrow"}});
  (*trigger.mutable_authentication())["password"] = "narrow-pass";
  EXPECT_THAT(Ask(trigger), HasSubstr("PERMISSION_DENIED"));
}

TEST_F(RedisPluginTest, WatchMetricsIsUnimplemented) {
  EXPECT_EQ(client_->Watch().code(), absl::StatusCode::kUnimplemented);
}

TEST_F(RedisPluginTest, ABatchIsPipelinedOverOneConnection) {
  Redis(Fill("RPUSH", 4));
  scaler::v1::BatchGetMetricsRequest request;
  (*request.add_credentials()->mutable_authentication())["password"] = "reader-pass";
  for (int i = 0; i < 200; ++i) {
    Trigger& trigger = *request.add_entries()->mutable_request()->mutable_trigger();
    trigger = List({{"username", "reader"}, {"activationListLength", absl::StrCat(i)}});
    trigger.set_credentials_index(0);
  }
  std::map<uint32_t, int> answers;
  const auto connections = [] { return Redis({"CLIENT", "LIST"}); };
  const absl::Status ended = client_->Batch(request, absl::Seconds(5), [&](const auto& answer) {
    EXPECT_EQ(answer.answer().values(0).value(), 4) << answer.error().message();
    ++answers[answer.index()];
  });
  EXPECT_TRUE(ended.ok()) << ended;
  EXPECT_EQ(answers.size(), 200u);
  const std::string clients = connections();
  size_t readers = 0;
  for (size_t at = 0; (at = clients.find("user=reader", at)) != std::string::npos; ++at) ++readers;
  EXPECT_EQ(readers, 1u) << clients;
}

TEST_F(RedisPluginTest, TooManyEntriesOrABadCredentialsIndexRefuseTheBatch) {
  scaler::v1::BatchGetMetricsRequest request;
  for (int i = 0; i < 201; ++i) {
    *request.add_entries()->mutable_request()->mutable_trigger() = List();
  }
  const auto ignore = [](const auto&) {};
  absl::Status ended = client_->Batch(request, absl::Seconds(5), ignore);
  EXPECT_EQ(ended, absl::InvalidArgumentError("entries: want at most 200, got 201"));
  request.clear_entries();
  *request.add_entries()->mutable_request()->mutable_trigger() = List();
  request.mutable_entries(0)->mutable_request()->mutable_trigger()->set_credentials_index(2);
  ended = client_->Batch(request, absl::Seconds(5), ignore);
  EXPECT_EQ(ended.code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace outrigger::tests
