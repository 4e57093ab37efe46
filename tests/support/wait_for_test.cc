// SPDX-License-Identifier: Apache-2.0
#include "tests/support/wait_for.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace outrigger::tests {
namespace {

TEST(WaitForTest, AsksUntilTheConditionHolds) {
  int asked = 0;
  EXPECT_TRUE(WaitFor([&] { return ++asked == 3; }, absl::Seconds(30), "the third question",
                      [] { return ""; })
                  .ok());
  EXPECT_EQ(asked, 3);
}

TEST(WaitForTest, FailureTellsWhatItLastSaw) {
  const absl::Status status =
      WaitFor([] { return false; }, absl::Milliseconds(1), "5 replicas", [] { return "3"; });
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(std::string(status.message()), "waited 1ms for 5 replicas, last saw: 3");
}

}  // namespace
}  // namespace outrigger::tests
