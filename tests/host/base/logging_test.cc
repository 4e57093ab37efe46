// SPDX-License-Identifier: Apache-2.0
#include "host/base/logging.h"

#include <absl/time/time.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <memory>
#include <string>

namespace outrigger::host {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

// What `write` prints on stderr through a logger with these options.
template <typename Write>
std::string Printed(const LogOptions& options, Write write) {
  testing::internal::CaptureStderr();
  const absl::StatusOr<std::shared_ptr<LogSink>> sink = MakeStderrSink(options);
  if (sink.ok()) write(Logger(*sink));
  EXPECT_TRUE(sink.ok()) << sink.status();
  return testing::internal::GetCapturedStderr();
}

TEST(LoggingTest, AnEntryIsOneJsonLineWithTimeLevelMessageAndFieldsInOrder) {
  const std::string text = Printed({}, [](const Logger& logger) {
    logger.With({{"object", "shop/orders"}}).Warning("polled", {{"replicas", 5}, {"ok", true}});
  });
  EXPECT_THAT(text, StartsWith(R"({"ts":")"));
  EXPECT_THAT(
      text,
      EndsWith(
          R"(Z","level":"warning","msg":"polled","object":"shop/orders","replicas":5,"ok":true})"
          "\n"));
  const boost::json::value line = boost::json::parse(text);
  absl::Time time;
  std::string error;
  EXPECT_TRUE(absl::ParseTime(absl::RFC3339_full, line.at("ts").as_string().c_str(), &time, &error))
      << error;
}

TEST(LoggingTest, ALineBreakInAMessageOrFieldStaysInItsLine) {
  for (const char* format : {"json", "text"}) {
    const std::string text = Printed({.format = format}, [](const Logger& logger) {
      logger.Info("first\nsecond", {{"answer", "a\r\nb"}});
    });
    EXPECT_EQ(text.find('\n'), text.size() - 1) << text;
    EXPECT_THAT(text, HasSubstr(R"(first\nsecond)"));
  }
}

TEST(LoggingTest, AFieldNeverTakesThePlaceOfTheMessage) {
  const std::string text =
      Printed({}, [](const Logger& logger) { logger.Info("real", {{"msg", "forged"}}); });
  EXPECT_EQ(boost::json::parse(text).at("msg"), "real");
}

TEST(LoggingTest, FieldsOfOneEntryOverrideThoseOfTheLogger) {
  const std::string text = Printed({}, [](const Logger& logger) {
    logger.With({{"attempt", 1}}).Info("again", {{"attempt", 2}});
  });
  EXPECT_EQ(boost::json::parse(text).at("attempt"), 2);
}

TEST(LoggingTest, BelowItsLevelNothingIsPrinted) {
  const std::string text = Printed({.level = "warning"}, [](const Logger& logger) {
    logger.Debug("debug");
    logger.Info("info");
    logger.Warning("warning");
    logger.Error("error");
  });
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << text;
  EXPECT_THAT(text, testing::Not(HasSubstr("info")));
}

TEST(LoggingTest, TextIsForPeople) {
  const std::string text = Printed({.format = "text"}, [](const Logger& logger) {
    logger.Error("no answer", {{"plugin", "redis"}});
  });
  EXPECT_THAT(text, EndsWith("Z ERROR no answer plugin=\"redis\"\n"));
}

TEST(LoggingTest, AWrongFlagIsNamedWithWhatWasWantedAndWhatCame) {
  EXPECT_EQ(
      MakeStderrSink({.level = "loud"}).status(),
      absl::InvalidArgumentError(R"(--log-level: want debug, info, warning or error, got "loud")"));
  EXPECT_EQ(MakeStderrSink({.format = "xml"}).status(),
            absl::InvalidArgumentError(R"(--log-format: want json or text, got "xml")"));
}

}  // namespace
}  // namespace outrigger::host
