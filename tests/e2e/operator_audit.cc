// SPDX-License-Identifier: Apache-2.0
#include "tests/e2e/operator_audit.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

#include "operator/api/object_reader.h"

namespace outrigger::tests {
namespace {

namespace json = boost::json;

constexpr char kOperatorUser[] = "system:serviceaccount:outrigger:outrigger-operator";

// A line of the audit log, if it is of an answered request of `user`.
std::optional<AuditedRequest> ParseLine(const std::string& line, absl::string_view user) {
  if (!absl::StrContains(line, user)) return std::nullopt;  // most lines, cheaply
  boost::system::error_code error;
  const json::value event = json::parse(line, error);
  if (error || !event.is_object()) return std::nullopt;
  const json::object& object = event.get_object();
  if (object.at("stage") != "ResponseComplete") return std::nullopt;
  const json::value* name = object.at("user").get_object().if_contains("username");
  if (name == nullptr || *name != json::string_view(user.data(), user.size())) return std::nullopt;
  AuditedRequest request;
  controller::api::ObjectReader reader("", event);
  reader.Read("verb", request.verb);
  reader.Read("userAgent", request.user_agent);
  std::string at;
  reader.Read("requestReceivedTimestamp", at);
  std::string parse_error;
  absl::ParseTime(absl::RFC3339_full, at, &request.at, &parse_error);
  if (const json::value* ref = reader.FindObject("objectRef")) {
    controller::api::ObjectReader ref_reader("objectRef", *ref);
    std::string subresource;
    ref_reader.Read("resource", request.resource);
    ref_reader.Read("subresource", subresource);
    ref_reader.Read("namespace", request.namespace_name);
    ref_reader.Read("name", request.name);
    if (!subresource.empty()) absl::StrAppend(&request.resource, "/", subresource);
  }
  if (const json::value* status = reader.FindObject("responseStatus")) {
    int32_t code = 0;
    controller::api::ObjectReader("responseStatus", *status).Read("code", code);
    request.code = code;
  }
  return request;
}

}  // namespace

std::vector<AuditedRequest> RequestsOf(const ControlPlane& plane, absl::string_view user,
                                       absl::Time since) {
  std::vector<AuditedRequest> requests;
  std::ifstream log(plane.audit_log());
  std::string line;
  while (std::getline(log, line)) {
    std::optional<AuditedRequest> request = ParseLine(line, user);
    if (request && request->at >= since) requests.push_back(*std::move(request));
  }
  return requests;
}

std::vector<AuditedRequest> OperatorRequests(const ControlPlane& plane, absl::Time since) {
  return RequestsOf(plane, kOperatorUser, since);
}

OperatorAudit::OperatorAudit(const ControlPlane& plane) : file_(plane.audit_log()) {
  std::ifstream log(file_, std::ios::ate);
  read_ = std::max<std::streamoff>(0, log.tellg());
}

std::vector<AuditedRequest> OperatorAudit::Take() {
  std::ifstream log(file_);
  log.seekg(read_);
  const std::string fresh(std::istreambuf_iterator<char>(log), {});
  read_ += static_cast<std::streamoff>(fresh.size());
  // The last line may not be whole yet.
  std::vector<std::string> lines = absl::StrSplit(partial_line_ + fresh, '\n');
  partial_line_ = std::move(lines.back());
  lines.pop_back();
  std::vector<AuditedRequest> requests;
  for (const std::string& line : lines) {
    if (std::optional<AuditedRequest> request = ParseLine(line, kOperatorUser)) {
      requests.push_back(*std::move(request));
    }
  }
  return requests;
}

std::vector<AuditedRequest> WritesOf(std::vector<AuditedRequest> requests) {
  std::erase_if(requests, [](const AuditedRequest& request) {
    const bool reads = request.verb == "get" || request.verb == "list" || request.verb == "watch";
    return reads || request.resource == "leases" || request.resource == "subjectaccessreviews";
  });
  return requests;
}

std::vector<AuditedRequest> OperatorWrites(const ControlPlane& plane, absl::Time since) {
  return WritesOf(OperatorRequests(plane, since));
}

std::string Print(const std::vector<AuditedRequest>& requests) {
  return absl::StrJoin(requests, "\n", [](std::string* out, const AuditedRequest& request) {
    absl::StrAppend(out, absl::FormatTime("%H:%M:%E3S", request.at, absl::UTCTimeZone()), " ",
                    request.verb, " ", request.resource, " ", request.namespace_name, "/",
                    request.name, " ", request.code, " ", request.user_agent);
  });
}

}  // namespace outrigger::tests
