// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/time/time.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/base/event.h"
#include "host/base/logging.h"
#include "host/base/task_group.h"
#include "host/client/health_cache.h"
#include "host/client/scaler_service.h"
#include "operator/kube/api.h"
#include "operator/polling/live_metric_source.h"
#include "operator/polling/target_scaler.h"
#include "operator/polling/trigger_resolver.h"
#include "operator/reconcile/cluster_informers.h"
#include "operator/reconcile/leader_term.h"
#include "operator/runtime/metrics_sink.h"
#include "operator/runtime/write_gate.h"

namespace outrigger::controller::reconcile {

// The whole operator but its ports: informers, metric reads on every replica, and a LeaderTerm
// while this one leads. The same in production (HttpApi, gRPC plugins), in embedded mode
// (MemoryApi) and in simulation (scripted scalers, virtual time): everything that differs is given
// to it.
//
// All of it lives on one strand (docs/adr/0003). Whoever made it runs Run() to its end before it
// goes.
class OperatorCore {
 public:
  struct Options {
    LeaderTerm::Options term;
    ClusterInformers::Options informers;
    absl::Duration metric_freshness = absl::Seconds(5);
    std::string own_namespace = "outrigger";
    std::string metrics_service = "outrigger-metrics";  // of the APIService, in own_namespace
    bool take_over = false;  // act although the APIService is somebody else's
  };
  struct Parts {
    host::Clock& clock;
    kube::Api& api;         // for reads and watches, of every replica
    kube::Api& leader_api;  // for the leader: refuses writes once the lease is over
    host::ScalerService& scalers;
    runtime::MetricsSink& metrics;
    host::Executor strand;
    host::Logger log;
  };
  OperatorCore(Parts parts, Options options);
  ~OperatorCore();

  // Until Stop(); returns when nothing of it runs any more.
  host::Task<void> Run();
  void Stop();
  host::Task<absl::Status> WaitForSync(host::Deadline deadline) {
    return informers_.WaitForSync(deadline);
  }
  bool Synced() const { return informers_.Synced(); }

  // Leading begins and ends. StopLeading() returns when nothing of the term runs any more; or, with
  // work that still waits for a plugin, when its patience is over: then writes must be fenced off.
  void StartLeading();
  host::Task<void> StopLeading(host::Deadline patience);
  bool leading() const { return term_ != nullptr; }

  polling::MetricSource& metric_source() { return source_; }
  const polling::ClusterView& view() const { return informers_; }
  std::vector<api::NamespacedName> ScaledObjectKeys() const {
    return informers_.ScaledObjectKeys();
  }
  const host::HealthCache& health() const { return health_; }
  // nullptr: not leading.
  const LeaderTerm* term() const { return term_.get(); }
  // OK, or why nothing is written.
  absl::Status MayWrite() const;

 private:
  ClusterInformers::Listener MakeListener();
  void EnqueueAll();
  void OnPluginChange(const std::vector<std::string>& types);
  host::Task<void> RunTerm(std::shared_ptr<LeaderTerm> term);

  Parts p_;
  const Options options_;
  host::HealthCache health_;
  ClusterInformers informers_;
  polling::TriggerResolver resolver_;
  runtime::WriteGate gate_;  // of reads' live /scale only; the term has its own
  polling::TargetScaler scaler_;
  polling::LiveMetricSource source_;
  host::TaskGroup tasks_;
  std::shared_ptr<LeaderTerm> term_;
  host::Event term_ended_;
  bool term_running_ = false;
};

}  // namespace outrigger::controller::reconcile
