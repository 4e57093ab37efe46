// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/memory_store.h"

#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/strip.h>

#include <algorithm>
#include <set>
#include <utility>

#include "host/base/status.h"
#include "operator/api/object_meta.h"
#include "operator/kube/memory_errors.h"
#include "operator/kube/memory_object.h"
#include "operator/kube/memory_rules.h"
#include "operator/kube/memory_scale.h"

namespace outrigger::controller::kube::memory {
namespace {

namespace json = boost::json;

constexpr size_t kSavedPages = 32;

std::string KeyOf(const std::string& namespace_name, const std::string& name) {
  return absl::StrCat(namespace_name, "/", name);
}

}  // namespace

json::object MetadataOnly(const json::object& object) {
  json::object result{{"apiVersion", "meta.k8s.io/v1"}, {"kind", "PartialObjectMetadata"}};
  CopyMember(object, result, "metadata");
  return result;
}

absl::StatusOr<Selection> Selection::Parse(std::string namespace_name, absl::string_view labels,
                                           absl::string_view fields) {
  Selection selection;
  selection.namespace_name = std::move(namespace_name);
  absl::StatusOr<api::LabelSelector> parsed = api::LabelSelector::Parse(labels);
  if (!parsed.ok()) return BadRequest(std::string(parsed.status().message()));
  selection.labels = *std::move(parsed);
  if (fields.empty()) return selection;
  absl::string_view name = fields;
  if (!absl::ConsumePrefix(&name, "metadata.name=") || absl::StrContains(name, ',')) {
    return NotModelled(absl::StrCat("field selector \"", fields, "\""));
  }
  absl::ConsumePrefix(&name, "=");
  selection.name = std::string(name);
  return selection;
}

bool Selection::Matches(const json::object& object) const {
  return (namespace_name.empty() || MetaString(object, "namespace") == namespace_name) &&
         (name.empty() || MetaString(object, "name") == name) && labels.Matches(LabelsOf(object));
}

MemoryStore::MemoryStore(Options options)
    : options_(std::move(options)), version_(options_.first_version), random_(options_.seed) {
  for (const MemoryKind& kind : options_.kinds) stores_.push_back({.kind = kind});
}

MemoryStore::KindStore* MemoryStore::Find(const Resource& resource) {
  for (KindStore& store : stores_) {
    if (store.kind.resource == resource) return &store;
  }
  return nullptr;
}

const MemoryStore::KindStore* MemoryStore::Find(const Resource& resource) const {
  for (const KindStore& store : stores_) {
    if (store.kind.resource == resource) return &store;
  }
  return nullptr;
}

absl::StatusOr<const MemoryKind*> MemoryStore::FindKind(const Resource& resource) const {
  const KindStore* store = Find(resource);
  if (store == nullptr) return UnknownResource();
  if (!store->kind.stored) return NotModelled(resource.ToString());
  return &store->kind;
}

absl::StatusOr<MemoryStore::KindStore*> MemoryStore::Require(const Resource& resource) {
  RETURN_IF_ERROR(FindKind(resource).status());
  return Find(resource);
}

absl::StatusOr<json::value> MemoryStore::Get(const Resource& resource,
                                             const std::string& namespace_name,
                                             const std::string& name,
                                             absl::string_view subresource) const {
  RETURN_IF_ERROR(FindKind(resource).status());
  const KindStore& store = *Find(resource);
  RETURN_IF_ERROR(CheckSubresource(store.kind, subresource));
  RETURN_IF_ERROR(CheckRequestNamespace(store.kind, namespace_name));
  const auto it = store.objects.find(KeyOf(namespace_name, name));
  if (it == store.objects.end()) return NotFound(resource, name);
  return subresource == "scale" ? ScaleOf(*it->second) : *it->second;
}

absl::StatusOr<json::value> MemoryStore::GetMetadata(const Resource& resource,
                                                     const std::string& namespace_name,
                                                     const std::string& name) const {
  ASSIGN_OR_RETURN(const json::value object, Get(resource, namespace_name, name, ""));
  return MetadataOnly(object.get_object());
}

absl::StatusOr<MemoryStore::Page> MemoryStore::Continue(const std::string& token) {
  uint64_t id = 0;
  absl::string_view digits = token;
  if (!absl::ConsumePrefix(&digits, "memory-") || !absl::SimpleAtoi(digits, &id)) {
    return BadRequest("continue key is not valid");
  }
  const auto it = pages_.find(id);
  if (it == pages_.end()) {
    return Expired(
        "The provided continue parameter is too old to display a consistent list result. You can "
        "start a new list without the continue parameter, or use the continue token in this "
        "response to retrieve the remainder of the results. Continuing with the provided token "
        "results in an inconsistent list - objects that were created, modified, or deleted between "
        "the time the first chunk was returned and now may show up in the list.");
  }
  return it->second;  // kept: a client may ask for the same page again
}

std::string MemoryStore::SavePage(Page page) {
  const uint64_t id = next_page_++;
  pages_.emplace(id, std::move(page));
  if (pages_.size() > kSavedPages) pages_.erase(pages_.begin());
  return absl::StrCat("memory-", id);
}

absl::StatusOr<json::value> MemoryStore::Discover(const std::string& group,
                                                  const std::string& version) const {
  json::array resources;
  for (const MemoryKind& kind : options_.kinds) {
    if (kind.resource.group != group || kind.resource.version != version) continue;
    auto add = [&](const std::string& name, const std::string& of_kind) {
      json::object entry;
      entry["name"] = name;
      entry["namespaced"] = kind.resource.namespaced;
      entry["kind"] = of_kind;
      resources.emplace_back(std::move(entry));
    };
    add(kind.resource.plural, kind.kind);
    if (kind.has_scale) add(absl::StrCat(kind.resource.plural, "/scale"), "Scale");
    if (kind.has_status) add(absl::StrCat(kind.resource.plural, "/status"), kind.kind);
  }
  if (resources.empty()) {
    return ToStatus({.http_code = 404,
                     .reason = "NotFound",
                     .message = "the server could not find the requested resource"});
  }
  json::object list;
  list["kind"] = "APIResourceList";
  list["groupVersion"] = group.empty() ? version : absl::StrCat(group, "/", version);
  list["resources"] = std::move(resources);
  return json::value(std::move(list));
}

absl::StatusOr<ObjectList> MemoryStore::List(const Resource& resource,
                                             const std::string& namespace_name,
                                             const ListOptions& options) {
  ASSIGN_OR_RETURN(KindStore* const store, Require(resource));
  ASSIGN_OR_RETURN(
      const Selection selection,
      Selection::Parse(namespace_name, options.label_selector, options.field_selector));
  int64_t at_least = 0;
  if (!options.resource_version.empty() &&
      (!absl::SimpleAtoi(options.resource_version, &at_least) || at_least > version_)) {
    return NotModelled(absl::StrCat("a list at resourceVersion ", options.resource_version));
  }
  Page page{.rest = {}, .version = version_};
  if (!options.continue_token.empty()) {
    ASSIGN_OR_RETURN(page, Continue(options.continue_token));
  }
  const ObjectMap& objects = options.continue_token.empty() ? store->objects : page.rest;

  ObjectList list;
  list.resource_version = absl::StrCat(page.version);
  for (auto it = objects.begin(); it != objects.end(); ++it) {
    if (!selection.Matches(*it->second)) continue;
    if (options.limit > 0 && list.items.size() == static_cast<size_t>(options.limit)) {
      list.continue_token =
          SavePage({.rest = ObjectMap(it, objects.end()), .version = page.version});
      break;
    }
    json::object item = options.metadata_only ? MetadataOnly(*it->second) : *it->second;
    if (!options.metadata_only && !store->kind.custom) {
      // Go's typed lists do not repeat the type in each item.
      item.erase("kind");
      item.erase("apiVersion");
    }
    list.items.emplace_back(std::move(item));
  }
  return list;
}

absl::Status MemoryStore::CheckNameIsFree(const KindStore& store,
                                          const json::object& metadata) const {
  const std::string name = StringOf(metadata, "name");
  if (name.empty()) {
    return Invalid(store.kind.QualifiedKind(), "",
                   "metadata.name: Required value: name or generateName is required");
  }
  if (const std::string fault = NameFault(name); !fault.empty()) {
    return Invalid(store.kind.QualifiedKind(), name,
                   absl::StrCat("metadata.name: Invalid value: \"", name, "\": ", fault));
  }
  const auto it = store.objects.find(KeyOf(StringOf(metadata, "namespace"), name));
  if (it == store.objects.end()) return absl::OkStatus();
  return AlreadyExists(store.kind.resource, name, IsBeingDeleted(*it->second));
}

absl::Status MemoryStore::FindFreeName(const KindStore& store, json::object& metadata) {
  constexpr int kAttempts = 8;  // as the API server
  constexpr absl::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789";
  constexpr size_t kSuffix = 5;
  constexpr size_t kLongestPrefix = 63 - kSuffix;
  const std::string prefix = StringOf(metadata, "generateName");
  if (prefix.empty() || !StringOf(metadata, "name").empty())
    return CheckNameIsFree(store, metadata);
  absl::Status free;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::string name = prefix.substr(0, kLongestPrefix);
    for (size_t i = 0; i < kSuffix; ++i) name += kLetters[random_.Next() % kLetters.size()];
    metadata["name"] = name;
    free = CheckNameIsFree(store, metadata);
    if (!absl::IsAlreadyExists(free)) break;
  }
  return free;
}

