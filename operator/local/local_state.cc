// SPDX-License-Identifier: Apache-2.0
#include "operator/local/local_state.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>

#include <algorithm>

namespace outrigger::controller::local {

std::string WithoutSelector(const std::string& message) {
  const size_t begin = message.find("(&LabelSelector{");
  if (begin == std::string::npos) return message;
  const size_t end = message.find("})", begin);
  if (end == std::string::npos) return message;
  return absl::StrCat(message.substr(0, begin), message.substr(end + 2));
}

std::string WithoutNumbers(const std::string& text) {
  std::string masked = text;
  std::replace_if(masked.begin(), masked.end(), [](char c) { return absl::ascii_isdigit(c); }, '#');
  return masked;
}

}  // namespace outrigger::controller::local
