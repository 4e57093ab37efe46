// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "operator/adapter/http_server.h"

namespace outrigger::controller::adapter {

// What must be OK for the process to be ready, by name, in the order in which it is printed:
// {"informers", …}. Called at each request on the server's executor; must not block.
using NamedChecks = std::vector<std::pair<std::string, std::function<absl::Status()>>>;

// The handler of the metrics port: GET /metrics answers what `render` gives, in Prometheus' text
// format.
HttpHandler MetricsRoutes(std::function<std::string()> render);

// The handler of the probe port. /healthz and /livez: 200 as long as the process answers. /readyz:
// 200 if all checks are OK, else 500; with ?verbose, and whenever one fails, a line for each check
// as Kubernetes' own servers print it. "/readyz/<name>" asks for one check.
HttpHandler ProbeRoutes(NamedChecks checks);

}  // namespace outrigger::controller::adapter
