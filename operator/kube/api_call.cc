// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/api_call.h"

#include <absl/strings/escaping.h>
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/time/time.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>

#include "host/base/status.h"
#include "operator/kube/request_path.h"
#include "operator/kube/watch_framer.h"

namespace outrigger::controller::kube {
namespace {

namespace json = boost::json;

constexpr size_t kShownBodyBytes = 200;
constexpr absl::Duration kLongestRetryAfter = absl::Minutes(10);

std::string Shown(absl::string_view body) {
  return absl::StrCat("\"", absl::CHexEscape(body.substr(0, kShownBodyBytes)),
                      body.size() > kShownBodyBytes ? "…\"" : "\"");
}

std::optional<absl::Duration> ParseRetryAfter(absl::string_view header) {
  int64_t seconds = 0;  // the API server sends no dates
  if (!absl::SimpleAtoi(header, &seconds) || seconds < 0) return std::nullopt;
  return std::min(absl::Seconds(seconds), kLongestRetryAfter);
}

}  // namespace

absl::StatusOr<ApiCall> ApiCall::Make(std::string verb, std::string method,
                                      const Resource& resource, const std::string& namespace_name,
                                      const std::string& name, const std::string& subresource,
                                      const std::string& query, host::Deadline deadline) {
  const absl::string_view separator = namespace_name.empty() || name.empty() ? "" : "/";
  ApiCall call;
  call.verb = std::move(verb);
  call.resource = resource;
  call.target = absl::StrCat(namespace_name, separator, name);
  absl::StatusOr<std::string> path = RequestPath(resource, namespace_name, name, subresource);
  if (!path.ok()) return call.Explain(path.status());
  call.request.method = std::move(method);
  call.request.path = *path + query;
  call.request.deadline = deadline;
  return call;
}

absl::StatusOr<ApiCall> ApiCall::MakeFor(std::string verb, std::string method,
                                         const Resource& resource,
                                         const std::string& namespace_name, const std::string& name,
                                         const std::string& subresource, const std::string& query,
                                         host::Deadline deadline) {
  if (name.empty()) {  // would be the whole collection
    return absl::InvalidArgumentError(
        absl::StrCat(verb, " ", resource.ToString(), ": name: want one, got \"\""));
  }
  return Make(std::move(verb), std::move(method), resource, namespace_name, name, subresource,
              query, deadline);
}

void ApiCall::SetBody(absl::string_view content_type, const json::value& body) {
  request.headers.push_back(absl::StrCat("Content-Type: ", content_type));
  request.body = json::serialize(body);
}

absl::Status ApiCall::Explain(const absl::Status& status) const {
  if (status.ok() || absl::StrContains(status.message(), resource.plural)) return status;
  return host::Annotate(status, verb, " ", resource.ToString(), target.empty() ? "" : " ", target);
}

absl::Status ErrorOf(const HttpAnswer& answer) {
  ApiError error;
  const absl::StatusOr<json::value> body = ParseJson(answer.body);
  if (body.ok()) error = ParseStatusObject(*body).value_or(ApiError{});
  error.http_code = answer.code;  // the body could lie, or be a proxy's
  if (error.message.empty()) {
    error.message = absl::StrCat("HTTP ", answer.code);
    if (!answer.location.empty()) {
      absl::StrAppend(&error.message, " to ", Shown(answer.location), ", which is not followed");
    } else if (!answer.body.empty()) {
      absl::StrAppend(&error.message, ": ", Shown(answer.body));
    }
  }
  if (std::optional<absl::Duration> after = ParseRetryAfter(answer.retry_after)) {
    error.retry_after = after;
  }
  return ToStatus(error);
}

std::string MetadataText(const json::value& object, absl::string_view key) {
  const json::object* root = object.if_object();
  const json::value* metadata = root == nullptr ? nullptr : root->if_contains("metadata");
  const json::object* fields = metadata == nullptr ? nullptr : metadata->if_object();
  const json::value* member =
      fields == nullptr ? nullptr : fields->if_contains({key.data(), key.size()});
  const json::string* text = member == nullptr ? nullptr : member->if_string();
  return text == nullptr ? "" : std::string(*text);
}

absl::StatusOr<json::value> DecodeValue(const ApiCall& call, const HttpAnswer& answer) {
  if (!answer.transport.ok()) return call.Explain(answer.transport);
  if (answer.code < 200 || answer.code > 299) return call.Explain(ErrorOf(answer));
  absl::StatusOr<json::value> value = ParseJson(answer.body);
  if (value.ok()) return value;
  return call.Explain(absl::UnavailableError(
      absl::StrCat("the answer is ", value.status().message(), ": ", Shown(answer.body))));
}

absl::StatusOr<ObjectList> DecodeList(const ApiCall& call, const HttpAnswer& answer) {
  ASSIGN_OR_RETURN(json::value value, DecodeValue(call, answer));
  json::object* root = value.if_object();
  json::value* items = root == nullptr ? nullptr : root->if_contains("items");
  ObjectList list;
  list.resource_version = MetadataText(value, "resourceVersion");
  list.continue_token = MetadataText(value, "continue");
  // A nil list of the server is null.
  const bool is_list = items != nullptr && (items->is_array() || items->is_null());
  if (!is_list || list.resource_version.empty()) {
    return call.Explain(
        absl::UnavailableError("the answer is no list: want items and metadata.resourceVersion"));
  }
  if (json::array* array = items->if_array()) {
    list.items.assign(std::make_move_iterator(array->begin()),
                      std::make_move_iterator(array->end()));
  }
  return list;
}

}  // namespace outrigger::controller::kube
