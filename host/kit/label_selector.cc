// SPDX-License-Identifier: Apache-2.0
#include "host/kit/label_selector.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>

#include <algorithm>

#include "host/base/status.h"
#include "host/kit/parameter.h"
#include "host/kit/value_syntax.h"

namespace outrigger::host::kit {
namespace {

bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.' || c == '/';
}

bool IsName(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), IsNameCharacter);
}

bool IsValue(absl::string_view text) { return text.empty() || IsName(text); }

// Splits at the commas that stand outside parentheses.
std::vector<absl::string_view> SplitRequirements(absl::string_view text) {
  std::vector<absl::string_view> parts;
  size_t start = 0;
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')') --depth;
    if (text[i] != ',' || depth > 0) continue;
    parts.push_back(text.substr(start, i - start));
    start = i + 1;
  }
  parts.push_back(text.substr(start));
  return parts;
}

absl::string_view TakeName(absl::string_view& text) {
  size_t size = 0;
  while (size < text.size() && IsNameCharacter(text[size])) ++size;
  const absl::string_view name = text.substr(0, size);
  text = absl::StripLeadingAsciiWhitespace(text.substr(size));
  return name;
}

}  // namespace

absl::StatusOr<LabelSelector::Requirement> LabelSelector::ParseRequirement(
    absl::string_view whole) {
  absl::Status bad = absl::InvalidArgumentError(absl::StrCat(
      "selector: want a, !a, a=b, a!=b, a in (b,c) or a notin (b,c), got ", Quoted(whole)));
  absl::string_view text = absl::StripAsciiWhitespace(whole);
  Requirement requirement;
  const bool absent = absl::ConsumePrefix(&text, "!");
  text = absl::StripLeadingAsciiWhitespace(text);
  requirement.key = std::string(TakeName(text));
  if (requirement.key.empty()) return bad;
  if (text.empty()) {
    requirement.op = absent ? Operator::kAbsent : Operator::kExists;
    return requirement;
  }
  if (absent) return bad;
  if (absl::ConsumePrefix(&text, "!=")) {
    requirement.op = Operator::kNotIn;
  } else if (absl::ConsumePrefix(&text, "==") || absl::ConsumePrefix(&text, "=")) {
    requirement.op = Operator::kIn;
  } else {
    const absl::string_view word = TakeName(text);
    if (word != "in" && word != "notin") return bad;
    if (!absl::ConsumePrefix(&text, "(") || !absl::ConsumeSuffix(&text, ")")) return bad;
    requirement.op = word == "in" ? Operator::kIn : Operator::kNotIn;
    requirement.values = SplitList(text);
  }
  if (requirement.values.empty()) {
    requirement.values.emplace_back(absl::StripAsciiWhitespace(text));
  }
  if (!std::all_of(requirement.values.begin(), requirement.values.end(), IsValue)) return bad;
  return requirement;
}

absl::StatusOr<LabelSelector> LabelSelector::Parse(absl::string_view text) {
  LabelSelector selector;
  if (absl::StripAsciiWhitespace(text).empty()) return selector;
  for (absl::string_view part : SplitRequirements(text)) {
    ASSIGN_OR_RETURN(Requirement requirement, ParseRequirement(part));
    selector.requirements_.push_back(std::move(requirement));
  }
  return selector;
}

bool LabelSelector::Matches(const google::protobuf::Map<std::string, std::string>& labels) const {
  const auto holds = [&](const Requirement& requirement) {
    const auto it = labels.find(requirement.key);
    const bool present = it != labels.end();
    const bool listed = present && std::find(requirement.values.begin(), requirement.values.end(),
                                             it->second) != requirement.values.end();
    switch (requirement.op) {
      case Operator::kExists:
        return present;
      case Operator::kAbsent:
        return !present;
      case Operator::kIn:
        return listed;
      case Operator::kNotIn:
        return !listed;
    }
    return false;
  };
  return std::all_of(requirements_.begin(), requirements_.end(), holds);
}

}  // namespace outrigger::host::kit
