// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <set>
#include <string>

#include "tests/cluster/control_plane.h"

namespace outrigger::tests {

// The operator's Pods of a control plane without nodes. The ReplicaSet controller makes them of
// deploy/deployment.yaml and the EndpointSlice controller publishes their addresses by
// deploy/services.yaml, both the real ones; this plays scheduler and kubelet, who are missing, by
// the writes that these would do. The processes themselves are the test's.
//
// What is true of a real Pod is so here, too. It is published from the moment it has an address
// and the labels that the Service selects, ready or not (publishNotReadyAddresses). When it is
// deleted, the kubelet sends SIGTERM, and the Pod stays published like before: until the kubelet
// has seen its last container end and says so by the Pod's phase.
class OperatorPods {
 public:
  explicit OperatorPods(ControlPlane& plane) : plane_(plane) {}

  // The node, the Service, the APIService (signed by the cluster's authority) and the Deployment.
  absl::Status Deploy();

  // Takes a Pod that waits for a node and gives it one, and this address. Its name.
  absl::StatusOr<std::string> Run(const std::string& address);
  // Somebody deletes it: from now on it is terminating. The test sends SIGTERM, as the kubelet
  // would.
  absl::Status Delete(const std::string& pod);
  // Its containers have ended and will not start again.
  absl::Status ReportEnd(const std::string& pod);

  // The addresses of the EndpointSlices of the Service outrigger-metrics.
  absl::StatusOr<std::set<std::string>> PublishedAddresses();

 private:
  ControlPlane& plane_;
};

}  // namespace outrigger::tests
