// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

struct redisReader;

namespace outrigger::plugins::redis {

// One reply of a Redis server.
struct Reply {
  enum class Type { kInteger, kString, kStatus, kError, kNil, kArray };
  Type type = Type::kNil;
  int64_t integer = 0;
  std::string text;  // of strings, statuses and errors
  std::vector<std::unique_ptr<Reply>> elements;
};
using ReplyPtr = std::unique_ptr<Reply>;

// "integer", "string", …: for messages.
absl::string_view TypeName(Reply::Type type);

// Cuts a byte stream into replies. hiredis's reader with limits of ours, since whatever answers on
// an address that a user wrote may be anything: at most kMaxReplyBytes for one reply and
// kMaxElements in one array.
//
// Not thread-safe. After an error the stream is lost: the connection must be reopened.
class ReplyReader {
 public:
  static constexpr size_t kMaxReplyBytes = 1 << 20;
  static constexpr size_t kMaxElements = 10'000;

  ReplyReader();

  // INTERNAL: the peer sends something else than Redis replies, or too much of them.
  absl::Status Feed(absl::string_view bytes);
  // nullptr: more bytes are needed. INTERNAL as above.
  absl::StatusOr<ReplyPtr> Next();

 private:
  struct Free {
    void operator()(redisReader* reader) const;
  };
  std::unique_ptr<redisReader, Free> reader_;
  size_t bytes_since_reply_ = 0;
};

// A command in the form that a server reads.
std::string FormatCommand(const std::vector<absl::string_view>& arguments);

// An error reply as a status: NOAUTH and WRONGPASS are UNAUTHENTICATED, NOPERM is
// PERMISSION_DENIED, LOADING, MASTERDOWN and the like are UNAVAILABLE, MOVED, WRONGTYPE and unknown
// commands are FAILED_PRECONDITION, the rest INTERNAL. The text is escaped and cut to 200 bytes; a
// caller that sent a secret in the command must not use it (servers quote arguments back).
absl::Status FromRedisError(absl::string_view text);
// The first word of an error, if it looks like a code ("WRONGPASS"); else "ERR".
std::string ErrorCode(absl::string_view text);

}  // namespace outrigger::plugins::redis
