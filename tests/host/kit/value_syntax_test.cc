// SPDX-License-Identifier: Apache-2.0
// Source of the rows: spec/authentication.md section 7.
#include "host/kit/value_syntax.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace outrigger::host::kit {
namespace {

TEST(ParseIntegerTest, TakesJsonIntegersOnly) {
  EXPECT_EQ(ParseInteger("5"), 5);
  EXPECT_EQ(ParseInteger("-5"), -5);
  EXPECT_EQ(ParseInteger("0"), 0);
  EXPECT_EQ(ParseInteger("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(ParseInteger("-9223372036854775808"), INT64_MIN);
  for (const char* bad : {"", "+5", "05", "5.0", "1e3", "0x10", "-", " 5", "5 ", "null", "5a",
                          "9223372036854775808", "--5", "-05"}) {
    EXPECT_FALSE(ParseInteger(bad).has_value()) << bad;
  }
}

TEST(ParseNumberTest, TakesFiniteJsonNumbersOnly) {
  EXPECT_EQ(ParseNumber("1.5"), 1.5);
  EXPECT_EQ(ParseNumber("-0.25"), -0.25);
  EXPECT_EQ(ParseNumber("1e3"), 1000);
  EXPECT_EQ(ParseNumber("1E-2"), 0.01);
  EXPECT_EQ(ParseNumber("7"), 7);
  for (const char* bad : {"", "+5", "05", ".5", "5.", "0x10", "nan", "inf", "null", "1e", "1e+",
                          "1e999", "1.5 ", "1,5"}) {
    EXPECT_FALSE(ParseNumber(bad).has_value()) << bad;
  }
}

TEST(ParseBooleanTest, TakesTheTwelveWordsOnly) {
  for (const char* word : {"1", "t", "T", "TRUE", "true", "True"}) {
    EXPECT_EQ(ParseBoolean(word), true) << word;
  }
  for (const char* word : {"0", "f", "F", "FALSE", "false", "False"}) {
    EXPECT_EQ(ParseBoolean(word), false) << word;
  }
  for (const char* bad : {"", "yes", "no", "tRUE", "on", "2"}) {
    EXPECT_FALSE(ParseBoolean(bad).has_value()) << bad;
  }
}

TEST(ParseDurationTest, TakesGoDurationsAndMilliseconds) {
  EXPECT_EQ(ParseDuration("1m30s"), absl::Seconds(90));
  EXPECT_EQ(ParseDuration("1500"), absl::Milliseconds(1500));
  EXPECT_EQ(ParseDuration("0"), absl::ZeroDuration());
  for (const char* bad : {"", "-1s", "-5", "1 minute", "inf", "5x"}) {
    EXPECT_FALSE(ParseDuration(bad).has_value()) << bad;
  }
}

TEST(SplitListTest, ItemsAreTrimmed) {
  EXPECT_THAT(SplitList(" a, b ,,c"), testing::ElementsAre("a", "b", "", "c"));
}

}  // namespace
}  // namespace outrigger::host::kit
