// SPDX-License-Identifier: Apache-2.0
#include "host/kit/trigger_cache.h"

#include <gtest/gtest.h>

namespace outrigger::host::kit {
namespace {

TEST(TriggerCacheTest, KeepsTheOnesUsedLast) {
  TriggerCache cache(2);
  const auto a = std::make_shared<ParsedTrigger>();
  cache.Insert("a", a);
  cache.Insert("b", std::make_shared<ParsedTrigger>());
  EXPECT_EQ(cache.Find("a"), a);
  cache.Insert("c", std::make_shared<ParsedTrigger>());
  EXPECT_EQ(cache.size(), 2u);
  EXPECT_EQ(cache.Find("b"), nullptr);
  EXPECT_EQ(cache.Find("a"), a);
}

TEST(TriggerCacheTest, TheFirstOfEqualKeysStays) {
  TriggerCache cache(2);
  const auto first = std::make_shared<ParsedTrigger>();
  cache.Insert("a", first);
  cache.Insert("a", std::make_shared<ParsedTrigger>());
  EXPECT_EQ(cache.Find("a"), first);
  EXPECT_EQ(cache.size(), 1u);
}

}  // namespace
}  // namespace outrigger::host::kit
