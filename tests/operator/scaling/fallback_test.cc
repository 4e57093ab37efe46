// SPDX-License-Identifier: Apache-2.0
#include "operator/scaling/fallback.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <string>

namespace outrigger::controller::scaling {
namespace {

using api::MetricTargetType;
using testing::HasSubstr;

api::ScaledObjectSpec SpecWith(int32_t threshold, int32_t replicas) {
  api::ScaledObjectSpec spec;
  spec.fallback = api::Fallback{.failure_threshold = threshold, .replicas = replicas};
  return spec;
}

struct ThresholdCase {
  const char* name;
  int32_t threshold;
  int32_t failed_cycles;
  bool falls_back;
};
class FallbackThresholdTest : public testing::TestWithParam<ThresholdCase> {};

// Shows R16.
TEST_P(FallbackThresholdTest, BeginsAtTheThresholdNotAfterIt) {
  EXPECT_EQ(FallsBack(SpecWith(GetParam().threshold, 3), GetParam().failed_cycles),
            GetParam().falls_back);
}

INSTANTIATE_TEST_SUITE_P(Counts, FallbackThresholdTest,
                         testing::ValuesIn<ThresholdCase>({
                             {"NoFailure", 3, 0, false},
                             {"OneBelow", 3, 2, false},
                             {"AtThree", 3, 3, true},
                             {"Above", 3, 4, true},
                             {"OneIsTheFirst", 1, 1, true},
                             {"ZeroIsTheFirst", 0, 1, true},
                             {"ZeroIsNotNoFailure", 0, 0, false},
                             {"NegativeIsNoFallback", -1, 5, false},
                         }),
                         [](const testing::TestParamInfo<ThresholdCase>& info) {
                           return std::string(info.param.name);
                         });

// Shows R16.
TEST(FallbackTest, ThereIsNoneWithoutTheField) {
  EXPECT_FALSE(FallbackConfigured(api::ScaledObjectSpec()));
  EXPECT_FALSE(FallsBack(api::ScaledObjectSpec(), 100));
  EXPECT_FALSE(FallsBack(SpecWith(3, -1), 100));
}

struct ValueCase {
  const char* name;
  MetricTargetType type;
  double target;
  int32_t replicas;
  std::optional<int32_t> ready_pods;
  const char* wanted;  // empty: FAILED_PRECONDITION
};
class FallbackValueTest : public testing::TestWithParam<ValueCase> {};

TEST_P(FallbackValueTest, LetsTheHpaArriveAtTheReplicas) {
  const absl::StatusOr<api::Quantity> value =
      FallbackValue({.failure_threshold = 3, .replicas = GetParam().replicas}, GetParam().type,
                    GetParam().target, GetParam().ready_pods);
  if (*GetParam().wanted == '\0') {
    EXPECT_EQ(value.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(value.status().message()), HasSubstr("at least one ready pod"));
    return;
  }
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ(value->ToString(), GetParam().wanted);
}

INSTANTIATE_TEST_SUITE_P(
    Vectors, FallbackValueTest,
    testing::ValuesIn<ValueCase>({
        {"Average", MetricTargetType::kAverageValue, 5, 3, {}, "15"},
        {"AverageOfFraction", MetricTargetType::kAverageValue, 7.5, 3, {}, "22500m"},
        {"AverageOfZero", MetricTargetType::kAverageValue, 5, 0, {}, "0"},
        {"AverageIgnoresReadyPods", MetricTargetType::kAverageValue, 5, 3, 0, "15"},
        {"Value", MetricTargetType::kValue, 10, 6, 4, "15"},
        {"ValueIsTruncated", MetricTargetType::kValue, 10, 5, 3, "16666m"},
        {"ValueWithoutReadyPods", MetricTargetType::kValue, 10, 5, 0, ""},
        {"ValueWithUnknownPods", MetricTargetType::kValue, 10, 5, {}, ""},
        {"Huge",
         MetricTargetType::kAverageValue,
         9e15,
         std::numeric_limits<int32_t>::max(),
         {},
         "9223372036854775807m"},
    }),
    [](const testing::TestParamInfo<ValueCase>& info) { return std::string(info.param.name); });

TEST(FallbackTest, OtherBehavioursAreRefusedByName) {
  const absl::Status status = FallbackValue({.replicas = 3, .behavior = "currentReplicas"},
                                            MetricTargetType::kAverageValue, 5, std::nullopt)
                                  .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("spec.fallback.behavior: want static, got currentReplicas"));
}

TEST(FallbackTest, AnEmptyBehaviourIsStatic) {
  const absl::StatusOr<api::Quantity> value = FallbackValue(
      {.replicas = 3, .behavior = ""}, MetricTargetType::kAverageValue, 5, std::nullopt);
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ(value->ToString(), "15");
}

}  // namespace
}  // namespace outrigger::controller::scaling
