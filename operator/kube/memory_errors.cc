// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/memory_errors.h"

#include <absl/strings/str_cat.h>

namespace outrigger::controller::kube::memory {
namespace {

absl::Status Answer(int code, absl::string_view reason, std::string message) {
  return ToStatus(
      {.http_code = code, .reason = std::string(reason), .message = std::move(message)});
}

// Built-in kinds lie directly below /registry, custom ones below their group.
std::string StorageKey(const MemoryKind& kind, absl::string_view namespace_name,
                       absl::string_view name) {
  std::string key = "/registry/";
  if (kind.custom) absl::StrAppend(&key, kind.resource.group, "/");
  absl::StrAppend(&key, kind.resource.plural, "/");
  if (!namespace_name.empty()) absl::StrAppend(&key, namespace_name, "/");
  return absl::StrCat(key, name);
}

}  // namespace

absl::Status NotFound(const Resource& resource, absl::string_view name) {
  return Answer(404, "NotFound", absl::StrCat(resource.ToString(), " \"", name, "\" not found"));
}

absl::Status UnknownResource() {
  // Plain text, no Status object: so as HttpApi tells it.
  return Answer(404, "", "HTTP 404: \"404 page not found\\n\"");
}

absl::Status UnknownSubresource() {
  return Answer(404, "NotFound", "the server could not find the requested resource");
}

absl::Status AlreadyExists(const Resource& resource, absl::string_view name, bool being_deleted) {
  return Answer(409, "AlreadyExists",
                absl::StrCat(being_deleted ? "object is being deleted: " : "", resource.ToString(),
                             " \"", name, "\" already exists"));
}

absl::Status BadRequest(std::string message) {
  return Answer(400, "BadRequest", std::move(message));
}

absl::Status Expired(std::string message) { return Answer(410, "Expired", std::move(message)); }

absl::Status Conflict(absl::string_view qualified, absl::string_view name,
                      absl::string_view message) {
  return Answer(
      409, "Conflict",
      absl::StrCat("Operation cannot be fulfilled on ", qualified, " \"", name, "\": ", message));
}

absl::Status ModifiedMeanwhile(const Resource& resource, absl::string_view name) {
  return Conflict(resource.ToString(), name,
                  "the object has been modified; please apply your changes to the latest version "
                  "and try again");
}

absl::Status UidPreconditionFailed(const MemoryKind& kind, absl::string_view namespace_name,
                                   absl::string_view name, absl::string_view wanted,
                                   absl::string_view got) {
  return Conflict(
      kind.resource.ToString(), name,
      absl::StrCat(
          "StorageError: invalid object, Code: 4, Key: ", StorageKey(kind, namespace_name, name),
          ", ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in "
          "precondition: ",
          wanted, ", UID in object meta: ", got));
}

absl::Status Invalid(absl::string_view qualified, absl::string_view name, absl::string_view fault) {
  return Answer(422, "Invalid", absl::StrCat(qualified, " \"", name, "\" is invalid: ", fault));
}

absl::Status NotModelled(absl::string_view what) {
  return absl::UnimplementedError(absl::StrCat("MemoryApi does not model ", what));
}

}  // namespace outrigger::controller::kube::memory
