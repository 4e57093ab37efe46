// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>

#include <memory>
#include <utility>

#include "host/base/clock.h"
#include "host/base/deadline.h"
#include "host/base/logging.h"
#include "host/base/task.h"
#include "operator/api/hpa.h"
#include "operator/api/scaled_object.h"
#include "operator/kube/api.h"
#include "operator/polling/cluster_view.h"
#include "operator/runtime/metrics_sink.h"
#include "operator/runtime/write_gate.h"

namespace outrigger::controller::reconcile {

// Makes the HPA of a ScaledObject what it should be: created if missing, updated only if its spec,
// labels, annotations or owner differ, and the one of an earlier name deleted. The leader's only;
// on the core strand. Source: requirements.md R7; design.md section 5.
class HpaKeeper {
 public:
  using ObjectPtr = std::shared_ptr<const api::ScaledObject>;
  struct Parts {
    host::Clock& clock;
    kube::Api& api;
    const polling::ClusterView& view;
    runtime::WriteGate& gate;
    runtime::MetricsSink& metrics;
    host::Logger log;
  };
  // `conflict_retries`: how often an HPA that changes under us is read again in one Apply().
  HpaKeeper(Parts parts, int conflict_retries)
      : p_(std::move(parts)), conflict_retries_(conflict_retries) {}

  // ALREADY_EXISTS: the name of its HPA is that of another ScaledObject's, and two would take it
  // from each other without end. Anybody else's HPA is taken over.
  absl::Status CheckName(const api::ScaledObject& object) const;

  // OK: the API server holds it, and the one of an earlier name is gone. ALREADY_EXISTS: as
  // CheckName(). Else the first error, which names the HPA; the next Apply() goes on from there.
  host::Task<absl::Status> Apply(ObjectPtr object, api::HorizontalPodAutoscaler wanted,
                                 host::Deadline deadline);

 private:
  absl::Status CheckOwner(const std::string& uid, const api::HorizontalPodAutoscaler& found) const;
  host::Task<absl::Status> Create(api::HorizontalPodAutoscaler wanted, host::Deadline deadline);
  host::Task<absl::Status> Update(api::HorizontalPodAutoscaler wanted,
                                  std::shared_ptr<const api::HorizontalPodAutoscaler> found,
                                  host::Deadline deadline);
  // Updates the HPA that the API server holds now, if it differs.
  host::Task<absl::Status> UpdateLive(api::HorizontalPodAutoscaler wanted, host::Deadline deadline);
  host::Task<absl::Status> DeleteOld(ObjectPtr object, host::Deadline deadline);

  Parts p_;
  const int conflict_retries_;
};

}  // namespace outrigger::controller::reconcile
