// SPDX-License-Identifier: Apache-2.0
#include "plugins/redis/reply.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace outrigger::plugins::redis {
namespace {

TEST(ReplyReaderTest, AReplyMayComeInPiecesOfOneByte) {
  ReplyReader reader;
  const std::string bytes = "*3\r\n:7\r\n$3\r\nabc\r\n*1\r\n+OK\r\n-ERR x\r\n";
  std::vector<ReplyPtr> replies;
  for (const char byte : bytes) {
    ASSERT_TRUE(reader.Feed({&byte, 1}).ok());
    absl::StatusOr<ReplyPtr> reply = reader.Next();
    ASSERT_TRUE(reply.ok()) << reply.status();
    if (*reply != nullptr) replies.push_back(*std::move(reply));
  }
  ASSERT_EQ(replies.size(), 2u);
  ASSERT_EQ(replies[0]->elements.size(), 3u);
  EXPECT_EQ(replies[0]->elements[0]->integer, 7);
  EXPECT_EQ(replies[0]->elements[1]->text, "abc");
  EXPECT_EQ(replies[0]->elements[2]->elements[0]->type, Reply::Type::kStatus);
  EXPECT_EQ(replies[1]->type, Reply::Type::kError);
  EXPECT_EQ(replies[1]->text, "ERR x");
}

TEST(ReplyReaderTest, ManyRepliesMayComeAtOnce) {
  ReplyReader reader;
  std::string bytes;
  for (int i = 0; i < 200'000; ++i) bytes += ":1\r\n";
  // Limits are per reply, not per connection.
  for (size_t at = 0; at < bytes.size(); at += 4096) {
    ASSERT_TRUE(reader.Feed(absl::string_view(bytes).substr(at, 4096)).ok());
    while (true) {
      absl::StatusOr<ReplyPtr> reply = reader.Next();
      ASSERT_TRUE(reply.ok()) << reply.status();
      if (*reply == nullptr) break;
    }
  }
}

TEST(ReplyReaderTest, LimitsHold) {
  ReplyReader arrays;
  ASSERT_TRUE(arrays.Feed("*10001\r\n").ok());
  EXPECT_EQ(arrays.Next().status().code(), absl::StatusCode::kInternal);
  ReplyReader bulk;
  ASSERT_TRUE(bulk.Feed("$2000000\r\n").ok());
  EXPECT_EQ(bulk.Feed(std::string(1 << 20, 'x')).code(), absl::StatusCode::kInternal);
}

TEST(ReplyReaderTest, GarbageIsAnErrorThatSaysWhatCame) {
  ReplyReader reader;
  ASSERT_TRUE(reader.Feed("HTTP/1.1 200 OK\r\n").ok());
  EXPECT_THAT(std::string(reader.Next().status().message()),
              testing::HasSubstr("want Redis replies, got: Protocol error"));
}

TEST(FormatCommandTest, ArgumentsCannotInjectCommands) {
  EXPECT_EQ(FormatCommand({"LLEN", "a\r\nFLUSHALL"}),
            "*2\r\n$4\r\nLLEN\r\n$11\r\na\r\nFLUSHALL\r\n");
}

TEST(RedisErrorTest, CodesAreTakenFromTheFirstWord) {
  EXPECT_EQ(FromRedisError("WRONGPASS invalid").code(), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(FromRedisError("CLUSTERDOWN Hash slot not served").code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(FromRedisError("ERR max number of clients reached").code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(FromRedisError("ERR unknown command 'EVAL'").code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(FromRedisError("").code(), absl::StatusCode::kInternal);
  EXPECT_EQ(ErrorCode("WRONGPASS invalid"), "WRONGPASS");
  EXPECT_EQ(ErrorCode("my-secret word"), "ERR");
}

}  // namespace
}  // namespace outrigger::plugins::redis
