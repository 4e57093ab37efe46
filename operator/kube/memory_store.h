// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <boost/json/object.hpp>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "host/base/random.h"
#include "operator/api/label_selector.h"
#include "operator/kube/api.h"
#include "operator/kube/memory_kind.h"

namespace outrigger::controller::kube::memory {

// Which objects a list or a watch is about.
struct Selection {
  std::string namespace_name;  // "": all
  std::string name;            // from the field selector metadata.name; "": all
  api::LabelSelector labels;

  // INVALID_ARGUMENT (400) for a selector that cannot be read, UNIMPLEMENTED for a field selector
  // other than metadata.name=….
  static absl::StatusOr<Selection> Parse(std::string namespace_name, absl::string_view labels,
                                         absl::string_view fields);
  bool Matches(const boost::json::object& object) const;
};

// The data of MemoryApi: objects by kind, their changes in order of one global resourceVersion, and
// what kube-apiserver does to an object on each kind of write.
//
// Not synchronised, never blocks, no I/O: MemoryApi puts a mutex, time and faults around it. Time
// is a parameter of the writes that stamp it. Errors carry the API server's code, reason and
// message; UNIMPLEMENTED means "not modelled". Source: k8s.io/apiserver v0.36
// pkg/registry/generic/registry/store.go and pkg/registry/rest, the kinds' strategies.
class MemoryStore {
 public:
  struct Options {
    uint64_t seed = 1;              // of generated names
    size_t history_limit = 10'000;  // changes kept per kind
    int64_t first_version = 1;      // the first object gets the next; as etcd
    std::vector<MemoryKind> kinds = DefaultMemoryKinds();
  };
  using ObjectPtr = std::shared_ptr<const boost::json::object>;
  struct Change {
    int64_t version = 0;
    WatchEventType type = WatchEventType::kAdded;
    ObjectPtr object;    // of a deletion: the last state, with the version of the deletion
    ObjectPtr previous;  // null when added
  };

  explicit MemoryStore(Options options);

  absl::StatusOr<boost::json::value> Get(const Resource& resource,
                                         const std::string& namespace_name, const std::string& name,
                                         absl::string_view subresource) const;
  absl::StatusOr<boost::json::value> GetMetadata(const Resource& resource,
                                                 const std::string& namespace_name,
                                                 const std::string& name) const;
  absl::StatusOr<boost::json::value> Discover(const std::string& group,
                                              const std::string& version) const;
  absl::StatusOr<ObjectList> List(const Resource& resource, const std::string& namespace_name,
                                  const ListOptions& options);
  absl::StatusOr<boost::json::value> Create(const Resource& resource,
                                            const std::string& namespace_name,
                                            boost::json::value object,
                                            absl::string_view subresource, absl::Time now);
  absl::StatusOr<boost::json::value> Update(const Resource& resource,
                                            const std::string& namespace_name,
                                            const std::string& name, boost::json::value object,
                                            absl::string_view subresource);
  absl::StatusOr<boost::json::value> MergePatch(const Resource& resource,
                                                const std::string& namespace_name,
                                                const std::string& name,
                                                const boost::json::value& patch,
                                                absl::string_view subresource);
  absl::Status Delete(const Resource& resource, const std::string& namespace_name,
                      const std::string& name, const DeleteOptions& options, absl::Time now);

  // The changes of one kind after `version`, oldest first. OUT_OF_RANGE (410) when some of them are
  // forgotten.
  absl::StatusOr<std::vector<Change>> ChangesSince(const Resource& resource, int64_t version) const;
  // Forgets all changes and list continuations, as etcd's compaction does.
  void Compact();
  // Removes dependants whose owners are all gone; returns how many. Owners are found by uid. A
  // dependant with finalizers is marked as being deleted.
  size_t CollectGarbage(absl::Time now);

  int64_t version() const { return version_; }
  // NOT_FOUND for an unknown kind, UNIMPLEMENTED for one that is not stored.
  absl::StatusOr<const MemoryKind*> FindKind(const Resource& resource) const;

 private:
  // Sorted as etcd sorts: by "namespace/name".
  using ObjectMap = std::map<std::string, ObjectPtr>;
  struct KindStore {
    MemoryKind kind;
    ObjectMap objects;
    std::deque<Change> history;
    int64_t forgotten = 0;  // version of the youngest change that is no longer in history
  };
  struct Page {
    ObjectMap rest;
    int64_t version = 0;
  };

  KindStore* Find(const Resource& resource);
  const KindStore* Find(const Resource& resource) const;
  absl::StatusOr<KindStore*> Require(const Resource& resource);

  absl::Status CheckNameIsFree(const KindStore& store, const boost::json::object& metadata) const;
  // Sets the name from generateName where there is none.
  absl::Status FindFreeName(const KindStore& store, boost::json::object& metadata);
  // The common end of PUT and PATCH: preconditions, what may not change, generation, no-op.
  absl::StatusOr<boost::json::value> Replace(KindStore& store, const std::string& key,
                                             boost::json::object wanted, bool to_status);
  absl::StatusOr<boost::json::value> UpdateScale(KindStore& store, const std::string& key,
                                                 const boost::json::object& scale);
  void DeleteEntry(KindStore& store, const std::string& key, absl::Time now);
  std::vector<std::pair<KindStore*, std::string>> Orphans();

  // Every change of the store goes through these.
  ObjectPtr Store(KindStore& store, const std::string& key, boost::json::object object,
                  WatchEventType type);
  void Remove(KindStore& store, const std::string& key);
  void Record(KindStore& store, Change change);

  absl::StatusOr<Page> Continue(const std::string& token);
  std::string SavePage(Page page);

  const Options options_;
  std::vector<KindStore> stores_;
  int64_t version_;
  uint64_t objects_created_ = 0;
  bool may_have_orphans_ = false;  // something was removed, or came with an owner
  host::Random random_;
  std::map<uint64_t, Page> pages_;  // by continue token
  uint64_t next_page_ = 1;
};

// PartialObjectMetadata of an object.
boost::json::object MetadataOnly(const boost::json::object& object);

}  // namespace outrigger::controller::kube::memory
