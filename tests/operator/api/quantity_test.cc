// SPDX-License-Identifier: Apache-2.0
#include "operator/api/quantity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

namespace outrigger::controller::api {
namespace {

struct PrintCase {
  const char* name;
  const char* text;
  const char* canonical;
};
class QuantityPrintTest : public testing::TestWithParam<PrintCase> {};

TEST_P(QuantityPrintTest, PrintsTheCanonicalText) {
  const absl::StatusOr<Quantity> quantity = Quantity::Parse(GetParam().text);
  ASSERT_TRUE(quantity.ok()) << quantity.status();
  EXPECT_EQ(quantity->ToString(), GetParam().canonical);
}

INSTANTIATE_TEST_SUITE_P(Texts, QuantityPrintTest,
                         testing::ValuesIn<PrintCase>({
                             {"Zero", "0", "0"},
                             {"Plain", "15", "15"},
                             {"Thousand", "1000", "1k"},
                             {"NotAThousand", "1500", "1500"},
                             {"Million", "1e6", "1e6"},
                             {"SiMillion", "1000000", "1M"},
                             {"TenPeta", "10000000000000000", "10P"},
                             {"Half", "0.5", "500m"},
                             {"KedasDecimals", "2.500", "2500m"},
                             {"KedasComposite", "5500e-3", "5500e-3"},
                             {"Binary", "1024Ki", "1Mi"},
                             {"BinaryFraction", "0.5Ki", "512"},
                             {"SmallBinary", "1000Ki", "1000Ki"},
                             {"Negative", "-2.5", "-2500m"},
                             {"BelowNanoRoundsAwayFromZero", "0.0000000001", "1n"},
                             {"BeyondExaIsAnExponent", "1000E", "1e21"},
                             {"BinaryIsCapped", "8Ei", "9223372036854775807"},
                         }),
                         [](const testing::TestParamInfo<PrintCase>& info) {
                           return std::string(info.param.name);
                         });

TEST(QuantityTest, RefusesWhatIsNoQuantityAndSaysWhatCame) {
  for (const char* text :
       {"", "x", "1 ", " 1", "1K", "1ki", "--1", "1e", "1.2.3", "NaN", "Inf", "1,0", "Pi"}) {
    const absl::Status status = Quantity::Parse(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()),
                testing::HasSubstr(std::string("got \"") + text + "\""))
        << text;
  }
}

TEST(QuantityTest, LongGarbageIsQuotedShort) {
  const absl::Status status = Quantity::Parse(std::string(1 << 20, 'x')).status();
  EXPECT_LT(status.message().size(), 300u);
}

TEST(QuantityTest, ComparesByValueNotByText) {
  EXPECT_EQ(*Quantity::Parse("1k"), *Quantity::Parse("1000"));
  EXPECT_EQ(*Quantity::Parse("2.500"), *Quantity::Parse("2500m"));
  EXPECT_EQ(*Quantity::Parse("5500e-3"), *Quantity::Parse("5.5"));
  EXPECT_EQ(*Quantity::Parse("1Ki"), *Quantity::Parse("1024"));
  EXPECT_LT(*Quantity::Parse("-1"), *Quantity::Parse("0"));
  EXPECT_LT(*Quantity::Parse("-1k"), *Quantity::Parse("-999"));
  EXPECT_GT(*Quantity::Parse("1001m"), *Quantity::Parse("1"));
  EXPECT_GT(*Quantity::Parse("1e400"), *Quantity::Parse("9E"));
}

struct DoubleCase {
  const char* name;
  double value;
  const char* text;
};
class QuantityDoubleTest : public testing::TestWithParam<DoubleCase> {};

// Case B049.
TEST_P(QuantityDoubleTest, RoundsTheExactBinaryValueToThreeDecimals) {
  EXPECT_EQ(Quantity::FromDouble(GetParam().value).ToString(), GetParam().text);
}

INSTANTIATE_TEST_SUITE_P(Vectors, QuantityDoubleTest,
                         testing::ValuesIn<DoubleCase>({
                             {"A", 1.0004, "1"},
                             {"B", 1.0005, "1"},
                             {"C", 2.0005, "2001m"},
                             {"D", 0.0005, "1m"},
                             {"E", 0.0015, "2m"},
                             {"F", 0.0004, "0"},
                             {"G", 2.5, "2500m"},
                             {"H", 12345.6789, "12345679m"},
                             {"I", 1e16, "10P"},
                             {"TieToEven", 0.0625, "62m"},
                             {"Negative", -2.5, "-2500m"},
                             {"NegativeZero", -0.0, "0"},
                             {"RoundsToZero", -0.0001, "0"},
                             {"ThreeQuarters", 0.75, "750m"},
                         }),
                         [](const testing::TestParamInfo<DoubleCase>& info) {
                           return std::string(info.param.name);
                         });

TEST(QuantityTest, LargestDoubleIsExact) {
  const Quantity quantity = Quantity::FromDouble(std::numeric_limits<double>::max());
  EXPECT_EQ(quantity.AsDouble(), std::numeric_limits<double>::max());
}

// Case B047.
TEST(QuantityTest, MetricValueThatIsNoNumberIsAnErrorNeverAZero) {
  for (double value : {std::nan(""), std::numeric_limits<double>::infinity(),
                       -std::numeric_limits<double>::infinity()}) {
    const absl::Status status = Quantity::FromMetricValue(value).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("want a finite number"));
  }
}

TEST(QuantityTest, NegativeMetricValueIsZero) {
  EXPECT_EQ(Quantity::FromMetricValue(-3)->ToString(), "0");
}

// Case B045. The HPA controller reads thousandths in an int64 and takes what does not fit as 0.
TEST(QuantityTest, HugeMetricValueSaturatesWhereTheHpaStillReadsIt) {
  EXPECT_EQ(Quantity::FromMetricValue(9.2e15)->ToString(), "9200T");
  for (double value : {9.3e15, 1e18, 1e300}) {
    EXPECT_EQ(Quantity::FromMetricValue(value)->ToString(), "9223372036854775807m") << value;
  }
  EXPECT_EQ(Quantity::FromMetricValue(0.0004)->ToString(), "0");
}

TEST(QuantityTest, MilliIsRoundedUpAndSaturates) {
  EXPECT_EQ(Quantity::FromMilli(22500).ToString(), "22500m");
  EXPECT_EQ(Quantity::FromMilli(-1500).AsMilli(), -1500);
  EXPECT_EQ(Quantity::Parse("1u")->AsMilli(), 1);
  EXPECT_EQ(Quantity::Parse("-1u")->AsMilli(), -1);
  EXPECT_EQ(Quantity::Parse("1e300")->AsMilli(), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(Quantity::FromMilli(std::numeric_limits<int64_t>::min()).ToString(),
            "-9223372036854775808m");
}

}  // namespace
}  // namespace outrigger::controller::api
