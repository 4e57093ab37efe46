// SPDX-License-Identifier: Apache-2.0
#include "operator/scaling/metric_name.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace outrigger::controller::scaling {
namespace {

TEST(MetricNameTest, OnlyPrependsTheIndex) {
  // Replacing / . : % ( ) is the plugin's work.
  EXPECT_EQ(ExternalMetricName(0, "redis-orders"), "s0-redis-orders");
  EXPECT_EQ(ExternalMetricName(12, "Redis.orders_x"), "s12-Redis.orders_x");
}

struct ParseCase {
  const char* name;
  const char* text;
  std::optional<int32_t> index;
  const char* rest;
};
class ParseMetricNameTest : public testing::TestWithParam<ParseCase> {};

TEST_P(ParseMetricNameTest, SplitsOffTheIndex) {
  const std::optional<IndexedMetricName> parsed = ParseExternalMetricName(GetParam().text);
  ASSERT_EQ(parsed.has_value(), GetParam().index.has_value());
  if (!parsed.has_value()) return;
  EXPECT_EQ(parsed->trigger_index, *GetParam().index);
  EXPECT_EQ(parsed->name, GetParam().rest);
}

INSTANTIATE_TEST_SUITE_P(Texts, ParseMetricNameTest,
                         testing::ValuesIn<ParseCase>({
                             {"Plain", "s0-redis-orders", 0, "redis-orders"},
                             {"TwoDigits", "s10-x", 10, "x"},
                             {"UpperCase", "S3-Redis", 3, "Redis"},
                             {"NoName", "s0-", 0, ""},
                             {"Empty", "", {}, ""},
                             {"NoPrefix", "redis-orders", {}, ""},
                             {"NoDigits", "s-x", {}, ""},
                             {"NoDash", "s0", {}, ""},
                             {"Signed", "s+1-x", {}, ""},
                             {"Negative", "s-1-x", {}, ""},
                             {"LeadingZero", "s01-x", {}, ""},
                             {"TooLarge", "s99999999999-x", {}, ""},
                             {"Composite", "composite-metric", {}, ""},
                         }),
                         [](const testing::TestParamInfo<ParseCase>& info) {
                           return std::string(info.param.name);
                         });

TEST(MetricNameTest, NamesAreComparedWithoutRegardToCase) {
  EXPECT_TRUE(SameMetricName("s0-Redis-Orders", "S0-redis-orders"));
  EXPECT_FALSE(SameMetricName("s0-redis", "s1-redis"));
}

}  // namespace
}  // namespace outrigger::controller::scaling
