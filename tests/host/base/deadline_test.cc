// SPDX-License-Identifier: Apache-2.0
#include "host/base/deadline.h"

#include <gtest/gtest.h>

#include "host/base/fake_clock.h"

namespace outrigger::host {
namespace {

TEST(DeadlineTest, ExpiresExactlyAtItsTime) {
  FakeClock clock;
  const Deadline deadline = Deadline::After(clock, absl::Seconds(3));
  clock.Advance(absl::Seconds(3) - absl::Nanoseconds(1));
  EXPECT_FALSE(deadline.Expired(clock));
  EXPECT_EQ(deadline.Remaining(clock), absl::Nanoseconds(1));
  clock.Advance(absl::Nanoseconds(1));
  EXPECT_TRUE(deadline.Expired(clock));
}

TEST(DeadlineTest, RemainingIsNeverNegative) {
  FakeClock clock;
  const Deadline deadline = Deadline::After(clock, absl::Seconds(1));
  clock.Advance(absl::Seconds(5));
  EXPECT_EQ(deadline.Remaining(clock), absl::ZeroDuration());
}

TEST(DeadlineTest, AChildGetsNoMoreThanItsParentHasLeft) {
  FakeClock clock;
  const Deadline parent = Deadline::After(clock, absl::Seconds(3));
  EXPECT_EQ(parent.Within(clock, absl::Seconds(1)).Remaining(clock), absl::Seconds(1));
  EXPECT_EQ(parent.Within(clock, absl::Seconds(9)).Remaining(clock), absl::Seconds(3));
  const Deadline sooner = Deadline::After(clock, absl::Seconds(2));
  EXPECT_EQ(parent.Min(sooner).time(), sooner.time());
  EXPECT_EQ(sooner.Min(parent).time(), sooner.time());
}

TEST(DeadlineTest, NeverDoesNotExpire) {
  FakeClock clock;
  clock.Advance(absl::Hours(24 * 365 * 100));
  EXPECT_FALSE(Deadline::Never().Expired(clock));
  EXPECT_EQ(Deadline::Never().Remaining(clock), absl::InfiniteDuration());
}

}  // namespace
}  // namespace outrigger::host
