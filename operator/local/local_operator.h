// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/base/event.h"
#include "host/base/logging.h"
#include "host/base/task_group.h"
#include "host/client/plugin_directory.h"
#include "host/client/scaler_client.h"
#include "operator/kube/memory_api.h"
#include "operator/local/deployment_controller.h"
#include "operator/local/hpa_controller.h"
#include "operator/local/local_state.h"
#include "operator/local/manifest.h"
#include "operator/local/plugin_processes.h"
#include "operator/local/state_reader.h"
#include "operator/local/step_reporter.h"
#include "operator/reconcile/operator_core.h"
#include "operator/runtime/metrics_sink.h"
#include "outrigger/introspection/v1/introspection.pb.h"

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
    std::string folder;                        // of ours, 0700: plugins' sockets
    std::string log_dir;                       // output of plugins and replicas
    std::string plugin_bin_dir;                // where outrigger-scaler-* are
    std::vector<host::PluginAddress> plugins;  // that run already
    absl::Duration hpa_sync_period = absl::Seconds(2);
    // After something ran, ends when all targets have been at 0 for this long; absent: never.
    std::optional<absl::Duration> exit_after_idle;
    // Ends after this long; an error if it should have ended by exit_after_idle. Absent: never.
    std::optional<absl::Duration> timeout;
  };
  // For people. They run on the strand and should not wait.
  struct Output {
    std::function<void(const std::string& line)> step;   // what happened, and why
    std::function<void(const LocalState& state)> state;  // how it is, several times a second
  };

  // INVALID_ARGUMENT: a trigger that no plugin can serve, see PlanPlugins(); INTERNAL: `folder`.
  static absl::StatusOr<std::unique_ptr<LocalOperator>> Make(host::Clock& clock,
                                                             const host::Executor& strand,
                                                             const host::Logger& log,
                                                             std::vector<ManifestObject> objects,
                                                             Options options, Output output);

  // Until Stop(), idle or timeout. Errors: a plugin that cannot be started, an object that the API
  // refuses; DEADLINE_EXCEEDED: see Options::timeout.
  host::Task<absl::Status> Run();
  void Stop();
  // As Stop(), without a grace period: when it returns, no process of ours runs any more. Run()
  // still takes its time to end.
  void Kill();

  // What the operator's own port answers. On the strand.
  outrigger::introspection::v1::ListPluginsResponse ListPlugins() const;
  outrigger::introspection::v1::ListObjectsResponse ListObjects(const std::string& namespace_name,
                                                                const std::string& name) const;

 private:
  LocalOperator(host::Clock& clock, const host::Executor& strand, const host::Logger& log,
                std::vector<ManifestObject> objects, Options options, Output output,
                std::vector<PluginProcesses::Plugin> plugins);
  WorkloadFactory ProcessFactory();
  host::Task<absl::Status> Start();
  host::Task<absl::Status> CreateObjects();
  host::Task<void> WaitForPlugins();
  host::Task<absl::Status> Watch();
  host::Task<void> StopInOrder();
  // Tells what changed. True while any target has or wants replicas.
  bool Report();

  host::Clock& clock_;
  const host::Logger log_;
  const std::vector<ManifestObject> objects_;
  const Options options_;
  const Output output_;
  kube::MemoryApi api_;
  runtime::MetricsSink metrics_;
  host::PluginDirectory directory_;
  host::ScalerClient scalers_;
  PluginProcesses plugins_;
  reconcile::OperatorCore core_;
  const std::unique_ptr<ExternalMetrics> external_metrics_;
  HpaController hpas_;
  DeploymentController deployments_;
  StateReader reader_;
  StepReporter steps_;
  host::TaskGroup tasks_;
  const host::Event stop_;
  bool stopping_ = false;
};

}  // namespace outrigger::controller::local
