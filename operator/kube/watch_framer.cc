// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/watch_framer.h"

#include <absl/strings/ascii.h>
#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>

#include <boost/json/monotonic_resource.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parser.hpp>
#include <utility>

#include "host/base/status.h"

namespace outrigger::controller::kube {
namespace {

constexpr size_t kShownBytes = 120;
constexpr size_t kPoolBytesPerTextByte = 3;  // measured on Deployments and HPAs; grows if need be

const boost::json::object* ObjectMember(const boost::json::object& object, absl::string_view key) {
  const boost::json::value* member = object.if_contains({key.data(), key.size()});
  return member == nullptr ? nullptr : member->if_object();
}

std::string StringMember(const boost::json::object& object, absl::string_view key) {
  const boost::json::value* member = object.if_contains({key.data(), key.size()});
  const boost::json::string* text = member == nullptr ? nullptr : member->if_string();
  return text == nullptr ? "" : std::string(*text);
}

std::optional<int64_t> IntegerMember(const boost::json::object& object, absl::string_view key) {
  const boost::json::value* member = object.if_contains({key.data(), key.size()});
  const int64_t* number = member == nullptr ? nullptr : member->if_int64();
  return number == nullptr ? std::nullopt : std::optional<int64_t>(*number);
}

std::optional<WatchEventType> ParseType(absl::string_view type) {
  if (type == "ADDED") return WatchEventType::kAdded;
  if (type == "MODIFIED") return WatchEventType::kModified;
  if (type == "DELETED") return WatchEventType::kDeleted;
  if (type == "BOOKMARK") return WatchEventType::kBookmark;
  return std::nullopt;
}

bool HasResourceVersion(const boost::json::object& object) {
  const boost::json::object* metadata = ObjectMember(object, "metadata");
  return metadata != nullptr && !StringMember(*metadata, "resourceVersion").empty();
}

}  // namespace

absl::StatusOr<boost::json::value> ParseJson(absl::string_view text) {
  boost::json::parse_options options;
  options.max_depth = 256;
  // An object of the API server is hundreds of small values that live and die together.
  boost::json::parser parser({}, options);
  parser.reset(boost::json::make_shared_resource<boost::json::monotonic_resource>(
      kPoolBytesPerTextByte * text.size()));
  boost::json::error_code error;
  const size_t used = parser.write_some(text.data(), text.size(), error);
  if (!error && used < text.size()) error = boost::json::error::extra_data;
  if (error) {
    return absl::InvalidArgumentError(
        absl::StrCat("no JSON: ", error.message(), " at byte ", used, " of ", text.size()));
  }
  return parser.release();
}

std::optional<ApiError> ParseStatusObject(const boost::json::value& value) {
  const boost::json::object* object = value.if_object();
  if (object == nullptr || StringMember(*object, "kind") != "Status") return std::nullopt;
  ApiError error;
  error.http_code = static_cast<int>(IntegerMember(*object, "code").value_or(0));
  error.reason = StringMember(*object, "reason");
  error.message = StringMember(*object, "message");
  if (const boost::json::object* details = ObjectMember(*object, "details")) {
    if (std::optional<int64_t> seconds = IntegerMember(*details, "retryAfterSeconds")) {
      if (*seconds > 0) error.retry_after = absl::Seconds(*seconds);
    }
  }
  return error;
}

absl::Status WatchFramer::Feed(absl::string_view bytes,
                               const std::function<void(WatchEvent)>& on_event) {
  while (error_.ok() && !bytes.empty()) {
    const size_t end = bytes.find('\n');
    const absl::string_view piece = bytes.substr(0, end);
    if (partial_.size() + piece.size() > max_line_bytes_) {
      error_ = absl::UnavailableError(
          absl::StrCat("watch ", resource_, ": a line is longer than ", max_line_bytes_, " bytes"));
      break;
    }
    if (end == absl::string_view::npos) {
      partial_.append(piece.data(), piece.size());
      break;
    }
    bytes.remove_prefix(end + 1);
    if (partial_.empty()) {
      error_ = OnLine(piece, on_event);
    } else {
      partial_.append(piece.data(), piece.size());
      const std::string line = std::exchange(partial_, {});
      error_ = OnLine(line, on_event);
    }
  }
  return error_;
}

absl::Status WatchFramer::Finish() const {
  if (!error_.ok() || absl::StripAsciiWhitespace(partial_).empty()) return error_;
  return Malformed("the stream ended inside a line", partial_);
}

absl::Status WatchFramer::OnLine(absl::string_view line,
                                 const std::function<void(WatchEvent)>& on_event) {
  line = absl::StripAsciiWhitespace(line);
  if (line.empty()) return absl::OkStatus();
  absl::StatusOr<boost::json::value> value = ParseJson(line);
  if (!value.ok()) return Malformed(value.status().message(), line);
  boost::json::object* event = value->if_object();
  if (event == nullptr) return Malformed("want an object", line);
  boost::json::value* object = event->if_contains("object");
  if (object == nullptr || !object->is_object()) return Malformed("object: want an object", line);

  const std::string type = StringMember(*event, "type");
  if (type == "ERROR") {
    const std::optional<ApiError> error = ParseStatusObject(*object);
    if (!error) return Malformed("object of an ERROR event: want a Status", line);
    return host::Annotate(ToStatus(*error), "watch ", resource_);
  }
  const std::optional<WatchEventType> parsed = ParseType(type);
  if (!parsed) {
    return Malformed("type: want ADDED, MODIFIED, DELETED, BOOKMARK or ERROR", line);
  }
  if (!HasResourceVersion(object->get_object())) {
    return Malformed("object.metadata.resourceVersion: want a string", line);
  }
  on_event({*parsed, std::move(*object)});
  return absl::OkStatus();
}

absl::Status WatchFramer::Malformed(absl::string_view what, absl::string_view line) const {
  return absl::UnavailableError(absl::StrCat("watch ", resource_, ": ", what, ", got \"",
                                             absl::CHexEscape(line.substr(0, kShownBytes)),
                                             line.size() > kShownBytes ? "…\"" : "\""));
}

}  // namespace outrigger::controller::kube
