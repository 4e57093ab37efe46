// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/status/status.h>

#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "host/client/health_cache.h"
#include "host/client/scaler_service.h"
#include "operator/api/hpa.h"
#include "operator/polling/answer_recorder.h"
#include "operator/polling/tracked_object.h"

namespace outrigger::controller::reconcile {

// Asks the plugins about the triggers of one object, all in parallel under one deadline: what is
// wrong with them, their metric specs, and whether the connection works (GetMetrics, unless the
// HealthCache has an answer of a success <= 30 s or a failure <= 5 s ago). At most 3 reconciles ask
// one plugin at a time, so that the objects of a hung one never hold all workers. Source:
// requirements.md R14, R15; design.md section 5.
class TriggerObserver {
 public:
  struct Options {
    absl::Duration scaler_timeout = absl::Seconds(3);
    int reconciles_per_plugin = 3;
  };
  TriggerObserver(host::Clock& clock, host::ScalerService& scalers, host::HealthCache& health,
                  const polling::AnswerRecorder& recorder, Options options)
      : clock_(clock), scalers_(scalers), health_(health), recorder_(recorder), options_(options) {}

  // False while as many reconciles as allowed wait for a plugin that the object needs. The caller
  // then holds no worker: `on_room` is told its key when a place is free, first come first served.
  bool HasRoom(const polling::TrackedObject& object);
  void SetOnRoom(std::function<void(const api::NamespacedName& key)> on_room) {
    on_room_ = std::move(on_room);
  }

  // Fills specs (fresh, else the last good one of `before`, else what `hpa` says), `refused`, and
  // the records of the HealthCache.
  host::Task<void> Observe(polling::TrackedObject& object, const polling::TrackedObject* before,
                           std::shared_ptr<const api::HorizontalPodAutoscaler> hpa,
                           host::Deadline deadline);

 private:
  struct Room {
    int taken = 0;  // by reconciles that wait for the plugin
    std::deque<api::NamespacedName> queue;
    std::set<api::NamespacedName> queued;
  };

  void TakeLastGoodSpecs(polling::TrackedObject& object, const polling::TrackedObject* before,
                         const api::HorizontalPodAutoscaler* hpa) const;
  void ForgetRemovedTriggers(const polling::TrackedObject& object,
                             const polling::TrackedObject& before);
  void Leave(const std::string& plugin);
  host::Task<void> ObserveTrigger(polling::TrackedObject& object, size_t position,
                                  polling::AnswerTo asker, bool ask, host::Deadline deadline);
  host::Task<absl::Status> AskSpecs(polling::TrackedTrigger& trigger, host::Deadline deadline);
  host::Task<void> TestConnection(polling::TrackedObject& object, size_t position,
                                  polling::AnswerTo asker, bool ask, host::Deadline deadline);
  std::vector<std::string> PluginsOf(const polling::TrackedObject& object) const;

  host::Clock& clock_;
  host::ScalerService& scalers_;
  host::HealthCache& health_;
  const polling::AnswerRecorder& recorder_;
  const Options options_;
  std::function<void(const api::NamespacedName& key)> on_room_;
  absl::flat_hash_map<std::string, Room> rooms_;  // by plugin
};

}  // namespace outrigger::controller::reconcile
