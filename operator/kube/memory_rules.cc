// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/memory_rules.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "host/base/status.h"
#include "operator/kube/memory_errors.h"
#include "operator/kube/memory_object.h"

namespace outrigger::controller::kube::memory {
namespace {

namespace json = boost::json;

absl::string_view GoNameOfType(const json::value& value) {
  if (value.is_array()) return "array";
  if (value.is_string()) return "string";
  return value.is_bool() ? "bool" : "number";
}

bool Differs(const json::object& a, const json::object& b, absl::string_view key) {
  const json::string_view name(key.data(), key.size());
  const json::value* in_a = a.if_contains(name);
  const json::value* in_b = b.if_contains(name);
  if (in_a == nullptr || in_b == nullptr) return in_a != in_b;
  return *in_a != *in_b;
}

std::string NewFinalizers(const json::object& before, const json::object& after) {
  const std::vector<std::string> old = FinalizersOf(before);
  std::vector<std::string> added;
  for (const std::string& finalizer : FinalizersOf(after)) {
    if (std::find(old.begin(), old.end(), finalizer) == old.end()) {
      added.push_back(absl::StrCat("\"", finalizer, "\""));
    }
  }
  std::sort(added.begin(), added.end());
  return absl::StrJoin(added, ", ");
}

bool HasCollectorFinalizer(const json::object& object) {
  const std::vector<std::string> finalizers = FinalizersOf(object);
  return std::any_of(finalizers.begin(), finalizers.end(), [](const std::string& finalizer) {
    return finalizer == "orphan" || finalizer == "foregroundDeletion";
  });
}

}  // namespace

absl::StatusOr<json::object> AsObject(json::value value, absl::string_view what) {
  if (value.is_object()) return std::move(value.get_object());
  return BadRequest(absl::StrCat("error decoding ", what, ": json: cannot unmarshal ",
                                 GoNameOfType(value),
                                 " into Go value of type map[string]interface {}"));
}

// 404 for a subresource that the kind lacks.
absl::Status CheckSubresource(const MemoryKind& kind, absl::string_view subresource) {
  if (subresource.empty() || (subresource == "status" && kind.has_status) ||
      (subresource == "scale" && kind.has_scale)) {
    return absl::OkStatus();
  }
  if (subresource == "status" || subresource == "scale") return UnknownSubresource();
  return NotModelled(absl::StrCat("subresource ", subresource));
}

absl::Status CheckRequestNamespace(const MemoryKind& kind, const std::string& namespace_name) {
  if (kind.resource.namespaced != namespace_name.empty()) return absl::OkStatus();
  return NotModelled(absl::StrCat(kind.resource.ToString(), kind.resource.namespaced
                                                                ? " without a namespace"
                                                                : " in a namespace"));
}

// An object must name its kind (custom resources) and may not name another one.
absl::Status CheckType(const MemoryKind& kind, json::object& object) {
  const std::string version = StringOf(object, "apiVersion");
  const std::string name = StringOf(object, "kind");
  if (kind.custom && (version.empty() || name.empty())) {
    return NotModelled("custom resources without apiVersion and kind");
  }
  if (!version.empty() && version != kind.ApiVersion()) {
    return BadRequest(absl::StrCat("the API version in the data (", version,
                                   ") does not match the expected API version (", kind.ApiVersion(),
                                   ")"));
  }
  if (!name.empty() && name != kind.kind) {
    return NotModelled(absl::StrCat("a ", name, " sent as ", kind.kind));
  }
  object["apiVersion"] = kind.ApiVersion();
  object["kind"] = kind.kind;
  return absl::OkStatus();
}

absl::Status CheckNamespace(const MemoryKind& kind, const std::string& namespace_name,
                            json::object& object) {
  json::object& metadata = MakeObject(object, "metadata");
  const std::string given = StringOf(metadata, "namespace");
  if (!kind.resource.namespaced) {
    metadata.erase("namespace");
    return absl::OkStatus();
  }
  if (given.empty()) metadata["namespace"] = namespace_name;
  if (given.empty() || given == namespace_name) return absl::OkStatus();
  return BadRequest(
      "the namespace of the provided object does not match the namespace sent on the request");
}

absl::Status CheckName(const std::string& name, const json::object& object) {
  const std::string given = MetaString(object, "name");
  if (given.empty()) {
    return BadRequest(absl::StrCat("the name of the object (", name,
                                   " based on URL) was undeterminable: name must be provided"));
  }
  if (given == name) return absl::OkStatus();
  return BadRequest(absl::StrCat("the name of the object (", given,
                                 ") does not match the name on the URL (", name, ")"));
}

absl::Status CheckVersion(const MemoryKind& kind, const json::object& before,
                          const json::object& after) {
  const std::string name = MetaString(before, "name");
  const std::string version = MetaString(after, "resourceVersion");
  if (version.empty()) {
    if (kind.unconditional_update) return absl::OkStatus();
    return Invalid(kind.resource.ToString(), name,
                   "metadata.resourceVersion: Invalid value: 0: must be specified for an update");
  }
  if (version == MetaString(before, "resourceVersion")) return absl::OkStatus();
  return ModifiedMeanwhile(kind.resource, name);
}

absl::Status CheckMetadataChange(const MemoryKind& kind, const json::object& before,
                                 const json::object& after) {
  const std::string name = MetaString(before, "name");
  const std::string uid = MetaString(after, "uid");
  if (uid != MetaString(before, "uid")) {
    return Invalid(kind.QualifiedKind(), name,
                   absl::StrCat("metadata.uid: Invalid value: \"", uid, "\": field is immutable"));
  }
  if (!IsBeingDeleted(before)) {
    if (IsBeingDeleted(after)) return NotModelled("writing metadata.deletionTimestamp");
    return absl::OkStatus();
  }
  const std::string added = NewFinalizers(before, after);
  if (added.empty()) return absl::OkStatus();
  return Invalid(kind.QualifiedKind(), name,
                 absl::StrCat("metadata.finalizers: Forbidden: no new finalizers can be added if "
                              "the object is being deleted, found new finalizers []string{",
                              added, "}"));
}

absl::Status CheckDelete(const MemoryKind& kind, const json::object& object,
                         const DeleteOptions& options) {
  const std::string name = MetaString(object, "name");
  const std::string uid = MetaString(object, "uid");
  const std::string version = MetaString(object, "resourceVersion");
  if (!options.uid.empty() && options.uid != uid) {
    return Conflict(kind.QualifiedKind(), name,
                    absl::StrCat("the UID in the precondition (", options.uid,
                                 ") does not match the UID in record (", uid,
                                 "). The object might have been deleted and then recreated"));
  }
  if (!options.resource_version.empty() && options.resource_version != version) {
    return Conflict(
        kind.QualifiedKind(), name,
        absl::StrCat("the ResourceVersion in the precondition (", options.resource_version,
                     ") does not match the ResourceVersion in record (", version,
                     "). The object might have been modified"));
  }
  if (!options.propagation_policy.empty() && options.propagation_policy != "Background") {
    return NotModelled(absl::StrCat("propagation policy ", options.propagation_policy));
  }
  if (HasCollectorFinalizer(object)) return NotModelled("the garbage collector's own finalizers");
  const json::object* spec = FindObject(object, "spec");
  if (kind.resource == Pods() && spec != nullptr && !StringOf(*spec, "nodeName").empty()) {
    return NotModelled("graceful deletion of a pod that runs on a node");
  }
  return absl::OkStatus();
}

// What of a PUT or PATCH to /status is ignored. k8s.io/kubernetes pkg/registry/*/strategy.go.
json::object KeepAllButStatus(const MemoryKind& kind, const json::object& current,
                              json::object wanted) {
  json::object result = current;
  CopyMember(wanted, result, "status");
  if (kind.status_write == MemoryKind::StatusWrite::kNothingElse) return result;
  const json::object& kept = *FindObject(current, "metadata");
  json::object& metadata = MakeObject(wanted, "metadata");
  if (kind.status_write == MemoryKind::StatusWrite::kMetadataButLabels) {
    CopyMember(kept, metadata, "labels");
  }
  if (kind.status_write == MemoryKind::StatusWrite::kMetadataButOwners) {
    CopyMember(kept, metadata, "ownerReferences");
  }
  result["metadata"] = std::move(metadata);
  return result;
}

// What a client cannot change.
void KeepSystemMetadata(const json::object& before, json::object& after) {
  const json::object& old = *FindObject(before, "metadata");
  json::object& metadata = MakeObject(after, "metadata");
  for (absl::string_view key : {"generation", "creationTimestamp", "resourceVersion"}) {
    CopyMember(old, metadata, key);
  }
  if (StringOf(metadata, "uid").empty()) CopyMember(old, metadata, "uid");
  if (!IsBeingDeleted(before)) return;
  CopyMember(old, metadata, "deletionTimestamp");
  CopyMember(old, metadata, "deletionGracePeriodSeconds");
}

bool RaisesGeneration(const MemoryKind& kind, const json::object& before,
                      const json::object& after) {
  switch (kind.generation) {
    case MemoryKind::Generation::kNone:
      return false;
    case MemoryKind::Generation::kSpec:
      return Differs(before, after, "spec");
    case MemoryKind::Generation::kSpecAndAnnotations:
      return Differs(before, after, "spec") ||
             Differs(*FindObject(before, "metadata"), *FindObject(after, "metadata"),
                     "annotations");
    case MemoryKind::Generation::kAllButMetadata: {
      json::object a = before;
      json::object b = after;
      a.erase("metadata");
      b.erase("metadata");
      return a != b;
    }
  }
  return false;
}

absl::Status Normalise(const MemoryKind& kind, json::object& object) {
  json::value whole = std::move(object);
  EraseNulls(whole);
  object = std::move(whole.get_object());
  EraseEmptyMetadata(object);
  if (kind.has_status && !kind.custom) MakeObject(object, "status");
  return ApplyDefaults(kind, object);
}

}  // namespace outrigger::controller::kube::memory
