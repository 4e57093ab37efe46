// SPDX-License-Identifier: Apache-2.0
#include "operator/scaling/metric_name.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <algorithm>

namespace outrigger::controller::scaling {

std::string ExternalMetricName(int32_t trigger_index, absl::string_view name) {
  return absl::StrCat("s", trigger_index, "-", name);
}

std::optional<IndexedMetricName> ParseExternalMetricName(absl::string_view text) {
  const size_t dash = text.find('-');
  if (dash == absl::string_view::npos || dash < 2 || absl::ascii_tolower(text[0]) != 's')
    return std::nullopt;
  const absl::string_view digits = text.substr(1, dash - 1);
  IndexedMetricName parsed;
  if (!std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit) ||
      !absl::SimpleAtoi(digits, &parsed.trigger_index)) {
    return std::nullopt;
  }
  if (digits.size() > 1 && digits[0] == '0') return std::nullopt;  // "s01-x" is nobody's
  parsed.name = std::string(text.substr(dash + 1));
  return parsed;
}

bool SameMetricName(absl::string_view a, absl::string_view b) {
  return absl::EqualsIgnoreCase(a, b);
}

}  // namespace outrigger::controller::scaling
