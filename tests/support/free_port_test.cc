// SPDX-License-Identifier: Apache-2.0
#include "tests/support/free_port.h"

#include <gtest/gtest.h>

#include <set>

namespace outrigger::tests {
namespace {

TEST(FreePortTest, NeverGivesAPortTwice) {
  std::set<uint16_t> ports;
  for (int i = 0; i < 100; ++i) ports.insert(FreePort());
  EXPECT_EQ(ports.size(), 100);
  EXPECT_GE(*ports.begin(), 12000);
  EXPECT_LT(*ports.rbegin(), 32000);
}

}  // namespace
}  // namespace outrigger::tests
