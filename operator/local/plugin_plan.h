// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "host/client/plugin_address.h"
#include "operator/local/manifest.h"
#include "operator/local/plugin_processes.h"

namespace outrigger::controller::local {

struct PluginPlanOptions {
  std::string bin_dir;     // where the outrigger-scaler-* programs are
  std::string plugin_dir;  // sockets: <plugin_dir>/<name>/scaler.sock
  std::string log_dir;     // their output: <log_dir>/<name>.log
  // Plugins that run already (--plugin): one of our names replaces ours, any other may serve any
  // type that none of ours serves.
  std::vector<host::PluginAddress> given;
};

// Which of our plugins the triggers of the ScaledObjects need. INVALID_ARGUMENT, a line for each
// trigger, with its file and field: no plugin serves the type, or its program is not in bin_dir.
absl::StatusOr<std::vector<PluginProcesses::Plugin>> PlanPlugins(
    const std::vector<ManifestObject>& objects, const PluginPlanOptions& options);

}  // namespace outrigger::controller::local
