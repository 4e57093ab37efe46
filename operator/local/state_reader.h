// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "host/base/clock.h"
#include "host/client/scaler_service.h"
#include "operator/local/deployment_controller.h"
#include "operator/local/hpa_controller.h"
#include "operator/local/local_state.h"
#include "operator/local/plugin_processes.h"
#include "operator/reconcile/operator_core.h"

namespace outrigger::controller::local {

// Reads a LocalState from the parts of an embedded run, all of which must outlive it. On their
// strand; never waits.
class StateReader {
 public:
  struct Parts {
    const host::Clock& clock;
    const reconcile::OperatorCore& core;
    const host::ScalerService& scalers;
    const DeploymentController& deployments;
    const PluginProcesses& plugins;
  };
  explicit StateReader(Parts parts) : p_(parts) {}

  // What the HPA controller did is told by its events only.
  void OnHpaEvent(const HpaEvent& event);
  LocalState Read();

 private:
  struct Rescale {
    std::string message;
    int32_t replicas = 0;
  };
  struct Said {
    std::string text;
    absl::Time since;
  };
  absl::Time SinceWhen(const ObjectView& object, absl::Time now);
  ObjectView ReadObject(const api::ScaledObject& object) const;
  void ReadDecision(const polling::TrackedObject& tracked, ObjectView& view) const;
  TriggerView ReadTrigger(const polling::TrackedObject& tracked,
                          const polling::TrackedTrigger& trigger,
                          const scaling::MetricSpec* spec) const;

  const Parts p_;
  std::map<api::NamespacedName, Rescale> rescales_;  // the last of each HPA
  std::map<std::string, Said> said_;                 // of each object
};

}  // namespace outrigger::controller::local
