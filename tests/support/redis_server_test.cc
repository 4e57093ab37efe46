// SPDX-License-Identifier: Apache-2.0
#include "tests/support/redis_server.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/support/free_port.h"

namespace outrigger::tests {
namespace {

using testing::HasSubstr;

TEST(RedisServerTest, AnswersCommands) {
  auto redis = RedisServer::Start();
  ASSERT_TRUE(redis.ok()) << redis.status();
  EXPECT_EQ(*(*redis)->Command({"RPUSH", "orders", "a", "b c"}), "2");
  EXPECT_EQ(*(*redis)->Command({"LRANGE", "orders", "0", "-1"}), "a\nb c");
  const absl::Status wrong_type = (*redis)->Command({"GET", "orders"}).status();
  EXPECT_EQ(wrong_type.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(wrong_type.message()), HasSubstr("WRONGTYPE"));
}

TEST(RedisServerTest, ServesTlsPasswordUsersAndUnixSocketTogether) {
  auto redis = RedisServer::Start({.password = "sesame",
                                   .users = {"reader on >opensesame ~* +@read"},
                                   .tls = true,
                                   .require_client_certificate = true,
                                   .unix_socket = true});
  ASSERT_TRUE(redis.ok()) << redis.status();
  EXPECT_THAT(*(*redis)->Command({"ACL", "LIST"}), HasSubstr("user reader on"));
  struct stat info{};
  ASSERT_EQ(stat((*redis)->unix_socket().c_str(), &info), 0);
  EXPECT_TRUE(S_ISSOCK(info.st_mode));
}

TEST(RedisServerTest, ListensOnThePortThatWasWanted) {
  const uint16_t port = FreePort();
  auto redis = RedisServer::Start({.port = port});
  ASSERT_TRUE(redis.ok()) << redis.status();
  EXPECT_EQ((*redis)->address(), absl::StrCat("127.0.0.1:", port));
  EXPECT_EQ(*(*redis)->Command({"CONFIG", "GET", "port"}), absl::StrCat("port\n", port));
}

TEST(RedisServerTest, RestartsEmptyOnItsPort) {
  auto redis = RedisServer::Start();
  ASSERT_TRUE(redis.ok()) << redis.status();
  const uint16_t port = (*redis)->port();
  ASSERT_TRUE((*redis)->Command({"SET", "a", "1"}).ok());
  ASSERT_TRUE((*redis)->Restart().ok());
  EXPECT_EQ((*redis)->port(), port);
  EXPECT_EQ(*(*redis)->Command({"EXISTS", "a"}), "0");
}

TEST(RedisServerTest, EndAtStartIsToldWithTheLog) {
  const absl::Status status =
      RedisServer::Start({.configuration = {"no-such-directive yes"}}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("no-such-directive"));
}

}  // namespace
}  // namespace outrigger::tests
