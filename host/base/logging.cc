// SPDX-License-Identifier: Apache-2.0
#include "host/base/logging.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_replace.h>
#include <absl/time/clock.h>
#include <absl/time/time.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <boost/json/serialize.hpp>

namespace outrigger::host {
namespace {

constexpr absl::string_view kNames[] = {"debug", "info", "warning", "error"};

absl::string_view View(boost::json::string_view text) { return {text.data(), text.size()}; }

class StderrSink : public LogSink {
 public:
  StderrSink(LogLevel level, bool json)
      : level_(level),
        json_(json),
        logger_("outrigger", std::make_shared<spdlog::sinks::stderr_sink_mt>()) {
    logger_.set_pattern("%v");
    logger_.set_level(spdlog::level::trace);
    logger_.flush_on(spdlog::level::trace);
  }

  bool Enabled(LogLevel level) const override { return level >= level_; }

  void Write(LogLevel level, absl::string_view message,
             const boost::json::object& fields) override {
    const std::string time =
        absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::Now(), absl::UTCTimeZone());
    const absl::string_view name = kNames[static_cast<int>(level)];
    const std::string line =
        json_ ? JsonLine(time, name, message, fields) : TextLine(time, name, message, fields);
    logger_.info("{}", line);
  }

 private:
  static std::string JsonLine(absl::string_view time, absl::string_view level,
                              absl::string_view message, const boost::json::object& fields) {
    boost::json::object line;
    line["ts"] = std::string_view(time.data(), time.size());
    line["level"] = std::string_view(level.data(), level.size());
    line["msg"] = std::string_view(message.data(), message.size());
    // insert, not assign: a field never takes the place of time, level or message.
    line.insert(fields.begin(), fields.end());
    return boost::json::serialize(line);
  }

  static std::string TextLine(absl::string_view time, absl::string_view level,
                              absl::string_view message, const boost::json::object& fields) {
    std::string line = absl::StrCat(time, " ", absl::AsciiStrToUpper(level), " ",
                                    absl::StrReplaceAll(message, {{"\n", "\\n"}, {"\r", "\\r"}}));
    for (const auto& [key, value] : fields)
      absl::StrAppend(&line, " ", View(key), "=", boost::json::serialize(value));
    return line;
  }

  const LogLevel level_;
  const bool json_;
  spdlog::logger logger_;
};

class NullSink : public LogSink {
 public:
  bool Enabled(LogLevel) const override { return false; }
  void Write(LogLevel, absl::string_view, const boost::json::object&) override {}
};

}  // namespace

absl::StatusOr<std::shared_ptr<LogSink>> MakeStderrSink(const LogOptions& options) {
  if (options.format != "json" && options.format != "text") {
    return absl::InvalidArgumentError(
        absl::StrCat("--log-format: want json or text, got \"", options.format, "\""));
  }
  for (int i = 0; i < 4; ++i) {
    if (options.level == kNames[i]) {
      return std::make_shared<StderrSink>(static_cast<LogLevel>(i), options.format == "json");
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--log-level: want debug, info, warning or error, got \"", options.level, "\""));
}

std::shared_ptr<LogSink> MakeNullSink() { return std::make_shared<NullSink>(); }

Logger Logger::With(Fields fields) const {
  Logger copy = *this;
  for (const auto& [key, value] : fields)
    copy.fields_[boost::json::string_view(key.data(), key.size())] = value;
  return copy;
}

void Logger::Log(LogLevel level, absl::string_view message, Fields fields) const {
  if (!sink_->Enabled(level)) return;
  boost::json::object all = fields_;
  for (const auto& [key, value] : fields)
    all[boost::json::string_view(key.data(), key.size())] = value;
  sink_->Write(level, message, all);
}

}  // namespace outrigger::host
