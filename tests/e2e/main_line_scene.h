// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/cluster/control_plane.h"

namespace outrigger::tests {

// The main line on real parts, in the namespace "main-line": a Redis list drives a Deployment from
// 0 to 5 replicas and back, through the plugin, the operator and the real HPA controller. `plane`
// has the files of deploy/, with our CRDs or KEDA's. Fails the test that runs.
void QueueDrivesDeploymentFromZeroToFiveAndBack(ControlPlane& plane);

}  // namespace outrigger::tests
