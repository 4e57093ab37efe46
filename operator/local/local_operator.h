// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/time/time.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "host/base/event.h"
#include "host/base/logging.h"
#include "host/base/task_group.h"
#include "host/client/plugin_directory.h"
#include "host/client/scaler_client.h"
#include "operator/kube/memory_api.h"
#include "operator/local/child_process.h"
#include "operator/local/deployment_controller.h"
#include "operator/local/hpa_controller.h"
#include "operator/local/manifest.h"
#include "operator/reconcile/operator_core.h"
#include "operator/runtime/metrics_sink.h"

namespace outrigger::controller::local {

// The operator without a cluster: the same core on an API server in memory, the real plugins as
// child processes, an HPA controller that follows autoscaling/v2, and replicas as local processes.
// What `outriggerctl local` runs.
//
// All on one strand, whose thread must be the one that made it (children die with that thread).
// Run() to its end before it goes. Source: design.md section 6.
class LocalOperator {
 public:
  struct Options {
    std::string folder;          // of ours, 0700: plugins' sockets and logs
    std::string plugin_bin_dir;  // where outrigger-scaler-* are
    absl::Duration hpa_sync_period = absl::Seconds(2);
    // After everything was up once, ends when all targets have been at 0 for this long; infinite:
    // never.
    absl::Duration exit_after_idle = absl::InfiniteDuration();
  };
  // One line for people: what happened, and why.
  using Print = std::function<void(const std::string& line)>;

  LocalOperator(host::Clock& clock, const host::Executor& strand, const host::Logger& log,
                std::vector<ManifestObject> objects, Options options, Print print);

  // Until Stop(), or until idle. NOT_FOUND: a plugin that a trigger needs is not in plugin_bin_dir.
  host::Task<absl::Status> Run();
  void Stop();

 private:
  class Metrics;
  absl::Status StartPlugins();
  host::Task<absl::Status> CreateObjects();
  host::Task<absl::Status> Serve();
  host::Task<void> WaitForPlugins();
  host::Task<void> Watch();
  bool Report();

  host::Clock& clock_;
  const host::Executor strand_;
  const host::Logger log_;
  const std::vector<ManifestObject> objects_;
  const Options options_;
  const Print print_;
  kube::MemoryApi api_;
  runtime::MetricsSink metrics_;
  host::PluginDirectory directory_;
  host::ScalerClient scalers_;
  reconcile::OperatorCore core_;
  std::unique_ptr<ExternalMetrics> external_metrics_;
  HpaController hpas_;
  DeploymentController deployments_;
  host::TaskGroup tasks_;
  host::Event stop_;
  bool stopping_ = false;
  std::vector<std::unique_ptr<ChildProcess>> plugins_;
  std::map<std::string, std::string> shown_;    // last line of each object
  std::map<std::string, int64_t> replicas_;     // of each target as last shown
  std::map<std::string, std::string> hpa_why_;  // of each HPA's last rescale
};

}  // namespace outrigger::controller::local
