// SPDX-License-Identifier: Apache-2.0
#include "operator/api/object_meta.h"

#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>

#include <utility>

#include "host/base/status.h"
#include "operator/api/object_reader.h"

namespace outrigger::controller::api {
namespace {

namespace json = boost::json;

absl::StatusOr<OwnerReference> ParseOwnerReference(std::string path, const json::value& value) {
  OwnerReference owner;
  ObjectReader reader(std::move(path), value);
  reader.Read("apiVersion", owner.api_version);
  reader.Read("kind", owner.kind);
  reader.Read("name", owner.name);
  reader.Read("uid", owner.uid);
  reader.Read("controller", owner.controller);
  reader.Read("blockOwnerDeletion", owner.block_owner_deletion);
  RETURN_IF_ERROR(reader.status());
  return owner;
}

json::object OwnerReferenceToJson(const OwnerReference& owner) {
  return {{"apiVersion", owner.api_version},
          {"kind", owner.kind},
          {"name", owner.name},
          {"uid", owner.uid},
          {"controller", owner.controller},
          {"blockOwnerDeletion", owner.block_owner_deletion}};
}

absl::Status ReadOwnerReferences(ObjectReader& reader, std::vector<OwnerReference>& out) {
  const json::array* owners = reader.FindArray("ownerReferences");
  if (owners == nullptr) return reader.status();
  for (size_t i = 0; i < owners->size(); ++i) {
    ASSIGN_OR_RETURN(
        OwnerReference owner,
        ParseOwnerReference(reader.PathOf(absl::StrCat("ownerReferences[", i, "]")), (*owners)[i]));
    out.push_back(std::move(owner));
  }
  return absl::OkStatus();
}

json::object StringMapToJson(const std::map<std::string, std::string>& map) {
  json::object object;
  for (const auto& [key, value] : map) object[key] = value;
  return object;
}

}  // namespace

absl::StatusOr<ObjectMeta> ParseObjectMeta(const json::value& object) {
  ObjectReader outer("", object);
  const json::value* metadata = outer.FindObject("metadata");
  RETURN_IF_ERROR(outer.status());
  if (metadata == nullptr)
    return absl::InvalidArgumentError("metadata: want an object, got nothing");

  ObjectMeta meta;
  ObjectReader reader("metadata", *metadata);
  reader.Read("name", meta.name);
  reader.Require("name", meta.name);
  reader.Read("namespace", meta.namespace_name);
  reader.Read("uid", meta.uid);
  reader.Read("resourceVersion", meta.resource_version);
  reader.Read("generation", meta.generation);
  reader.Read("labels", meta.labels);
  reader.Read("annotations", meta.annotations);
  reader.Read("finalizers", meta.finalizers);
  reader.Read("creationTimestamp", meta.creation_timestamp);
  reader.Read("deletionTimestamp", meta.deletion_timestamp);
  RETURN_IF_ERROR(ReadOwnerReferences(reader, meta.owner_references));
  RETURN_IF_ERROR(reader.status());
  return meta;
}

json::object ObjectMetaToJson(const ObjectMeta& meta) {
  json::object object;
  object["name"] = meta.name;
  if (!meta.namespace_name.empty()) object["namespace"] = meta.namespace_name;
  if (!meta.uid.empty()) object["uid"] = meta.uid;
  if (!meta.resource_version.empty()) object["resourceVersion"] = meta.resource_version;
  if (meta.generation != 0) object["generation"] = meta.generation;
  if (!meta.labels.empty()) object["labels"] = StringMapToJson(meta.labels);
  if (!meta.annotations.empty()) object["annotations"] = StringMapToJson(meta.annotations);
  if (!meta.finalizers.empty())
    object["finalizers"] = json::array(meta.finalizers.begin(), meta.finalizers.end());
  if (!meta.owner_references.empty()) {
    json::array owners;
    for (const OwnerReference& owner : meta.owner_references)
      owners.push_back(OwnerReferenceToJson(owner));
    object["ownerReferences"] = std::move(owners);
  }
  if (meta.creation_timestamp.has_value())
    object["creationTimestamp"] = FormatTimestamp(*meta.creation_timestamp);
  if (meta.deletion_timestamp.has_value())
    object["deletionTimestamp"] = FormatTimestamp(*meta.deletion_timestamp);
  return object;
}

const OwnerReference* ControllerOf(const ObjectMeta& meta) {
  for (const OwnerReference& owner : meta.owner_references) {
    if (owner.controller) return &owner;
  }
  return nullptr;
}

std::string FormatTimestamp(absl::Time time) {
  return absl::FormatTime("%E4Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone());
}

absl::StatusOr<absl::Time> ParseTimestamp(absl::string_view path, absl::string_view text) {
  // Four digits of a year: Abseil would read more, and words such as "infinite-future".
  constexpr size_t kYearDigits = 4;
  absl::Time time;
  const bool has_year = text.size() > kYearDigits && text[kYearDigits] == '-';
  if (!has_year || !absl::ParseTime(absl::RFC3339_full, text, &time, nullptr)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": want an RFC 3339 time, got \"",
                                                   absl::CHexEscape(text.substr(0, 64)), "\""));
  }
  return time;
}

}  // namespace outrigger::controller::api
