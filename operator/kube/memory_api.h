// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/time/time.h>

#include <functional>
#include <list>
#include <string>
#include <vector>

#include "host/base/clock.h"
#include "host/base/event.h"
#include "host/base/mutex.h"
#include "operator/kube/api.h"
#include "operator/kube/memory_kind.h"
#include "operator/kube/memory_store.h"

namespace outrigger::controller::kube {

// One request, for FaultInjector and for people. `verb` is get, list, watch, create, update, patch
// or delete.
struct MemoryCall {
  std::string verb;
  Resource resource;
  std::string namespace_name;
  std::string name;  // "" for list, watch and create
  std::string subresource;

  bool IsWrite() const { return verb != "get" && verb != "list" && verb != "watch"; }
};

// Makes a MemoryApi behave as a bad network, a busy server or a quota would. Called on the caller's
// executor, never under a lock; must not block.
class FaultInjector {
 public:
  struct Fault {
    absl::Duration delay;
    absl::Status error;  // OK: none
  };
  struct WatchFault {
    absl::Duration lag;
    // Ends the watch instead of delivering the event: OK as a server that closes it, UNAVAILABLE as
    // a cut connection, OUT_OF_RANGE as an ERROR event with 410.
    std::optional<absl::Status> end;
  };
  virtual ~FaultInjector() = default;

  // The delay, then the error instead of the call: nothing was done. A watch that is refused with
  // OUT_OF_RANGE got 410 for its answer.
  virtual Fault BeforeCall(const MemoryCall& call) = 0;
  // The call is done and committed with `outcome`; the error replaces the answer, so that the
  // caller does not know it.
  virtual Fault AfterCall(const MemoryCall& call, const absl::Status& outcome) = 0;
  // Before each event. A lag holds back the events behind it too: one watch keeps its order.
  virtual WatchFault BeforeEvent(const MemoryCall& watch, const WatchEvent& event) = 0;
};

// An API server in memory: resource versions, conflicts, merge patches, status and scale
// subresources, finalizers, owner references, paged lists and watches, as kube-apiserver 1.36 has
// them (tests/conformance compares the two). What is not modelled is refused with UNIMPLEMENTED,
// never approximated: JSON and apply patches, dry run, foreground and orphan deletion, field
// selectors other than metadata.name. Not modelled without a refusal: authorisation, admission,
// validation of specs, managedFields, the defaults of Pod templates, and namespaces, which need not
// exist. No controllers run: operator/local has those of the embedded mode.
//
// Used by `outriggerctl local`, the simulation and many tests. Thread-safe; a call returns on the
// executor on which it was made, never inline: it is posted before and after the commit, so that a
// seeded executor can reorder calls. Watches wake through the given clock. The object must outlive
// its calls. Errors: as Api says, by way of ToStatus(); UNIMPLEMENTED without an ApiError.
class MemoryApi : public Api {
 public:
  struct Options {
    memory::MemoryStore::Options store;
    bool collect_garbage = true;  // with each write; else by CollectGarbage()
    absl::Duration bookmark_period = absl::Minutes(1);
    FaultInjector* faults = nullptr;  // may be null; must outlive the MemoryApi
  };

  MemoryApi(host::Clock& clock, Options options);
  explicit MemoryApi(host::Clock& clock) : MemoryApi(clock, Options()) {}

  host::Task<absl::StatusOr<boost::json::value>> Get(Resource resource, std::string namespace_name,
                                                     std::string name, std::string subresource,
                                                     host::Deadline deadline) override;
  host::Task<absl::StatusOr<boost::json::value>> GetMetadata(Resource resource,
                                                             std::string namespace_name,
                                                             std::string name,
                                                             host::Deadline deadline) override;
  host::Task<absl::StatusOr<ObjectList>> List(Resource resource, std::string namespace_name,
                                              ListOptions options,
                                              host::Deadline deadline) override;
  host::Task<absl::StatusOr<boost::json::value>> Create(Resource resource,
                                                        std::string namespace_name,
                                                        boost::json::value object,
                                                        WriteOptions options,
                                                        host::Deadline deadline) override;
  host::Task<absl::StatusOr<boost::json::value>> Update(Resource resource,
                                                        std::string namespace_name,
                                                        std::string name, boost::json::value object,
                                                        WriteOptions options,
                                                        host::Deadline deadline) override;
  host::Task<absl::StatusOr<boost::json::value>> Patch(Resource resource,
                                                       std::string namespace_name, std::string name,
                                                       PatchType type, boost::json::value patch,
                                                       WriteOptions options,
                                                       host::Deadline deadline) override;
  host::Task<absl::Status> Delete(Resource resource, std::string namespace_name, std::string name,
                                  DeleteOptions options, host::Deadline deadline) override;
  host::Task<absl::StatusOr<boost::json::value>> Discover(std::string group, std::string version,
                                                          host::Deadline deadline) override;
  host::Task<absl::Status> Watch(Resource resource, std::string namespace_name,
                                 WatchOptions options, std::function<void(WatchEvent)> on_event,
                                 host::Deadline stop) override;

  // Ends every watch with UNAVAILABLE, as a restart of the API server does.
  void CutWatches();
  // Forgets past changes: a watch from an old version gets 410, as does an old continue token.
  void Compact();
  // Removes dependants without owners. Needed only when Options::collect_garbage is off.
  size_t CollectGarbage();
  int64_t resource_version() const;
  // All objects of a kind, without a call's detour; empty for an unknown kind.
  std::vector<boost::json::value> Objects(const Resource& resource) const;

 private:
  class Watcher;

  // Faults, posting and deadline around one operation on the store.
  template <typename Result>
  host::Task<Result> Run(MemoryCall call, std::function<Result(memory::MemoryStore&)> operation,
                         host::Deadline deadline);
  host::Task<absl::Status> Apply(FaultInjector::Fault fault, host::Deadline deadline);
  host::Task<absl::Status> DeliverChanges(const MemoryCall& call, Watcher& watcher,
                                          host::Deadline stop);
  void WakeWatchers();

  host::Clock& clock_;
  const Options options_;
  mutable host::Mutex mutex_;
  mutable memory::MemoryStore store_ ABSL_GUARDED_BY(mutex_);
  std::list<host::Event> watchers_ ABSL_GUARDED_BY(mutex_);
  uint64_t cuts_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace outrigger::controller::kube