absl::StatusOr<json::value> MemoryStore::Create(const Resource& resource,
                                                const std::string& namespace_name,
                                                json::value value, absl::string_view subresource,
                                                absl::Time now) {
  ASSIGN_OR_RETURN(KindStore* const store, Require(resource));
  const MemoryKind& kind = store->kind;
  if (!subresource.empty()) return NotModelled(absl::StrCat("creating ", subresource));
  RETURN_IF_ERROR(CheckRequestNamespace(kind, namespace_name));
  ASSIGN_OR_RETURN(json::object object, AsObject(std::move(value), "object"));
  RETURN_IF_ERROR(CheckType(kind, object));
  RETURN_IF_ERROR(CheckNamespace(kind, namespace_name, object));
  if (!MetaString(object, "resourceVersion").empty()) {
    return ToStatus({.http_code = 500,
                     .message = "resourceVersion should not be set on objects to be created"});
  }
  if (IsBeingDeleted(object)) return NotModelled("creating an object that is being deleted");

  if (kind.has_status) object.erase("status");
  if (kind.has_status && !kind.custom) object["status"] = InitialStatus(kind);
  RETURN_IF_ERROR(Normalise(kind, object));

  json::object& metadata = MakeObject(object, "metadata");
  metadata["uid"] = absl::StrFormat("00000000-0000-4000-8000-%012x", objects_created_ + 1);
  metadata["creationTimestamp"] = api::FormatTimestamp(now);
  if (kind.generation != MemoryKind::Generation::kNone) metadata["generation"] = 1;

  RETURN_IF_ERROR(FindFreeName(*store, metadata));
  ++objects_created_;
  const std::string key = KeyOf(namespace_name, MetaString(object, "name"));
  return *Store(*store, key, std::move(object), WatchEventType::kAdded);
}

