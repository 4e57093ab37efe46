// SPDX-License-Identifier: Apache-2.0
#include "tests/support/black_hole.h"

#include <gtest/gtest.h>

#include "tests/support/process.h"

namespace outrigger::tests {
namespace {

TEST(BlackHoleTest, NeitherAcceptsNorRefusesAConnection) {
  const BlackHole hole;
  const absl::StatusOr<CommandResult> asked =
      RunCommand({.argv = {"curl", "-sS", "--connect-timeout", "1", "http://" + hole.address()}},
                 "", absl::Seconds(10));
  ASSERT_TRUE(asked.ok()) << asked.status();
  EXPECT_EQ(asked->exit_code, 28) << "curl's code of a timeout, here of the connection only; got "
                                  << asked->Describe();
}

}  // namespace
}  // namespace outrigger::tests
