// SPDX-License-Identifier: Apache-2.0
// Servers that are away, silent, wrong or hostile, and what the plugin survives.
#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <future>
#include <thread>

#include "tests/plugins/redis/fake_server.h"
#include "tests/support/free_port.h"
#include "tests/support/plugin/plugin_client.h"
#include "tests/support/plugin/plugin_process.h"
#include "tests/support/redis_server.h"
#include "tests/support/wait_for.h"

namespace outrigger::tests {
namespace {

using scaler::v1::Trigger;
using testing::HasSubstr;
using testing::Not;

class RedisFaultsTest : public testing::Test {
 protected:
  void SetUp() override {
    auto plugin = PluginProcess::Start({.binary = "outrigger-scaler-redis"});
    ASSERT_TRUE(plugin.ok()) << plugin.status();
    plugin_ = *std::move(plugin);
    client_ = std::make_unique<PluginClient>(plugin_->socket_address());
  }

  static Trigger List(const std::string& address,
                      const std::map<std::string, std::string>& secrets = {}) {
    return MakeTrigger("redis", {{"address", address}, {"listName", "orders"}}, secrets);
  }

  std::string Ask(const Trigger& trigger, absl::Duration timeout = absl::Seconds(3)) {
    const auto answer = client_->Metrics(trigger, timeout);
    return answer.ok() ? absl::StrCat(answer->values(0).value()) : answer.status().ToString();
  }

  std::unique_ptr<RedisServer> StartRedis() {
    auto redis = RedisServer::Start();
    EXPECT_TRUE(redis.ok()) << redis.status();
    EXPECT_TRUE((*redis)->Command({"RPUSH", "orders", "a"}).ok());
    return *std::move(redis);
  }

