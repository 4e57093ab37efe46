// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/status/status.h>

#include <string>
#include <vector>

#include "host/client/health_cache.h"
#include "host/client/scaler_service.h"
#include "operator/api/hpa.h"
#include "operator/polling/tracked_object.h"
#include "operator/runtime/metrics_sink.h"

namespace outrigger::controller::reconcile {

// Asks the plugins about the triggers of one object, all in parallel under one deadline: what is
// wrong with them, their metric specs, and whether the connection works (GetMetrics, unless the
// HealthCache has an answer of a success <= 30 s or a failure <= 5 s ago). Source: requirements.md
// R14, R15; design.md section 5.
class TriggerObserver {
 public:
  struct Options {
    absl::Duration scaler_timeout = absl::Seconds(3);
    int reconciles_per_plugin = 3;
  };
  TriggerObserver(host::Clock& clock, host::ScalerService& scalers, host::HealthCache& health,
                  runtime::MetricsSink& metrics, Options options)
      : clock_(clock), scalers_(scalers), health_(health), metrics_(metrics), options_(options) {}

  // False while as many reconciles as allowed wait for a plugin that the object needs: come back a
  // little later, without holding a worker.
  bool HasRoom(const polling::TrackedObject& object) const;

  // Fills specs (fresh, else the last good one of `before`, else what `hpa` says), `refused`, and
  // the records of the HealthCache.
  host::Task<void> Observe(polling::TrackedObject& object, const polling::TrackedObject* before,
                           std::shared_ptr<const api::HorizontalPodAutoscaler> hpa,
                           host::Deadline deadline);

 private:
  host::Task<void> ObserveTrigger(polling::TrackedObject& object, size_t position,
                                  host::Deadline deadline);
  host::Task<absl::Status> AskSpecs(polling::TrackedTrigger& trigger, host::Deadline deadline);
  host::Task<void> TestConnection(polling::TrackedObject& object, size_t position,
                                  host::Deadline deadline);
  std::vector<std::string> PluginsOf(const polling::TrackedObject& object) const;

  host::Clock& clock_;
  host::ScalerService& scalers_;
  host::HealthCache& health_;
  runtime::MetricsSink& metrics_;
  const Options options_;
  absl::flat_hash_map<std::string, int> waiting_;  // reconciles, by plugin
};

}  // namespace outrigger::controller::reconcile
