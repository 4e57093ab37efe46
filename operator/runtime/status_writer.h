// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>

#include <boost/json/object.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "host/base/clock.h"
#include "host/base/event.h"
#include "host/base/logging.h"
#include "host/base/task_group.h"
#include "operator/api/scaled_object.h"
#include "operator/kube/api.h"
#include "operator/runtime/write_gate.h"

namespace outrigger::controller::runtime {

// Writes the status of ScaledObjects. Reconciler and poll engine hand it facts, as changes of the
// wanted status; it merges them and sends at most one merge patch per object and second, at most 32
// in flight (the gate), with uid and resourceVersion as preconditions; after a conflict it reads
// the object again and sends what still differs. Nothing is sent when nothing differs. spec is
// never written.
//
// A field that the served CRD does not keep (KEDA's own CRD prunes some of ours) is reported once
// and left out. The answer to the first patch shows which these are, so it is sent alone: to a new
// leader on such a CRD each status seems to lack them, and the rest is then left unsent.
//
// Use from one strand. An object is known between Adopt() and Forget().
// Source: requirements.md R6, R12, R13; design.md section 5.
class StatusWriter {
 public:
  struct Options {
    absl::Duration shortest_interval = absl::Seconds(1);  // between two patches of one object
    absl::Duration write_timeout = absl::Seconds(5);
    int conflict_retries = 5;
  };
  struct Observer {
    std::function<void()> on_conflict;
    std::function<void(absl::Duration took)> on_written;
    // A write failed that no Flush() waits for: whoever hears it sees to a new try.
    std::function<void(const api::NamespacedName& key)> on_failed;
  };

  // `strand`: where writes run.
  StatusWriter(host::Clock& clock, kube::Api& api, WriteGate& gate, host::Executor strand,
               host::Logger log, Options options, Observer observer = {});

  // Makes the object known and tells what the cluster holds now: from the informer, on each change
  // of the object. The first call of a uid takes the cluster's status as the wanted one; later ones
  // put the wanted one back where somebody else changed it.
  void Adopt(const api::ScaledObject& object);
  void Forget(const api::NamespacedName& key);
  // Forgets all: when leadership is lost, and before it starts anew.
  void Clear();

  // The wanted status, facts included that are not written yet. nullptr: not known.
  const api::ScaledObjectStatus* Wanted(const api::NamespacedName& key) const;
  // Changes the wanted status; a write follows by itself if it then differs from the cluster's.
  void Update(const api::NamespacedName& key,
              const std::function<void(api::ScaledObjectStatus&)>& change);
  // Waits until everything that Update() was told before is written. OK at once when nothing
  // differs, and when the write must wait for its interval: it follows by itself then, so that no
  // worker waits for a clock. NOT_FOUND: the object is gone. Else the error of the last try; facts
  // stay wanted and go with the next write.
  host::Task<absl::Status> Flush(api::NamespacedName key, host::Deadline deadline);

  // Waits for the writes that run. After Clear(), and before the writer goes.
  host::Task<void> Join() { return writes_.Join(); }

  size_t known_objects() const { return objects_.size(); }

 private:
  struct Entry {
    api::NamespacedName key;
    std::string uid;
    std::string resource_version;
    api::ScaledObjectStatus wanted;
    // Status as the API server holds it, as far as it is ours, printed; nullopt: as `wanted` is,
    // which is nearly always so.
    std::optional<std::string> cluster;
    // What the informer saw while a write was under way.
    struct Seen {
      std::string version;
      std::string cluster;
    };
    std::optional<Seen> seen;
    bool unwritten = false;  // the last write failed: `wanted` may differ though nobody changed it
    bool writing = false;
    bool pausing = false;  // writing, but waiting for next_write
    int flushes = 0;       // that wait for the write
    bool forgotten = false;
    host::SteadyTime next_write = host::SteadyTime::InfinitePast();
    absl::Status last_error;
    host::Event written;
  };
  using EntryPtr = std::shared_ptr<Entry>;

  EntryPtr Find(const api::NamespacedName& key) const;
  boost::json::object ToJson(const api::ScaledObjectStatus& status) const;  // less what is pruned
  std::string Print(const api::ScaledObjectStatus& status) const;
  bool Differs(const Entry& entry) const;
  void StartWriting(const EntryPtr& entry);
  void TakeSeen(Entry& entry);
  void SetCluster(Entry& entry, std::string printed) const;
  host::Task<void> WriteLoop(EntryPtr entry);
  host::Task<absl::Status> Write(EntryPtr entry);
  host::Task<absl::Status> WriteWithRetries(EntryPtr entry);
  host::Task<absl::Status> PatchOnce(EntryPtr entry, host::Deadline deadline);
  host::Task<absl::Status> ReadAgain(EntryPtr entry, host::Deadline deadline);
  absl::Status Learn(Entry& entry, const boost::json::value& object);
  void FindPruned(const Entry& entry, const boost::json::object& sent,
                  const boost::json::value& answer);

  host::Clock& clock_;
  kube::Api& api_;
  WriteGate& gate_;
  host::TaskGroup writes_;
  const host::Logger log_;
  const Options options_;
  const Observer observer_;
  std::map<api::NamespacedName, EntryPtr> objects_;  // ordered, so that a seed replays Clear()
  std::set<std::string> pruned_;  // paths that the served CRD does not keep: "phase",
                                  // "conditions[].lastTransitionTime"
  bool knows_crd_ = false;        // what it prunes has been seen
  bool learning_ = false;         // the patch that will show it is on its way
  host::Event learned_;
};

}  // namespace outrigger::controller::runtime
