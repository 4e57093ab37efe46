// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "operator/api/namespaced_name.h"

namespace outrigger::controller::api {

struct OwnerReference {
  std::string api_version;
  std::string kind;
  std::string name;
  std::string uid;
  bool controller = false;
  bool block_owner_deletion = false;

  friend bool operator==(const OwnerReference&, const OwnerReference&) = default;
};

// metadata of any Kubernetes object, as far as the operator reads or writes it.
struct ObjectMeta {
  std::string name;
  std::string namespace_name;
  std::string uid;
  std::string resource_version;  // opaque: only equality means something
  int64_t generation = 0;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  std::vector<std::string> finalizers;
  std::vector<OwnerReference> owner_references;
  std::optional<absl::Time> creation_timestamp;
  std::optional<absl::Time> deletion_timestamp;  // set: being deleted, held by its finalizers

  NamespacedName Key() const { return {namespace_name, name}; }
};

// Reads the whole object (not its metadata member): INVALID_ARGUMENT when it is no object, has no
// metadata.name, or a member has the wrong JSON type; the message names the path, what was wanted
// and what came.
absl::StatusOr<ObjectMeta> ParseObjectMeta(const boost::json::value& object);

// The metadata member. Empty fields are left out, so that it can be sent as it is.
boost::json::object ObjectMetaToJson(const ObjectMeta& meta);

// The owner reference with controller: true, or null.
const OwnerReference* ControllerOf(const ObjectMeta& meta);

// RFC 3339 with seconds in UTC, as the API server prints metav1.Time: "2026-01-02T03:04:05Z".
std::string FormatTimestamp(absl::Time time);
// INVALID_ARGUMENT when `text` is no RFC 3339 time; `path` names the field in the message.
absl::StatusOr<absl::Time> ParseTimestamp(absl::string_view path, absl::string_view text);

}  // namespace outrigger::controller::api
