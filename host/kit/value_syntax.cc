// SPDX-License-Identifier: Apache-2.0
#include "host/kit/value_syntax.h"

#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <cmath>

namespace outrigger::host::kit {
namespace {

// Removes the digits at the front of `text` and tells how many there were.
size_t TakeDigits(absl::string_view& text) {
  size_t count = 0;
  while (count < text.size() && absl::ascii_isdigit(text[count])) ++count;
  text.remove_prefix(count);
  return count;
}

// -?(0|[1-9][0-9]*)
bool TakeJsonInteger(absl::string_view& text) {
  if (!text.empty() && text[0] == '-') text.remove_prefix(1);
  const bool zero = !text.empty() && text[0] == '0';
  const size_t digits = TakeDigits(text);
  return digits == 1 || (digits > 1 && !zero);
}

// (\.[0-9]+)?
bool TakeJsonFraction(absl::string_view& text) {
  if (text.empty() || text[0] != '.') return true;
  text.remove_prefix(1);
  return TakeDigits(text) > 0;
}

// ([eE][+-]?[0-9]+)?
bool TakeJsonExponent(absl::string_view& text) {
  if (text.empty() || (text[0] != 'e' && text[0] != 'E')) return true;
  text.remove_prefix(1);
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) text.remove_prefix(1);
  return TakeDigits(text) > 0;
}

}  // namespace

std::optional<int64_t> ParseInteger(absl::string_view text) {
  absl::string_view rest = text;
  int64_t value = 0;
  if (!TakeJsonInteger(rest) || !rest.empty()) return std::nullopt;
  if (!absl::SimpleAtoi(text, &value)) return std::nullopt;  // out of range
  return value;
}

std::optional<double> ParseNumber(absl::string_view text) {
  absl::string_view rest = text;
  double value = 0;
  if (!TakeJsonInteger(rest) || !TakeJsonFraction(rest) || !TakeJsonExponent(rest)) {
    return std::nullopt;
  }
  if (!rest.empty() || !absl::SimpleAtod(text, &value) || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

std::optional<bool> ParseBoolean(absl::string_view text) {
  constexpr absl::string_view kTrue[] = {"1", "t", "T", "TRUE", "true", "True"};
  constexpr absl::string_view kFalse[] = {"0", "f", "F", "FALSE", "false", "False"};
  if (std::find(std::begin(kTrue), std::end(kTrue), text) != std::end(kTrue)) return true;
  if (std::find(std::begin(kFalse), std::end(kFalse), text) != std::end(kFalse)) return false;
  return std::nullopt;
}

std::optional<absl::Duration> ParseDuration(absl::string_view text) {
  absl::Duration value;
  if (std::optional<int64_t> milliseconds = ParseInteger(text)) {
    value = absl::Milliseconds(*milliseconds);
  } else if (!absl::ParseDuration(text, &value)) {
    return std::nullopt;
  }
  if (value < absl::ZeroDuration() || value == absl::InfiniteDuration()) return std::nullopt;
  return value;
}

std::vector<std::string> SplitList(absl::string_view text) {
  std::vector<std::string> items;
  for (absl::string_view item : absl::StrSplit(text, ',')) {
    items.emplace_back(absl::StripAsciiWhitespace(item));
  }
  return items;
}

}  // namespace outrigger::host::kit
