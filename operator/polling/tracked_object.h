// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/status/status.h>
#include <absl/time/time.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/base/clock.h"
#include "host/client/health_cache.h"
#include "operator/api/scaled_object.h"
#include "operator/polling/trigger_resolver.h"
#include "operator/scaling/hpa_agreement.h"
#include "operator/scaling/hpa_builder.h"
#include "operator/scaling/replica_decision.h"

namespace outrigger::controller::polling {

// One trigger of an object that is polled.
struct TrackedTrigger {
  ResolvedTrigger resolved;
  std::vector<scaling::MetricSpec> specs;  // fresh or last good; empty: never known
  // The plugin refused the trigger (INVALID_ARGUMENT): it is not asked again until spec,
  // credentials or plugin change, that is until the reconciler tracks the object anew.
  absl::Status refused;
  bool negative = false;  // the last good answer had a value below 0
};

// What the leader keeps of each ScaledObject that is reconciled and polled.
struct TrackedObject {
  std::shared_ptr<const api::ScaledObject> object;  // as of the last reconcile, but for its status
  api::GroupVersionKindResource target;
  std::vector<TrackedTrigger> triggers;
  // The last moment at which the object was wanted. In memory: written to the status when Active
  // changes only.
  std::optional<absl::Time> last_active;
  std::optional<scaling::HpaAgreement> agreement;
  int64_t hpa_generation = 0;  // that the HPA is of; 0: none is known
  // The reconcile failed after the object became pollable (a quota refused its HPA): Ready is its
  // word, not the polls'.
  bool ready_is_reconcilers = false;
  scaling::Decision last_decision;
  std::string scaled_because;  // explanation of the last one that changed the replicas
  std::optional<absl::Time> decided_at;
  int32_t decided_replicas = 0;

  host::SteadyTime due;     // of the next poll
  uint64_t cycle = 0;       // the poll cycle that runs; 0: none
  bool poll_again = false;  // came due while that cycle ran: its triggers changed
  bool deciding = false;
  bool decide_again = false;

  const std::string& uid() const { return object->meta.uid; }
  host::HealthKey HealthKeyOf(const TrackedTrigger& trigger, const std::string& metric) const {
    return {.uid = uid(), .trigger_index = trigger.resolved.index, .metric = metric};
  }
  // The records of a trigger: one per metric of its specs, or one nameless while it has none.
  std::vector<host::HealthKey> HealthKeysOf(const TrackedTrigger& trigger) const;
};

// The objects that are tracked, by name. Pointers stay good until the object is erased; whoever
// awaited something looks it up again and compares the uid. Use on the core strand.
class ObjectRegistry {
 public:
  TrackedObject* Find(const api::NamespacedName& key) const {
    auto it = objects_.find(key);
    return it == objects_.end() ? nullptr : it->second.get();
  }
  TrackedObject& Put(const api::NamespacedName& key) {
    std::unique_ptr<TrackedObject>& slot = objects_[key];
    if (slot == nullptr) slot = std::make_unique<TrackedObject>();
    return *slot;
  }
  void Erase(const api::NamespacedName& key) { objects_.erase(key); }
  void Clear() { objects_.clear(); }
  size_t size() const { return objects_.size(); }
  std::vector<api::NamespacedName> Keys() const;

 private:
  absl::flat_hash_map<api::NamespacedName, std::unique_ptr<TrackedObject>> objects_;
};

}  // namespace outrigger::controller::polling