absl::StatusOr<json::value> MemoryStore::Update(const Resource& resource,
                                                const std::string& namespace_name,
                                                const std::string& name, json::value value,
                                                absl::string_view subresource) {
  ASSIGN_OR_RETURN(KindStore* const store, Require(resource));
  const MemoryKind& kind = store->kind;
  RETURN_IF_ERROR(CheckSubresource(kind, subresource));
  RETURN_IF_ERROR(CheckRequestNamespace(kind, namespace_name));
  ASSIGN_OR_RETURN(json::object object, AsObject(std::move(value), "object"));
  if (subresource != "scale") RETURN_IF_ERROR(CheckType(kind, object));
  RETURN_IF_ERROR(CheckNamespace(kind, namespace_name, object));
  RETURN_IF_ERROR(CheckName(name, object));

  const std::string key = KeyOf(namespace_name, name);
  const auto it = store->objects.find(key);
  if (it == store->objects.end()) {
    if (kind.create_on_update) return NotModelled("creating an object by an update");
    return NotFound(resource, name);
  }
  const std::string uid = MetaString(object, "uid");
  if (const std::string got = MetaString(*it->second, "uid"); !uid.empty() && uid != got) {
    return UidPreconditionFailed(kind, namespace_name, name, uid, got);
  }
  if (subresource == "scale") return UpdateScale(*store, key, object);
  return Replace(*store, key, std::move(object), subresource == "status");
}

