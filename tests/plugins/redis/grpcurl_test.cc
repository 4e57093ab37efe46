// SPDX-License-Identifier: Apache-2.0
// A plugin seen from outside: grpcurl, which knows nothing but reflection and health.
#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/support/plugin/plugin_process.h"
#include "tests/support/redis_server.h"

namespace outrigger::tests {
namespace {

using testing::HasSubstr;

std::string GoTool(const std::string& name) {
  const char* cache = std::getenv("OUTRIGGER_CACHE");
  const char* home = std::getenv("HOME");
  const std::string root =
      cache != nullptr ? cache : absl::StrCat(home == nullptr ? "" : home, "/.cache/outrigger");
  return absl::StrCat(root, "/go-tools/", name);
}

// Over the Unix socket ("unix") and over loopback TCP ("tcp").
class GrpcurlTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto plugin = PluginProcess::Start({.binary = "outrigger-scaler-redis"});
    ASSERT_TRUE(plugin.ok()) << plugin.status();
    plugin_ = *std::move(plugin);
    auto redis = RedisServer::Start();
    ASSERT_TRUE(redis.ok()) << redis.status();
    redis_ = *std::move(redis);
    ASSERT_TRUE(redis_->Command({"RPUSH", "orders", "a", "b", "c"}).ok());
  }

  std::string Grpcurl(std::vector<std::string> options, std::vector<std::string> what) {
    const bool unix_socket = std::string(GetParam()) == "unix";
    Process::Options process;
    process.argv = {GoTool("grpcurl"), "-plaintext"};
    if (unix_socket) process.argv.push_back("-unix");
    process.argv.insert(process.argv.end(), options.begin(), options.end());
    process.argv.push_back(unix_socket ? plugin_->socket() : plugin_->tcp_address());
    process.argv.insert(process.argv.end(), what.begin(), what.end());
    const auto result = RunCommand(std::move(process), "", absl::Seconds(20));
    if (!result.ok()) return result.status().ToString();
    return result->ok() ? result->stdout_text : result->Describe();
  }

  std::string Call(const std::string& method, const std::string& request) {
    return Grpcurl({"-d", request}, {method});
  }

  std::string TriggerJson() const {
    return absl::StrCat(R"({"type":"redis","metadata":{"address":")", redis_->address(),
                        R"(","listName":"orders","listLength":"2"}})");
  }

  std::unique_ptr<PluginProcess> plugin_;
  std::unique_ptr<RedisServer> redis_;
};

// Shows R30.
TEST_P(GrpcurlTest, ListsAndDescribesEveryService) {
  const std::string services = Grpcurl({}, {"list"});
  EXPECT_THAT(services, HasSubstr("outrigger.scaler.v1.Scaler\n"));
  EXPECT_THAT(services, HasSubstr("grpc.health.v1.Health\n"));
  EXPECT_THAT(Grpcurl({}, {"describe", "outrigger.scaler.v1.Scaler"}),
              HasSubstr("rpc BatchGetMetrics"));
  EXPECT_THAT(Grpcurl({}, {"describe", "outrigger.scaler.v1.Trigger"}), HasSubstr("fingerprint"));
  EXPECT_THAT(Grpcurl({}, {"describe", "grpc.health.v1.Health"}), HasSubstr("rpc Watch"));
}

// Shows R30.
TEST_P(GrpcurlTest, ReadsHealthOfTheServerTheServiceAndTheTriggerType) {
  for (const char* service : {"", "outrigger.scaler.v1.Scaler", "redis"}) {
    EXPECT_THAT(
        Call("grpc.health.v1.Health/Check", absl::StrCat(R"({"service":")", service, "\"}")),
        HasSubstr(R"("status": "SERVING")"))
        << service;
  }
  EXPECT_THAT(Call("grpc.health.v1.Health/Check", R"({"service":"kafka"})"), HasSubstr("NotFound"));
}

// Shows R30. The stream goes on until grpcurl's own time is up; what it printed counts.
TEST_P(GrpcurlTest, WatchesHealth) {
  EXPECT_THAT(
      Grpcurl({"-max-time", "1", "-d", R"({"service":"redis"})"}, {"grpc.health.v1.Health/Watch"}),
      testing::AllOf(HasSubstr(R"("status": "SERVING")"), HasSubstr("DeadlineExceeded")));
}

// Shows R1, R30.
TEST_P(GrpcurlTest, CallsEveryMethodOfTheScaler) {
  const std::string trigger = absl::StrCat(R"({"trigger":)", TriggerJson(), "}");
  EXPECT_THAT(Call("outrigger.scaler.v1.Scaler/Describe", "{}"),
              testing::AllOf(HasSubstr(R"("name": "outrigger-scaler-redis")"),
                             HasSubstr(R"("name": "listName")"), HasSubstr(R"("batch": true)")));
  EXPECT_EQ(Call("outrigger.scaler.v1.Scaler/ValidateTrigger", trigger), "{}\n");
  EXPECT_THAT(Call("outrigger.scaler.v1.Scaler/ValidateTrigger",
                   R"({"trigger":{"type":"redis","metadata":{"address":"a:1"}}})"),
              HasSubstr(R"("field": "listName")"));
  EXPECT_THAT(Call("outrigger.scaler.v1.Scaler/GetMetricSpecForScaling", trigger),
              testing::AllOf(HasSubstr(R"("name": "redis-orders")"), HasSubstr(R"("target": 2)")));
  EXPECT_THAT(Call("outrigger.scaler.v1.Scaler/GetMetrics", trigger),
              testing::AllOf(HasSubstr(R"("value": 3)"), HasSubstr(R"("active": true)")));
  const std::string batch =
      Call("outrigger.scaler.v1.Scaler/BatchGetMetrics",
           absl::StrCat(R"({"entries":[{"request":)", trigger, R"(},{"request":{"trigger":{)",
                        R"("type":"redis"}}}]})"));
  EXPECT_THAT(batch, HasSubstr(R"("value": 3)"));
  EXPECT_THAT(batch, HasSubstr("listName: want a value in metadata, got nothing"));
}

TEST_P(GrpcurlTest, TheHealthProbeOfKubernetesWorks) {
  Process::Options process;
  const std::string address =
      std::string(GetParam()) == "unix" ? plugin_->socket_address() : plugin_->tcp_address();
  process.argv = {GoTool("grpc_health_probe"), "-addr", address, "-service", "redis"};
  const auto result = RunCommand(std::move(process), "", absl::Seconds(10));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->ok()) << result->Describe();
}

INSTANTIATE_TEST_SUITE_P(Transports, GrpcurlTest, testing::Values("unix", "tcp"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace outrigger::tests
