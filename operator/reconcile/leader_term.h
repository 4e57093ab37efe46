// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/time/time.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "host/base/logging.h"
#include "host/base/random.h"
#include "host/base/task_group.h"
#include "host/client/health_cache.h"
#include "host/client/scaler_service.h"
#include "operator/kube/api.h"
#include "operator/polling/cluster_view.h"
#include "operator/polling/object_decider.h"
#include "operator/polling/poll_engine.h"
#include "operator/polling/target_scaler.h"
#include "operator/polling/tracked_object.h"
#include "operator/polling/trigger_resolver.h"
#include "operator/reconcile/scaled_object_reconciler.h"
#include "operator/reconcile/trigger_observer.h"
#include "operator/runtime/controller.h"
#include "operator/runtime/event_recorder.h"
#include "operator/runtime/metrics_sink.h"
#include "operator/runtime/status_writer.h"
#include "operator/runtime/work_queue.h"
#include "operator/runtime/write_gate.h"

namespace outrigger::controller::reconcile {

// All that only the leader does, and all state that belongs to it: the queue and its workers, the
// tracked objects and their polls, the status writer. Made when leading starts, gone when it ends;
// a new term starts from what is published.
//
// Use on the core strand. Whoever made it awaits Run() to its end before it goes.
class LeaderTerm {
 public:
  struct Options {
    int max_concurrent_reconciles = 10;
    absl::Duration scaler_timeout = absl::Seconds(3);
    absl::Duration hpa_sync_period = absl::Seconds(15);
    absl::Duration spread = absl::Seconds(10);
    std::string instance = "outrigger-operator";  // in events
    uint64_t seed = 0;
  };
  struct Parts {
    host::Clock& clock;
    kube::Api& api;  // refuses writes once the lease is over
    const polling::ClusterView& view;
    host::ScalerService& scalers;
    host::HealthCache& health;
    polling::TriggerResolver& resolver;
    runtime::MetricsSink& metrics;
    host::Executor strand;
    host::Logger log;
    std::function<absl::Status()> may_write;  // OK, or why nothing may be written
  };
  LeaderTerm(Parts parts, const Options& options);

  // Until Stop(); returns when nothing of it runs any more.
  host::Task<void> Run();
  void Stop();

  // Something about the object changed that may start a reconcile.
  void Enqueue(const api::NamespacedName& key) { queue_.Add(key); }
  // The informer saw a new version of an object.
  void Adopt(const std::shared_ptr<const api::ScaledObject>& object);
  void ObserveHpa(const api::NamespacedName& key) { decider_.ObserveHpa(key); }
  // A metric read was answered by a live call.
  void AnsweredLive(const api::NamespacedName& key, uint32_t trigger_index,
                    const host::MetricsAnswer& answer, absl::Duration took) {
    engine_.AnsweredLive(key, trigger_index, answer, took);
  }

  const polling::ObjectRegistry& registry() const { return registry_; }
  const runtime::WorkQueue& queue() const { return queue_; }
  const runtime::StatusWriter& status() const { return status_; }

 private:
  host::Clock& clock_;
  const Options options_;
  const std::function<absl::Status()> may_write_;
  polling::ObjectRegistry registry_;
  runtime::WriteGate gate_;
  runtime::StatusWriter status_;
  runtime::EventRecorder events_;
  polling::TargetScaler scaler_;
  polling::ObjectDecider decider_;
  polling::AnswerRecorder recorder_;
  polling::PollEngine engine_;
  TriggerObserver observer_;
  ScaledObjectReconciler reconciler_;
  runtime::WorkQueue queue_;
  runtime::Controller controller_;
  host::TaskGroup tasks_;
};

}  // namespace outrigger::controller::reconcile
