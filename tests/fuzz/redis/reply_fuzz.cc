// SPDX-License-Identifier: Apache-2.0
// Whatever answers on an address that a user wrote: the reader must neither crash nor hoard, and
// where the bytes were cut must not change what is read.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "plugins/redis/reply.h"

namespace {

using outrigger::plugins::redis::ReplyPtr;
using outrigger::plugins::redis::ReplyReader;

std::string Print(const outrigger::plugins::redis::Reply& reply) {
  std::string text = std::string(TypeName(reply.type)) + std::to_string(reply.integer) + reply.text;
  for (const ReplyPtr& element : reply.elements) {
    text += element ? "(" + Print(*element) + ")" : "()";
  }
  return text;
}

// All replies, and "!" where the stream was lost.
std::string ReadAll(absl::string_view bytes, size_t chunk) {
  ReplyReader reader;
  std::string text;
  for (size_t at = 0; at < bytes.size(); at += chunk) {
    if (!reader.Feed(bytes.substr(at, chunk)).ok()) return text + "!";
    while (true) {
      absl::StatusOr<ReplyPtr> reply = reader.Next();
      if (!reply.ok()) return text + "!";
      if (*reply == nullptr) break;
      text += Print(**reply) + "\n";
      if ((*reply)->type == outrigger::plugins::redis::Reply::Type::kError) {
        if (outrigger::plugins::redis::FromRedisError((*reply)->text).ok()) std::abort();
      }
    }
  }
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (ReadAll(bytes, size + 1) != ReadAll(bytes, 1)) std::abort();
  return 0;
}
