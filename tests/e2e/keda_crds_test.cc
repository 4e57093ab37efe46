// SPDX-License-Identifier: Apache-2.0
// With the CRDs of KEDA instead of ours, as in a cluster that had KEDA before. They do not keep all
// fields of our status. CRDs are cluster-wide, so these tests have a control plane of their own.
#include <gtest/gtest.h>

#include "tests/cluster/control_plane.h"
#include "tests/e2e/main_line_scene.h"
#include "tests/e2e/steady_scene.h"

namespace outrigger::tests {
namespace {

class KedaCrdsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const absl::Status applied = SharedControlPlane().ApplyDeployFilesWithKedaCrds();
    ASSERT_TRUE(applied.ok()) << applied;
  }
};

TEST_F(KedaCrdsTest, QueueDrivesDeploymentFromZeroToFiveAndBack) {
  QueueDrivesDeploymentFromZeroToFiveAndBack(SharedControlPlane());
}

// Shows R3. Shows R6.
TEST_F(KedaCrdsTest, NothingIsWrittenWhenNothingChanges) {
  NothingIsWrittenWhenNothingChanges(SharedControlPlane(), {.crd_prunes = true});
}

}  // namespace
}  // namespace outrigger::tests
