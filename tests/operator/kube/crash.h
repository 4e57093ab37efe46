// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <signal.h>

#include "tests/cluster/control_plane.h"

namespace outrigger::controller::kube {

// Ends the API server as a crash does. A server that is told to end keeps open watches for up to a
// minute.
inline absl::Status CrashApiServer(tests::ControlPlane& plane) {
  kill(plane.pids().api_server, SIGKILL);
  return plane.StopApiServer();
}

}  // namespace outrigger::controller::kube
