// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <boost/json/object.hpp>
#include <boost/json/value_from.hpp>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>

namespace outrigger::host {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// Where lines go. Implementations are thread-safe.
class LogSink {
 public:
  virtual ~LogSink() = default;
  virtual bool Enabled(LogLevel level) const = 0;
  // `fields` are in order; the sink adds time and level.
  virtual void Write(LogLevel level, absl::string_view message,
                     const boost::json::object& fields) = 0;
};

// One line per entry on stderr. format "json" (default) or "text"; level "debug", "info",
// "warning", "error". INVALID_ARGUMENT names the flag, what was wanted and what came.
struct LogOptions {
  std::string level = "info";
  std::string format = "json";
};
absl::StatusOr<std::shared_ptr<LogSink>> MakeStderrSink(const LogOptions& options);
// Drops everything; for tests.
std::shared_ptr<LogSink> MakeNullSink();

// A logger carries fields (`object`, `reconcileID`, …) that appear on each of its lines. Cheap to
// copy. An error is logged once, where it stops; on the way up only context is added. Secrets never
// go in: see redact.h and secret.h.
class Logger {
 public:
  struct Field {
    template <typename Value>
    Field(absl::string_view name, const Value& content)
        : key(name), value(boost::json::value_from(content)) {}
    Field(absl::string_view name, absl::string_view content)
        : key(name), value(boost::json::string_view(content.data(), content.size())) {}
    Field(absl::string_view name, const char* content) : Field(name, absl::string_view(content)) {}
    Field(absl::string_view name, const std::string& content)
        : Field(name, absl::string_view(content)) {}

    absl::string_view key;
    boost::json::value value;
  };
  using Fields = std::initializer_list<Field>;

  explicit Logger(std::shared_ptr<LogSink> sink) : sink_(std::move(sink)) {}

  Logger With(Fields fields) const;
  void Debug(absl::string_view message, Fields fields = {}) const {
    Log(LogLevel::kDebug, message, fields);
  }
  void Info(absl::string_view message, Fields fields = {}) const {
    Log(LogLevel::kInfo, message, fields);
  }
  void Warning(absl::string_view message, Fields fields = {}) const {
    Log(LogLevel::kWarning, message, fields);
  }
  void Error(absl::string_view message, Fields fields = {}) const {
    Log(LogLevel::kError, message, fields);
  }

 private:
  void Log(LogLevel level, absl::string_view message, Fields fields) const;

  std::shared_ptr<LogSink> sink_;
  boost::json::object fields_;
};

}  // namespace outrigger::host