  std::unique_ptr<PluginProcess> plugin_;
  std::unique_ptr<PluginClient> client_;
};

TEST_F(RedisFaultsTest, ARefusedConnectionIsUnavailableAndTheNextAskSeesTheServerBack) {
  const std::unique_ptr<RedisServer> redis = StartRedis();
  EXPECT_EQ(Ask(List(redis->address())), "1");
  ASSERT_TRUE(redis->Stop().ok());
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(Ask(List(redis->address())), absl::StrCat("UNAVAILABLE: redis ", redis->address(),
                                                        ": connect: Connection refused"));
  }
  ASSERT_TRUE(redis->Restart().ok());
  EXPECT_EQ(Ask(List(redis->address())), "0") << "the very next ask";
}

TEST_F(RedisFaultsTest, AConnectionThatTheServerClosedIsReplacedUnseen) {
  const std::unique_ptr<RedisServer> redis = StartRedis();
  EXPECT_EQ(Ask(List(redis->address())), "1");
  ASSERT_TRUE(redis->Command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"}).ok());
  EXPECT_EQ(Ask(List(redis->address())), "1");
}

// A server that accepts and never answers costs its own triggers only.
TEST_F(RedisFaultsTest, SilentServersHoldUpNobodyElse) {
  const std::unique_ptr<RedisServer> healthy = StartRedis();
  std::vector<std::unique_ptr<RedisServer>> silent;
  for (int i = 0; i < 5; ++i) {
    silent.push_back(StartRedis());
    silent.back()->process().Kill(SIGSTOP);
  }
  scaler::v1::BatchGetMetricsRequest request;
  const auto add = [&](const std::string& address) {
    scaler::v1::BatchEntry& entry = *request.add_entries();
    *entry.mutable_request()->mutable_trigger() = List(address);
    entry.mutable_timeout()->set_seconds(1);
  };
  for (const auto& redis : silent) add(redis->address());
  add(healthy->address());
  const absl::Time start = absl::Now();
  absl::Duration healthy_after = absl::InfiniteDuration();
  int late = 0;
  const absl::Status ended = client_->Batch(request, absl::Seconds(5), [&](const auto& answer) {
    if (answer.index() == 5) {
      EXPECT_EQ(answer.answer().values(0).value(), 1) << answer.error().message();
      healthy_after = absl::Now() - start;
    } else {
      EXPECT_EQ(answer.error().code(), 4) << answer.error().message();  // DEADLINE_EXCEEDED
      EXPECT_THAT(answer.error().message(), HasSubstr("no reply in time"));
      ++late;
    }
  });
  EXPECT_TRUE(ended.ok()) << ended;
  EXPECT_EQ(late, 5);
  EXPECT_LT(healthy_after, absl::Milliseconds(900)) << "before the silent ones ran out of time";
  EXPECT_LT(absl::Now() - start, absl::Seconds(4));
  silent[0]->process().Kill(SIGCONT);
  EXPECT_EQ(Ask(List(silent[0]->address())), "1") << "it heals";
}

TEST_F(RedisFaultsTest, ErrorRepliesHaveTheirCodes) {
  const std::pair<const char*, const char*> rows[] = {
      {"-LOADING Redis is loading the dataset in memory\r\n", "UNAVAILABLE: "},
      {"-MASTERDOWN Link with MASTER is down\r\n", "UNAVAILABLE: "},
      {"-MOVED 866 10.0.0.1:6379\r\n", "FAILED_PRECONDITION: "},
      {"-NOAUTH Authentication required.\r\n", "UNAUTHENTICATED: "},
      {"-NOPERM no permissions to run the 'eval' command\r\n", "PERMISSION_DENIED: "},
      {"-ERR odd\r\n", "INTERNAL: "},
      {"*1\r\n:1\r\n", "INTERNAL: "},
      {"$-1\r\n", "INTERNAL: "},
  };
  for (const auto& [reply, wanted] : rows) {
    const FakeServer server([reply = std::string(reply)](const std::string&) { return reply; });
    EXPECT_THAT(Ask(List(server.address())),
                HasSubstr(absl::StrCat(wanted, "redis ", server.address())))
        << reply;
  }
}

TEST_F(RedisFaultsTest, APeerThatIsNoRedisIsSaidSo) {
  const FakeServer http([](const std::string&) { return "HTTP/1.1 400 Bad Request\r\n\r\n"; });
  EXPECT_THAT(Ask(List(http.address())),
              HasSubstr("INTERNAL: redis " + http.address() + ": want Redis replies, got: "));
  const FakeServer flood(
      [](const std::string&) { return absl::StrCat("$900000000\r\n", std::string(4 << 20, 'x')); });
  EXPECT_THAT(Ask(List(flood.address())), HasSubstr("want a reply of at most 1048576 bytes"));
  const FakeServer huge([](const std::string&) { return "*2000000000\r\n"; });
  EXPECT_THAT(Ask(List(huge.address())), HasSubstr("INTERNAL"));
}

TEST_F(RedisFaultsTest, APeerThatHangsUpIsAskedTwiceAtMost) {
  const FakeServer server([](const std::string&) { return ""; });
  EXPECT_THAT(Ask(List(server.address())), HasSubstr("UNAVAILABLE"));
  EXPECT_EQ(server.accepted(), 2);
}

// Case B118. A server that does not know AUTH quotes its arguments back.
TEST_F(RedisFaultsTest, ASecretThatThePeerQuotesBackIsNotPassedOn) {
  const FakeServer server([](const std::string& received) {
    const bool is_auth = received.find("AUTH") != std::string::npos;
    return is_auth ? "-ERR unknown command `AUTH`, with args beginning with: `canary-91c2`\r\n"
                   : ":1\r\n";
  });
  const std::string answer = Ask(List(server.address(), {{"password", "canary-91c2"}}));
  EXPECT_THAT(answer, HasSubstr("UNAUTHENTICATED"));
  EXPECT_THAT(answer, Not(HasSubstr("canary")));
  EXPECT_THAT(plugin_->Output(), Not(HasSubstr("canary")));
}

// Case B118.
TEST_F(RedisFaultsTest, ALongErrorIsCut) {
  const FakeServer server(
      [](const std::string&) { return absl::StrCat("-ERR ", std::string(500'000, 'x'), "\r\n"); });
  EXPECT_LT(Ask(List(server.address())).size(), 400u);
}

TEST_F(RedisFaultsTest, ANameThatDoesNotResolveIsUnavailable) {
  EXPECT_THAT(Ask(List("no-such-host.invalid:6379"), absl::Seconds(20)),
              HasSubstr("UNAVAILABLE: redis no-such-host.invalid:6379: the name "));
}

TEST_F(RedisFaultsTest, GarbageOnThePluginsSocketHurtsNobody) {
  const std::unique_ptr<RedisServer> redis = StartRedis();
  for (int i = 0; i < 20; ++i) {
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    plugin_->socket().copy(address.sun_path, sizeof(address.sun_path) - 1);
    ASSERT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    const std::string garbage(4096, static_cast<char>(i * 37));
    send(fd, garbage.data(), garbage.size(), MSG_NOSIGNAL);
    close(fd);
  }
  EXPECT_EQ(Ask(List(redis->address())), "1");
}

TEST_F(RedisFaultsTest, TheSocketIsForOwnerAndGroupOnly) {
  struct stat found = {};
  ASSERT_EQ(stat(plugin_->socket().c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0660u);
}

TEST_F(RedisFaultsTest, SigtermDrainsEndsWithZeroAndRemovesTheSocket) {
  EXPECT_EQ(*client_->Health("redis"), "SERVING");
  const absl::Time start = absl::Now();
  const auto code = plugin_->process().Stop();
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, 0) << plugin_->Output();
  EXPECT_LT(absl::Now() - start, absl::Seconds(3))
      << "no call ran, so there is nothing to wait for";
  struct stat found = {};
  EXPECT_NE(stat(plugin_->socket().c_str(), &found), 0) << "the socket is still there";
}

// A call that runs at SIGTERM gets its answer, and the process ends within its grace.
TEST_F(RedisFaultsTest, ACallInFlightIsFinishedWhileDraining) {
  std::promise<void> asked;
  std::promise<void> release;
  const FakeServer server([&](const std::string&) {
    asked.set_value();
    release.get_future().wait();
    return ":7\r\n";
  });
  std::string answer;
  std::thread asker([&] { answer = Ask(List(server.address()), absl::Seconds(4)); });
  asked.get_future().wait();
  plugin_->process().Kill(SIGTERM);
  EXPECT_TRUE(WaitFor([&] { return plugin_->Output().find("draining") != std::string::npos; },
                      absl::Seconds(3), "draining", [&] { return plugin_->Output(); })
                  .ok());
  EXPECT_EQ(*client_->Health("redis"), "NOT_SERVING");
  release.set_value();
  asker.join();
  EXPECT_EQ(answer, "7");
  const auto code = plugin_->process().Wait(absl::Seconds(6));
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, 0);
}

// Case B154.
TEST_F(RedisFaultsTest, AStaleSocketIsReplacedAndALiveOneRefused) {
  const std::unique_ptr<RedisServer> redis = StartRedis();
  auto second = Process::Start(
      {.argv = {absl::StrCat(std::getenv("OUTRIGGER_BIN_DIR"), "/outrigger-scaler-redis"),
                "--listen-socket", plugin_->socket()}});
  ASSERT_TRUE(second.ok());
  const auto refused = (*second)->Wait(absl::Seconds(10));
  ASSERT_TRUE(refused.ok()) << refused.status();
  EXPECT_EQ(*refused, 1);
  EXPECT_EQ(Ask(List(redis->address())), "1") << "the first one serves on";
  plugin_->process().Kill(SIGKILL);
  ASSERT_TRUE(plugin_->Restart().ok());
  ASSERT_TRUE(WaitFor([&] { return Ask(List(redis->address())) == "1"; }, absl::Seconds(5),
                      "the restarted plugin answers", [&] { return Ask(List(redis->address())); })
                  .ok());
}

}  // namespace
}  // namespace outrigger::tests
