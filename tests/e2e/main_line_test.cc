// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/cluster/deployed.h"
#include "tests/e2e/main_line_scene.h"

namespace outrigger::tests {
namespace {

// Shows R1. Shows R2. Shows R7. Shows R8. Shows R23. Shows R27.
TEST(MainLineTest, QueueDrivesDeploymentFromZeroToFiveAndBack) {
  QueueDrivesDeploymentFromZeroToFiveAndBack(DeployedControlPlane());
}

}  // namespace
}  // namespace outrigger::tests
