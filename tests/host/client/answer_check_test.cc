// SPDX-License-Identifier: Apache-2.0
#include "host/client/answer_check.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

namespace outrigger::host {
namespace {

using testing::HasSubstr;

template <typename Message>
Message Parse(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

struct Case {
  const char* name;
  const char* text;
  const char* message;  // part of the error
};
std::string CaseName(const testing::TestParamInfo<Case>& info) { return info.param.name; }

TEST(CheckAnswerTest, PassesValuesActivityAndACutRetryAfter) {
  auto answer = CheckAnswer(Parse<scaler::v1::GetMetricsResponse>(
                                R"(values { name: "depth" value: -2.5 } active: true
                                   retry_after { seconds: 3600 })"),
                            {.metric_name = "depth"});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->values.at(0).value(), -2.5) << "negative values are the caller's business";
  EXPECT_TRUE(answer->active);
  EXPECT_EQ(answer->retry_after, absl::Seconds(30));
}

TEST(CheckAnswerTest, ASelectorMayLeaveNoValue) {
  EXPECT_TRUE(CheckAnswer({}, {.metric_name = "depth", .selector = "queue=a"}).ok());
}

TEST(CheckAnswerTest, RefusesMoreThanAThousandValues) {
  scaler::v1::GetMetricsResponse response;
  for (int i = 0; i < 1001; ++i) response.add_values()->set_name("depth");
  const absl::Status status = CheckAnswer(response, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("want at most 1000 values, got 1001"));
}

// Shows R24. What is no number is an error, never 0.
class BadAnswerTest : public testing::TestWithParam<Case> {};

TEST_P(BadAnswerTest, IsInternalAndSaysWhatCame) {
  const absl::Status status =
      CheckAnswer(Parse<scaler::v1::GetMetricsResponse>(GetParam().text), {.metric_name = "depth"})
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Inputs, BadAnswerTest,
    testing::ValuesIn<Case>({
        {"NaN", R"(values { name: "depth" value: nan })",
         "metric \"depth\": want a finite number, got NaN"},
        {"Infinity", R"(values { name: "depth" value: inf })", "got +Inf"},
        {"MinusInfinity", R"(values { name: "depth" value: -inf })", "got -Inf"},
        {"Nothing", "active: true", "metric \"depth\": want a value, got none"},
        {"OtherMetric", R"(values { name: "width" value: 1 })",
         "metric \"depth\": want its values only, got one of \"width\""},
    }),
    CaseName);

class BadSpecsTest : public testing::TestWithParam<Case> {};

TEST_P(BadSpecsTest, IsInternalAndSaysWhatCame) {
  const absl::Status status =
      CheckSpecs(Parse<scaler::v1::GetMetricSpecForScalingResponse>(GetParam().text)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Inputs, BadSpecsTest,
    testing::ValuesIn<Case>({
        {"None", "", "want at least one metric spec, got none"},
        {"NoName", "specs { target: 5 }", "want a name, got none"},
        {"ZeroTarget", R"(specs { name: "depth" })", "want a finite target > 0, got 0"},
        {"NaNTarget", R"(specs { name: "depth" target: nan })", "got NaN"},
        {"Twice", R"(specs { name: "a" target: 1 } specs { name: "a" target: 2 })",
         "\"a\": want each name once, got it twice"},
    }),
    CaseName);

class BadDescriptionTest : public testing::TestWithParam<Case> {};

TEST_P(BadDescriptionTest, IsInternalAndSaysWhatCame) {
  const absl::Status status =
      CheckDescription(Parse<scaler::v1::DescribeResponse>(GetParam().text));
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Inputs, BadDescriptionTest,
    testing::ValuesIn<Case>({
        {"OtherRevisions", "revisions: 2 revisions: 3", "want contract revision 1, got 2, 3"},
        {"TypeWithoutName", "trigger_types { open: true }", "trigger type: want a name, got none"},
        {"TypeTwice", R"(trigger_types { name: "a" } trigger_types { name: "a" })",
         "trigger type \"a\": want each name once"},
        {"ParameterWithoutName", R"(trigger_types { name: "a" parameters {} })",
         "trigger type \"a\": parameter: want a name, got none"},
        {"AliasIsAName",
         R"(trigger_types { name: "a" parameters { name: "x" } parameters { name: "y" aliases: "x" } })",
         "parameter alias \"x\": want each name once"},
    }),
    CaseName);

TEST(CheckDescriptionTest, TakesRevisionOneAndPluginsThatNameNone) {
  EXPECT_TRUE(CheckDescription(Parse<scaler::v1::DescribeResponse>("revisions: [2, 1]")).ok());
  EXPECT_TRUE(CheckDescription({}).ok());
}

TEST(EntryStatusTest, KeepsCodeMessageAndRetryAfter) {
  const absl::Status status = EntryStatus(Parse<scaler::v1::EntryError>(
      R"(code: 14 message: "10.0.0.1:6379: refused" retry_after { seconds: 7 })"));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(), "10.0.0.1:6379: refused");
  EXPECT_EQ(RetryAfter(status), absl::Seconds(7));
  EXPECT_EQ(RetryAfter(EntryStatus(Parse<scaler::v1::EntryError>("code: 14"))), std::nullopt);
}

TEST(EntryStatusTest, AnErrorThatSaysOkIsOneAllTheSame) {
  EXPECT_EQ(EntryStatus({}).code(), absl::StatusCode::kInternal);
}

TEST(EntryStatusTest, CutsLongMessages) {
  scaler::v1::EntryError error;
  error.set_code(13);
  error.set_message(std::string(100'000, 'x'));
  EXPECT_LT(EntryStatus(error).message().size(), 4200);
}

// google.rpc.Status { details: Any { type_url, RetryInfo { retry_delay: 7.5 s } } }, by hand.
std::string Field(int number, const std::string& text) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(text.size())} + text;
}

TEST(RetryInfoDelayTest, IsReadFromTheDetailsOfAnError) {
  const std::string duration("\x08\x07\x10\x80\xca\xb5\xee\x01", 8);  // 7 s, 500,000,000 ns
  const auto details = [&](const std::string& type, const std::string& value) {
    return std::string("\x08\x0e", 2) + Field(2, "slow down") +
           Field(3, Field(1, "type.googleapis.com/" + type) + Field(2, value));
  };
  EXPECT_EQ(RetryInfoDelay(details("google.rpc.RetryInfo", Field(1, duration))),
            absl::Milliseconds(7500));
  EXPECT_EQ(RetryInfoDelay(details("google.rpc.RetryInfo", Field(1, "\x08\x78"))),
            absl::Seconds(30));
  EXPECT_EQ(RetryInfoDelay(details("google.rpc.ErrorInfo", Field(1, duration))), std::nullopt);
  EXPECT_EQ(RetryInfoDelay("garbage"), std::nullopt);
  EXPECT_EQ(RetryInfoDelay(""), std::nullopt);
}

}  // namespace
}  // namespace outrigger::host
