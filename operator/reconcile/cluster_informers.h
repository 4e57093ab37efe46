// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/status/status.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "host/base/logging.h"
#include "host/base/random.h"
#include "host/base/task_group.h"
#include "operator/api/hpa.h"
#include "operator/api/scaled_object.h"
#include "operator/api/trigger_authentication.h"
#include "operator/api/workload.h"
#include "operator/kube/api.h"
#include "operator/polling/cluster_view.h"
#include "operator/runtime/metrics_sink.h"

namespace outrigger::controller::reconcile {

// The operator's watches, and what of their events starts a reconcile (requirements.md R4, R6;
// design.md section 5):
//
// - ScaledObject: generation, deletion, finalizers, labels and annotations (the HPA copies them);
//   its status never.
// - HPA of a ScaledObject: spec, labels, annotations, owner, deletion, and of its status the status
//   or reason of ScalingActive only.
// - Scale target: existence and pod template; its replica count never.
// - (Cluster)TriggerAuthentication, Secret or ConfigMap that a trigger refers to: any change.
// - APIService of the metrics API: who owns it.
//
// Secrets and ConfigMaps: one metadata-only watch per namespace in which a trigger refers to one.
// Use on the core strand.
class ClusterInformers : public polling::ClusterView {
 public:
  using ObjectPtr = std::shared_ptr<const api::ScaledObject>;

  struct Options {
    std::vector<std::string> namespaces;  // empty: all
    bool api_service = true;              // embedded mode has none
    bool authentications = true;
    // Of Secrets that ClusterTriggerAuthentications refer to.
    std::string cluster_object_namespace;
  };
  struct Listener {
    std::function<void(const api::NamespacedName& key)> reconcile;  // of a ScaledObject
    std::function<void(const ObjectPtr& object)> seen;              // each version of it
    // Deleted, perhaps made again since.
    std::function<void(const std::string& uid)> gone;
    // Anything of the HPA of a ScaledObject, its status included.
    std::function<void(const api::NamespacedName& key)> hpa_changed;
    // Objects that refer to "Secret/ns/name" or "ConfigMap/ns/name".
    std::function<std::set<api::NamespacedName>(const std::string& reference)> users_of;
    std::function<void()> api_service_changed;
  };

  ClusterInformers(host::Clock& clock, kube::Api& api, host::Executor strand, host::Random random,
                   host::Logger log, runtime::MetricsSink& metrics, Options options,
                   Listener listener);
  ~ClusterInformers() override;

  // Until Stop(); returns when every watch has ended.
  host::Task<void> Run();
  void Stop();
  // Waits until each kind was listed once; DEADLINE_EXCEEDED naming those that were not.
  host::Task<absl::Status> WaitForSync(host::Deadline deadline);

  bool Synced() const override;
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

  std::vector<api::NamespacedName> ScaledObjectKeys() const;
  // "namespace/name" of the Service behind the metrics APIService; "" = there is no APIService, or
  // it is served locally.
  std::string MetricsService() const;

 private:
  struct Watches;
  void OnScaledObject(const ObjectPtr& before, const ObjectPtr& after);
  void OnHpa(const api::HorizontalPodAutoscaler* before, const api::HorizontalPodAutoscaler* after);
  void OnWorkload(const std::string& kind, const api::NamespacedName& key,
                  const api::Workload* before, const api::Workload* after);
  void OnAuthentication(const std::string& kind, const api::NamespacedName& key);
  void OnReference(const std::string& reference);
  void WatchReferences(const api::ScaledObject& object);
  void WatchReferencesIn(const std::string& namespace_name);

  host::Clock& clock_;
  const host::Logger log_;
  const Listener listener_;
  std::unique_ptr<Watches> watches_;
};

}  // namespace outrigger::controller::reconcile
