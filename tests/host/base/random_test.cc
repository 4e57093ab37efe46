// SPDX-License-Identifier: Apache-2.0
#include "host/base/random.h"

#include <gtest/gtest.h>

namespace outrigger::host {
namespace {

// The first outputs of splitmix64 for seed 1234567, as its author publishes them.
TEST(RandomTest, IsSplitMix64) {
  Random random(1234567);
  EXPECT_EQ(random.Next(), 6457827717110365317ULL);
  EXPECT_EQ(random.Next(), 3203168211198807973ULL);
  EXPECT_EQ(random.Next(), 9817491932198370423ULL);
}

TEST(RandomTest, JitterStaysBetweenHalfAndWholeSoThatACapHolds) {
  Random random(1);
  for (int i = 0; i < 10'000; ++i) {
    const absl::Duration jittered = random.Jitter(absl::Seconds(30));
    ASSERT_GE(jittered, absl::Seconds(15));
    ASSERT_LE(jittered, absl::Seconds(30));
    const double fraction = random.Fraction();
    ASSERT_GE(fraction, 0.0);
    ASSERT_LT(fraction, 1.0);
  }
}

}  // namespace
}  // namespace outrigger::host