absl::StatusOr<json::value> MemoryStore::MergePatch(const Resource& resource,
                                                    const std::string& namespace_name,
                                                    const std::string& name,
                                                    const json::value& patch,
                                                    absl::string_view subresource) {
  ASSIGN_OR_RETURN(KindStore* const store, Require(resource));
  RETURN_IF_ERROR(CheckSubresource(store->kind, subresource));
  RETURN_IF_ERROR(CheckRequestNamespace(store->kind, namespace_name));
  const std::string key = KeyOf(namespace_name, name);
  const auto it = store->objects.find(key);
  if (it == store->objects.end()) return NotFound(resource, name);
  RETURN_IF_ERROR(AsObject(patch, "patch").status());

  json::value merged = subresource == "scale" ? ScaleOf(*it->second) : *it->second;
  memory::MergePatch(merged, patch);
  json::object object = std::move(merged.get_object());
  if (subresource != "scale") RETURN_IF_ERROR(CheckType(store->kind, object));
  RETURN_IF_ERROR(CheckNamespace(store->kind, namespace_name, object));
  RETURN_IF_ERROR(CheckName(name, object));
  if (subresource == "scale") return UpdateScale(*store, key, object);
  return Replace(*store, key, std::move(object), subresource == "status");
}

absl::StatusOr<json::value> MemoryStore::UpdateScale(KindStore& store, const std::string& key,
                                                     const json::object& scale) {
  ASSIGN_OR_RETURN(json::object wanted, WithScale(store.kind, *store.objects.at(key), scale));
  ASSIGN_OR_RETURN(const json::value updated, Replace(store, key, std::move(wanted), false));
  return ScaleOf(updated.get_object());
}

absl::StatusOr<json::value> MemoryStore::Replace(KindStore& store, const std::string& key,
                                                 json::object wanted, bool to_status) {
  const ObjectPtr current = store.objects.at(key);
  const MemoryKind& kind = store.kind;
  RETURN_IF_ERROR(CheckVersion(kind, *current, wanted));
  if (to_status) {
    wanted = KeepAllButStatus(kind, *current, std::move(wanted));
  } else if (kind.has_status) {
    CopyMember(*current, wanted, "status");
  }
  KeepSystemMetadata(*current, wanted);
  RETURN_IF_ERROR(Normalise(kind, wanted));
  RETURN_IF_ERROR(CheckMetadataChange(kind, *current, wanted));
  if (!to_status && RaisesGeneration(kind, *current, wanted)) {
    MakeObject(wanted, "metadata")["generation"] = GenerationOf(*current) + 1;
  }

  if (IsBeingDeleted(*current) && FinalizersOf(wanted).empty()) {
    Remove(store, key);
    return wanted;  // as it was asked for; its version is the one before the deletion
  }
  if (wanted == *current) return wanted;
  return *Store(store, key, std::move(wanted), WatchEventType::kModified);
}

absl::Status MemoryStore::Delete(const Resource& resource, const std::string& namespace_name,
                                 const std::string& name, const DeleteOptions& options,
                                 absl::Time now) {
  ASSIGN_OR_RETURN(KindStore* const store, Require(resource));
  RETURN_IF_ERROR(CheckRequestNamespace(store->kind, namespace_name));
  const std::string key = KeyOf(namespace_name, name);
  const auto it = store->objects.find(key);
  if (it == store->objects.end()) return NotFound(resource, name);
  RETURN_IF_ERROR(CheckDelete(store->kind, *it->second, options));
  DeleteEntry(*store, key, now);
  return absl::OkStatus();
}

