// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>

#include "host/base/deadline.h"
#include "operator/api/scaled_object.h"
#include "operator/kube/api.h"
#include "operator/kube/rest_mapper.h"
#include "operator/polling/cluster_view.h"
#include "operator/runtime/write_gate.h"

namespace outrigger::controller::polling {

// What /scale of a target says.
struct ScaleReading {
  std::string uid;
  std::string resource_version;
  int32_t spec_replicas = 0;
  int32_t status_replicas = 0;
  std::string selector;  // of its pods, label-selector text
};

// Reads and sets the replica count of scale targets: of every kind with a scale subresource. A
// right that is missing for a kind of others is told with the rule that gives it. Use on the core
// strand.
class TargetScaler {
 public:
  TargetScaler(host::Clock& clock, kube::Api& api, const ClusterView& view,
               runtime::WriteGate& gate)
      : api_(api), view_(view), gate_(gate), mapper_(clock, api) {}

  // Fills in `resource`, by asking the API server where the kind is not one that everybody knows.
  // FAILED_PRECONDITION, naming the field: no such kind, or it cannot be scaled. Else the error of
  // the API server.
  host::Task<absl::StatusOr<api::GroupVersionKindResource>> Map(
      api::GroupVersionKindResource target, host::Deadline deadline);

  // spec.replicas: from the informer for Deployment and StatefulSet, through /scale for others.
  // NOT_FOUND: no such target.
  host::Task<absl::StatusOr<int32_t>> CurrentReplicas(api::GroupVersionKindResource target,
                                                      api::NamespacedName key,
                                                      host::Deadline deadline);
  // From the API server. NOT_FOUND: no such target, or none with a scale subresource.
  host::Task<absl::StatusOr<ScaleReading>> ReadLive(api::GroupVersionKindResource target,
                                                    api::NamespacedName key,
                                                    host::Deadline deadline);
  // Sets the count if the target still is what was read: ABORTED when it changed meanwhile.
  host::Task<absl::Status> SetReplicas(api::GroupVersionKindResource target,
                                       api::NamespacedName key, ScaleReading read, int32_t replicas,
                                       host::Deadline deadline);
  // Pods of the target that are Running and Ready: what the HPA multiplies a Value metric by.
  host::Task<absl::StatusOr<int32_t>> ReadyPods(api::GroupVersionKindResource target,
                                                api::NamespacedName key, host::Deadline deadline);

 private:
  kube::Api& api_;
  const ClusterView& view_;
  runtime::WriteGate& gate_;
  kube::RestMapper mapper_;
};

kube::Resource ResourceOf(const api::GroupVersionKindResource& target);

}  // namespace outrigger::controller::polling
