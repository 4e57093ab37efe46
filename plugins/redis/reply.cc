// SPDX-License-Identifier: Apache-2.0
#include "plugins/redis/reply.h"

#include <absl/strings/ascii.h>
#include <absl/strings/escaping.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <hiredis/hiredis.h>

#include <algorithm>

namespace outrigger::plugins::redis {
namespace {

constexpr size_t kMaxErrorBytes = 200;

// hiredis hands out the parent's task; the reply belongs to the parent's slot, or to the caller.
void* Place(const redisReadTask* task, ReplyPtr reply) {
  Reply* raw = reply.get();
  if (task->parent == nullptr) return reply.release();
  auto* parent = static_cast<Reply*>(task->parent->obj);
  parent->elements[static_cast<size_t>(task->idx)] = std::move(reply);
  return raw;
}

ReplyPtr MakeReply(Reply::Type type) {
  auto reply = std::make_unique<Reply>();
  reply->type = type;
  return reply;
}

void* CreateString(const redisReadTask* task, char* text, size_t size) {
  Reply::Type type = Reply::Type::kString;
  if (task->type == REDIS_REPLY_ERROR) type = Reply::Type::kError;
  if (task->type == REDIS_REPLY_STATUS) type = Reply::Type::kStatus;
  ReplyPtr reply = MakeReply(type);
  reply->text.assign(text, size);
  return Place(task, std::move(reply));
}

void* CreateArray(const redisReadTask* task, int elements) {
  if (elements < 0 || static_cast<size_t>(elements) > ReplyReader::kMaxElements) return nullptr;
  ReplyPtr reply = MakeReply(Reply::Type::kArray);
  reply->elements.resize(static_cast<size_t>(elements));
  return Place(task, std::move(reply));
}

void* CreateInteger(const redisReadTask* task,
                    long long value) {  // NOLINT(google-runtime-int): hiredis's signature
  ReplyPtr reply = MakeReply(Reply::Type::kInteger);
  reply->integer = value;
  return Place(task, std::move(reply));
}

void* CreateNil(const redisReadTask* task) { return Place(task, MakeReply(Reply::Type::kNil)); }

void FreeReply(void* reply) { delete static_cast<Reply*>(reply); }

redisReplyObjectFunctions functions = {CreateString, CreateArray, CreateInteger, CreateNil,
                                       FreeReply};

std::string Shown(absl::string_view text) {
  return absl::Utf8SafeCEscape(text.substr(0, kMaxErrorBytes));
}

bool IsOneOf(absl::string_view code, std::initializer_list<absl::string_view> codes) {
  return std::find(codes.begin(), codes.end(), code) != codes.end();
}

absl::StatusCode CodeOf(absl::string_view code, absl::string_view text) {
  if (IsOneOf(code, {"NOAUTH", "WRONGPASS"})) return absl::StatusCode::kUnauthenticated;
  // Redis words the same refusal in two ways: of a command, and of a command inside a script.
  if (IsOneOf(code, {"NOPERM", "DENIED"}) || absl::StrContains(text, "can't run this command")) {
    return absl::StatusCode::kPermissionDenied;
  }
  if (IsOneOf(code,
              {"LOADING", "MASTERDOWN", "CLUSTERDOWN", "BUSY", "TRYAGAIN", "MISCONF", "OOM"}) ||
      absl::StrContains(text, "max number of clients")) {
    return absl::StatusCode::kUnavailable;
  }
  if (IsOneOf(code, {"MOVED", "ASK", "WRONGTYPE", "CROSSSLOT"}) ||
      absl::StrContains(text, "DB index") || absl::StrContains(text, "unknown command")) {
    return absl::StatusCode::kFailedPrecondition;
  }
  return absl::StatusCode::kInternal;
}

}  // namespace

absl::string_view TypeName(Reply::Type type) {
  switch (type) {
    case Reply::Type::kInteger:
      return "integer";
    case Reply::Type::kString:
      return "string";
    case Reply::Type::kStatus:
      return "status";
    case Reply::Type::kError:
      return "error";
    case Reply::Type::kNil:
      return "nil";
    case Reply::Type::kArray:
      return "array";
  }
  return "";
}

void ReplyReader::Free::operator()(redisReader* reader) const { redisReaderFree(reader); }

ReplyReader::ReplyReader() : reader_(redisReaderCreateWithFunctions(&functions)) {}

absl::Status ReplyReader::Feed(absl::string_view bytes) {
  bytes_since_reply_ += bytes.size();
  if (bytes_since_reply_ > kMaxReplyBytes) {
    return absl::InternalError(
        absl::StrCat("want a reply of at most ", kMaxReplyBytes, " bytes, got more"));
  }
  if (redisReaderFeed(reader_.get(), bytes.data(), bytes.size()) != REDIS_OK) {
    return absl::InternalError(absl::StrCat("want Redis replies, got: ", Shown(reader_->errstr)));
  }
  return absl::OkStatus();
}

absl::StatusOr<ReplyPtr> ReplyReader::Next() {
  void* reply = nullptr;
  if (redisReaderGetReply(reader_.get(), &reply) != REDIS_OK) {
    return absl::InternalError(absl::StrCat("want Redis replies, got: ", Shown(reader_->errstr)));
  }
  if (reply != nullptr) bytes_since_reply_ = reader_->len - reader_->pos;
  return ReplyPtr(static_cast<Reply*>(reply));
}

std::string FormatCommand(const std::vector<absl::string_view>& arguments) {
  std::vector<const char*> texts;
  std::vector<size_t> sizes;
  for (absl::string_view argument : arguments) {
    texts.push_back(argument.data());
    sizes.push_back(argument.size());
  }
  char* formatted = nullptr;
  const int size = redisFormatCommandArgv(&formatted, static_cast<int>(texts.size()), texts.data(),
                                          sizes.data());
  if (size < 0) return "";  // out of memory only
  std::string command(formatted, static_cast<size_t>(size));
  redisFreeCommand(formatted);
  return command;
}

std::string ErrorCode(absl::string_view text) {
  const absl::string_view word = text.substr(0, text.find(' '));
  const bool is_code = !word.empty() && word.size() <= 20 &&
                       std::all_of(word.begin(), word.end(), absl::ascii_isupper);
  return is_code ? std::string(word) : "ERR";
}

absl::Status FromRedisError(absl::string_view text) {
  const std::string code = ErrorCode(text);
  std::string message = Shown(text);
  if (code == "MOVED" || code == "ASK") {
    message = absl::StrCat("the server is a node of a cluster, which type redis does not follow: ",
                           message);
  }
  return absl::Status(CodeOf(code, text), message);
}

}  // namespace outrigger::plugins::redis
