// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/request_path.h"

#include <absl/strings/ascii.h>
#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include "host/base/status.h"

namespace outrigger::controller::kube {
namespace {

// The rule of the Go client (IsValidPathSegmentName), plus what would end the path.
absl::Status CheckSegment(absl::string_view what, absl::string_view segment) {
  const bool dots = segment == "." || segment == "..";
  if (!dots && segment.find_first_of("/%?#") == absl::string_view::npos) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      what, ": want a name without \"/\" and \"%\", got \"", absl::CEscape(segment), "\""));
}

std::string PercentEncode(absl::string_view text) {
  std::string out;
  for (const char c : text) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' || c == '_' ||
        c == '~') {
      out.push_back(c);
    } else {
      absl::StrAppendFormat(&out, "%%%02X", static_cast<unsigned char>(c));
    }
  }
  return out;
}

}  // namespace

absl::StatusOr<std::string> GroupVersionPath(absl::string_view group, absl::string_view version) {
  RETURN_IF_ERROR(CheckSegment("group", group));
  RETURN_IF_ERROR(CheckSegment("version", version));
  return group.empty() ? absl::StrCat("/api/", PercentEncode(version))
                       : absl::StrCat("/apis/", PercentEncode(group), "/", PercentEncode(version));
}

absl::StatusOr<std::string> RequestPath(const Resource& resource, absl::string_view namespace_name,
                                        absl::string_view name, absl::string_view subresource) {
  RETURN_IF_ERROR(CheckSegment("namespace", namespace_name));
  RETURN_IF_ERROR(CheckSegment("name", name));
  ASSIGN_OR_RETURN(std::string path, GroupVersionPath(resource.group, resource.version));
  if (resource.namespaced && !namespace_name.empty()) {
    absl::StrAppend(&path, "/namespaces/", PercentEncode(namespace_name));
  }
  absl::StrAppend(&path, "/", resource.plural);
  if (!name.empty()) absl::StrAppend(&path, "/", PercentEncode(name));
  if (!subresource.empty()) absl::StrAppend(&path, "/", subresource);
  return path;
}

std::string QueryString(const std::vector<std::pair<std::string, std::string>>& parameters) {
  std::string out;
  for (const auto& [name, value] : parameters) {
    if (value.empty()) continue;
    absl::StrAppend(&out, out.empty() ? "?" : "&", name, "=", PercentEncode(value));
  }
  return out;
}

}  // namespace outrigger::controller::kube
