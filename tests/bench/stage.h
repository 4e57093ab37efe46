// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/bench/footprint.h"
#include "tests/bench/http_load.h"
#include "tests/bench/report.h"
#include "tests/cluster/control_plane.h"
#include "tests/e2e/operator_process.h"

namespace outrigger::bench {

// A ScaledObject named like the Deployment that it scales, in the namespace of the stage.
struct ObjectSpec {
  std::string name;
  std::string trigger_type;
  std::string metadata;     // of the trigger: the members of a JSON object
  std::string metric_name;  // of the trigger, with its prefix: "s0-redis-a"
};

// Whose CRDs a control plane has.
enum class Crds { kOurs, kKeda };

// What one benchmark measures on: a control plane of its own with the namespace "bench" and, from
// StartOperator() on, a leading operator of ours that serves the metrics API. Plugins are the
// benchmark's, started before.
class Stage {
 public:
  // With an HPA that looks every 15 s, as in a cluster, where tests have 2 s.
  static absl::StatusOr<std::unique_ptr<Stage>> Start(Crds crds = Crds::kOurs);
  absl::Status StartOperator();

  // Deployments at 0; returns when their ReplicaSets exist, so that the work of the Deployment
  // controller is not measured.
  absl::Status CreateDeployments(const std::vector<ObjectSpec>& objects);
  absl::Status CreateScaledObjects(const std::vector<ObjectSpec>& objects, int polling_seconds);
  // Until `count` ScaledObjects have Ready=True; of `name` only, unless it is "".
  absl::Status WaitUntilReady(int count, absl::Duration timeout, const std::string& name = "");
  // The read of its metric as the HPA does it.
  HttpRequest MetricRead(const ObjectSpec& object) const;
  // The aggregator has seen the adapter: the read is answered with 200.
  absl::Status WaitUntilServed(const ObjectSpec& object);

  tests::ControlPlane& plane() { return *plane_; }
  tests::OperatorProcess& controller() { return *operator_; }
  const tests::PluginDir& plugins() const { return plugins_; }
  HttpLoad& load() { return *load_; }

 private:
  absl::Status CreateAll(const std::string& path, const std::vector<std::string>& bodies);
  absl::StatusOr<int> CountReplicaSets();
  absl::StatusOr<int> CountReady(const std::string& name);

  tests::PluginDir plugins_;
  std::unique_ptr<tests::ControlPlane> plane_;
  std::unique_ptr<HttpLoad> load_;
  std::unique_ptr<tests::OperatorProcess> operator_;  // null before StartOperator()
};

// Prints a line of progress to stderr.
void Say(const std::string& what);

}  // namespace outrigger::bench
