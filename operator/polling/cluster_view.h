// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "operator/api/hpa.h"
#include "operator/api/namespaced_name.h"
#include "operator/api/scaled_object.h"
#include "operator/api/trigger_authentication.h"
#include "operator/api/workload.h"

namespace outrigger::controller::polling {

// What the informers hold: snapshots that never change. Reads never leave the process (requirement
// R21); a destructive act reads live first (R32). Use on the core strand. nullptr: no such object.
class ClusterView {
 public:
  virtual ~ClusterView() = default;

  virtual bool Synced() const = 0;
  virtual std::shared_ptr<const api::ScaledObject> ScaledObject(
      const api::NamespacedName& key) const = 0;
  virtual std::shared_ptr<const api::HorizontalPodAutoscaler> Hpa(
      const api::NamespacedName& key) const = 0;
  // `kind` is Deployment or StatefulSet; others are in no informer.
  virtual std::shared_ptr<const api::Workload> Workload(const std::string& kind,
                                                        const api::NamespacedName& key) const = 0;
  // `kind` is TriggerAuthentication or ClusterTriggerAuthentication (then the namespace is empty).
  virtual std::shared_ptr<const api::TriggerAuthentication> Authentication(
      const std::string& kind, const api::NamespacedName& key) const = 0;
  // resourceVersion of a Secret or ConfigMap as last seen by the metadata watch; "" = absent or not
  // watched yet.
  virtual std::string SecretVersion(const api::NamespacedName& key) const = 0;
  virtual std::string ConfigMapVersion(const api::NamespacedName& key) const = 0;
};

}  // namespace outrigger::controller::polling
