// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>

#include "operator/kube/memory_api.h"
#include "operator/polling/cluster_view.h"

namespace outrigger::controller {

// A ClusterView that shows what a MemoryApi holds at this moment, or, between Freeze() and Thaw(),
// what it held then: a cache that lags behind.
class LiveView : public polling::ClusterView {
 public:
  explicit LiveView(const kube::MemoryApi& api) : api_(api) {}

  void Freeze();
  void Thaw() { frozen_ = false; }
  void SetSynced(bool synced) { synced_ = synced; }
  // Secrets and ConfigMaps look as if nobody watched them yet.
  void SetReferencesWatched(bool watched) { references_watched_ = watched; }

  bool Synced() const override { return synced_; }
  std::shared_ptr<const api::ScaledObject> ScaledObject(
      const api::NamespacedName& key) const override;
  std::shared_ptr<const api::HorizontalPodAutoscaler> Hpa(
      const api::NamespacedName& key) const override;
  std::shared_ptr<const api::Workload> Workload(const std::string& kind,
                                                const api::NamespacedName& key) const override;
  std::shared_ptr<const api::TriggerAuthentication> Authentication(
      const std::string& kind, const api::NamespacedName& key) const override;
  std::string SecretVersion(const api::NamespacedName& key) const override;
  std::string ConfigMapVersion(const api::NamespacedName& key) const override;

 private:
  const boost::json::value* Find(const kube::Resource& resource,
                                 const api::NamespacedName& key) const;
  std::string VersionOf(const kube::Resource& resource, const api::NamespacedName& key) const;

  const kube::MemoryApi& api_;
  bool synced_ = true;
  bool references_watched_ = true;
  bool frozen_ = false;
  struct Objects {
    int64_t version = -1;  // of the store, when they were read
    std::map<api::NamespacedName, boost::json::value> by_key;
  };
  mutable std::map<std::string, Objects> objects_;  // by resource
};

}  // namespace outrigger::controller