void MemoryStore::DeleteEntry(KindStore& store, const std::string& key, absl::Time now) {
  const ObjectPtr current = store.objects.at(key);
  if (FinalizersOf(*current).empty()) return Remove(store, key);
  if (IsBeingDeleted(*current)) return;
  json::object marked = *current;
  json::object& metadata = MakeObject(marked, "metadata");
  metadata["deletionTimestamp"] = api::FormatTimestamp(now);
  metadata["deletionGracePeriodSeconds"] = 0;
  if (const int64_t generation = GenerationOf(*current); generation > 0) {
    metadata["generation"] = generation + 1;
  }
  Store(store, key, std::move(marked), WatchEventType::kModified);
  return;
}

std::vector<std::pair<MemoryStore::KindStore*, std::string>> MemoryStore::Orphans() {
  std::set<std::string> alive;
  for (const KindStore& store : stores_) {
    for (const auto& [key, object] : store.objects) alive.insert(MetaString(*object, "uid"));
  }
  std::vector<std::pair<KindStore*, std::string>> orphans;
  for (KindStore& store : stores_) {
    for (const auto& [key, object] : store.objects) {
      const json::array* owners = FindArray(*FindObject(*object, "metadata"), "ownerReferences");
      if (owners == nullptr || IsBeingDeleted(*object)) continue;
      const bool owned = std::any_of(owners->begin(), owners->end(), [&](const json::value& owner) {
        return owner.is_object() && alive.contains(StringOf(owner.get_object(), "uid"));
      });
      if (!owned) orphans.emplace_back(&store, key);
    }
  }
  return orphans;
}

size_t MemoryStore::CollectGarbage(absl::Time now) {
  if (!std::exchange(may_have_orphans_, false)) return 0;
  size_t collected = 0;
  // An orphan that goes may leave orphans of its own.
  for (auto orphans = Orphans(); !orphans.empty(); orphans = Orphans()) {
    for (const auto& [store, key] : orphans) {
      DeleteEntry(*store, key, now);
      ++collected;
    }
  }
  return collected;
}

MemoryStore::ObjectPtr MemoryStore::Store(KindStore& store, const std::string& key,
                                          json::object object, WatchEventType type) {
  ++version_;
  json::object& metadata = MakeObject(object, "metadata");
  metadata["resourceVersion"] = absl::StrCat(version_);
  if (metadata.contains("ownerReferences")) may_have_orphans_ = true;
  auto stored = std::make_shared<const json::object>(std::move(object));
  ObjectPtr& slot = store.objects[key];
  Record(store, {.version = version_, .type = type, .object = stored, .previous = slot});
  slot = stored;
  return stored;
}

void MemoryStore::Remove(KindStore& store, const std::string& key) {
  const auto it = store.objects.find(key);
  ++version_;
  may_have_orphans_ = true;
  json::object last = *it->second;
  MakeObject(last, "metadata")["resourceVersion"] = absl::StrCat(version_);
  Record(store, {.version = version_,
                 .type = WatchEventType::kDeleted,
                 .object = std::make_shared<const json::object>(std::move(last)),
                 .previous = it->second});
  store.objects.erase(it);
}

void MemoryStore::Record(KindStore& store, Change change) {
  store.history.push_back(std::move(change));
  while (store.history.size() > options_.history_limit) {
    store.forgotten = store.history.front().version;
    store.history.pop_front();
  }
}

absl::StatusOr<std::vector<MemoryStore::Change>> MemoryStore::ChangesSince(const Resource& resource,
                                                                           int64_t version) const {
  RETURN_IF_ERROR(FindKind(resource).status());
  const KindStore& store = *Find(resource);
  if (version < store.forgotten) {
    return Expired(absl::StrCat("too old resource version: ", version, " (", store.forgotten, ")"));
  }
  const auto first = std::upper_bound(
      store.history.begin(), store.history.end(), version,
      [](int64_t wanted, const Change& change) { return wanted < change.version; });
  return std::vector<Change>(first, store.history.end());
}

void MemoryStore::Compact() {
  for (KindStore& store : stores_) {
    store.history.clear();
    store.forgotten = version_;
  }
  pages_.clear();
}

}  // namespace outrigger::controller::kube::memory
