// SPDX-License-Identifier: Apache-2.0
#include "host/kit/connection_pool.h"

#include <gtest/gtest.h>

namespace outrigger::host::kit {
namespace {

TEST(ConnectionFingerprintTest, PartsDoNotRunTogetherAndCannotBeRead) {
  EXPECT_EQ(ConnectionFingerprint({"a", "b"}), ConnectionFingerprint({"a", "b"}));
  EXPECT_NE(ConnectionFingerprint({"ab", ""}), ConnectionFingerprint({"a", "b"}));
  EXPECT_NE(ConnectionFingerprint({"1:a"}), ConnectionFingerprint({"", "a"}));
  EXPECT_EQ(ConnectionFingerprint({"canary"}).find("canary"), std::string::npos);
}

TEST(ConnectionPoolTest, OnePerFingerprintUntilIdle) {
  ConnectionPool<int> pool;
  int made = 0;
  const auto make = [&made] { return std::make_shared<int>(++made); };
  const SteadyTime start(absl::Seconds(100));
  EXPECT_EQ(*pool.Get("a", start, make), 1);
  EXPECT_EQ(*pool.Get("b", start, make), 2);
  EXPECT_EQ(*pool.Get("a", start + absl::Seconds(50), make), 1);
  EXPECT_EQ(pool.TakeIdle(start).size(), 0u);
  const auto idle = pool.TakeIdle(start + absl::Seconds(1));
  ASSERT_EQ(idle.size(), 1u);
  EXPECT_EQ(*idle[0], 2);
  EXPECT_EQ(pool.size(), 1u);
  EXPECT_EQ(*pool.Get("b", start, make), 3) << "a new one after that";
}

}  // namespace
}  // namespace outrigger::host::kit
