// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "host/base/deadline.h"
#include "host/client/scaler_service.h"
#include "operator/api/scaled_object.h"
#include "operator/kube/api.h"
#include "operator/polling/cluster_view.h"

namespace outrigger::controller::polling {

// One trigger of a ScaledObject, ready to be asked, or why it is not.
struct ResolvedTrigger {
  uint32_t index = 0;
  std::string type;
  std::string name;       // may be empty
  bool resource = false;  // cpu, memory: the HPA's own, nobody is asked
  bool stateful = false;  // the answer depends on the poll before
  bool use_cached_metrics = false;
  host::TriggerPtr trigger;  // nullptr: `error` says why
  // UNAVAILABLE (plugin unreachable): no plugin for the type yet. INVALID_ARGUMENT: only a change
  // heals it: an authentication object, Secret or key that is missing, a source that is not
  // supported. Else the API server's error. The message names the field within the trigger; which
  // trigger it is, says whoever tells it.
  absl::Status error;
};

// All triggers of one ScaledObject as they were resolved together. Immutable; shared by reconcile,
// poll and reads.
struct ResolvedObject {
  // Not the snapshot that it was resolved from: it would outlive its place in the informer.
  api::NamespacedName key;
  int64_t generation = 0;
  std::vector<ResolvedTrigger> triggers;
  // What was read for it. A change of any of these makes it stale.
  std::map<std::string, std::string> versions;
};

// Turns spec.triggers into what plugins are sent: metadata less the keys that the type's schema
// does not name, the values of
// `<x>FromEnv` from the target's container, and the parameters of the authenticationRef. Secrets
// and ConfigMaps are read by name when a trigger refers to them, kept by resourceVersion, and never
// listed.
//
// Results are cached until the object's generation, its target's pod template, an authentication
// object, a Secret, a ConfigMap or the plugin's schema changes. Works the same on the leader and on
// standbys. Use on the core strand. Source: spec/authentication.md; design.md sections 3 and 8 (a
// missing Secret is an error, never "").
class TriggerResolver {
 public:
  struct Options {
    std::string fingerprint_key;  // made at start; never leaves the process
    std::string cluster_object_namespace =
        "outrigger";  // of Secrets of ClusterTriggerAuthentications
  };

  TriggerResolver(kube::Api& api, const ClusterView& view, const host::ScalerService& scalers,
                  Options options);

  // What Resolve() would return without asking anybody; nullptr: it must ask.
  std::shared_ptr<const ResolvedObject> Cached(const api::ScaledObject& object) const;
  // Never fails as a whole: each trigger carries its own error.
  host::Task<std::shared_ptr<const ResolvedObject>> Resolve(
      std::shared_ptr<const api::ScaledObject> object, host::Deadline deadline);
  void Forget(const std::string& uid);
  size_t size() const { return cache_.size(); }

  // Which objects refer to a Secret or ConfigMap: "Secret/ns/name" or "ConfigMap/ns/name".
  std::set<api::NamespacedName> UsersOf(const std::string& reference) const;
  static std::string SecretReference(const api::NamespacedName& key);
  static std::string ConfigMapReference(const api::NamespacedName& key);

 private:
  struct Resolution;  // one run

  std::string VersionOf(const std::string& reference, const api::NamespacedName& key) const;
  bool Fresh(const ResolvedObject& resolved) const;
  host::Task<void> ResolveTrigger(Resolution& run, uint32_t index);
  host::Task<absl::StatusOr<std::map<std::string, std::string>>> Authentication(
      Resolution& run, const api::Trigger& trigger);
  host::Task<absl::StatusOr<std::map<std::string, std::string>>> Environment(Resolution& run);
  // data of a Secret (decoded) or ConfigMap. NOT_FOUND, PERMISSION_DENIED, ….
  host::Task<absl::StatusOr<std::map<std::string, std::string>>> ReadData(Resolution& run,
                                                                          bool secret,
                                                                          api::NamespacedName key);

  kube::Api& api_;
  const ClusterView& view_;
  const host::ScalerService& scalers_;
  const Options options_;
  absl::flat_hash_map<std::string, std::shared_ptr<const ResolvedObject>> cache_;  // by uid
};

}  // namespace outrigger::controller::polling
