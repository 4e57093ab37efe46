// SPDX-License-Identifier: Apache-2.0
#include "operator/api/label_selector.h"

#include <absl/strings/ascii.h>
#include <absl/strings/escaping.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>
#include <absl/strings/strip.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "host/base/status.h"

namespace outrigger::controller::api {
namespace {

using Operator = LabelSelector::Operator;
using Requirement = LabelSelector::Requirement;

constexpr size_t kLongestName = 63;
constexpr size_t kLongestPrefix = 253;

std::string Quote(absl::string_view text) {
  constexpr size_t kLongestQuote = 100;
  return absl::StrCat("\"", absl::CHexEscape(text.substr(0, kLongestQuote)),
                      text.size() > kLongestQuote ? "…\"" : "\"");
}

// [A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?
bool IsNameShaped(absl::string_view text) {
  if (text.empty() || !absl::ascii_isalnum(text.front()) || !absl::ascii_isalnum(text.back()))
    return false;
  return std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
  });
}

// A DNS-1123 label: lower case letters, digits and inner dashes.
bool IsDnsLabel(absl::string_view text) {
  if (text.empty() || text.front() == '-' || text.back() == '-') return false;
  return std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-';
  });
}

bool IsDnsSubdomain(absl::string_view text) {
  if (text.size() > kLongestPrefix) return false;
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '.');
  return std::all_of(parts.begin(), parts.end(), IsDnsLabel);
}

absl::Status CheckKey(absl::string_view key) {
  absl::string_view name = key;
  if (const size_t slash = key.find('/'); slash != absl::string_view::npos) {
    if (!IsDnsSubdomain(key.substr(0, slash))) {
      return absl::InvalidArgumentError(absl::StrCat(
          "label selector: want a DNS subdomain before the '/' of a key, got ", Quote(key)));
    }
    name = key.substr(slash + 1);
  }
  if (name.size() <= kLongestName && IsNameShaped(name)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("label selector: want a key of 1 to 63 letters, digits, '-', '_', '.', "
                   "alphanumeric at both ends, got ",
                   Quote(key)));
}

absl::Status CheckValue(absl::string_view key, absl::string_view value) {
  const std::string fault = LabelValueFault(value);
  if (fault.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("label selector: ", key, ": ", fault));
}

enum class TokenKind { kEnd, kWord, kSymbol };
struct Token {
  TokenKind kind = TokenKind::kEnd;
  absl::string_view text;  // empty at the end
};

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
bool IsSymbol(char c) { return absl::string_view("=!(),><").find(c) != absl::string_view::npos; }

class Lexer {
 public:
  explicit Lexer(absl::string_view text) : rest_(text) {}

  Token Next() {
    while (!rest_.empty() && IsSpace(rest_[0])) rest_.remove_prefix(1);
    if (rest_.empty()) return {};
    if (!IsSymbol(rest_[0])) {
      const auto end = std::find_if(rest_.begin(), rest_.end(),
                                    [](char c) { return IsSpace(c) || IsSymbol(c); });
      return Take(TokenKind::kWord, static_cast<size_t>(end - rest_.begin()));
    }
    const absl::string_view two = rest_.substr(0, 2);
    return Take(TokenKind::kSymbol, two == "==" || two == "!=" ? 2 : 1);
  }

 private:
  Token Take(TokenKind kind, size_t size) {
    const Token token{kind, rest_.substr(0, size)};
    rest_.remove_prefix(size);
    return token;
  }

  absl::string_view rest_;
};

std::optional<Operator> BinaryOperator(const Token& token) {
  if (token.kind == TokenKind::kWord) {
    if (token.text == "in") return Operator::kIn;
    if (token.text == "notin") return Operator::kNotIn;
    return std::nullopt;
  }
  if (token.text == "=") return Operator::kEquals;
  if (token.text == "==") return Operator::kDoubleEquals;
  if (token.text == "!=") return Operator::kNotEquals;
  if (token.text == ">") return Operator::kGreaterThan;
  if (token.text == "<") return Operator::kLessThan;
  return std::nullopt;
}

bool IsSet(Operator op) { return op == Operator::kIn || op == Operator::kNotIn; }
bool IsOrder(Operator op) { return op == Operator::kGreaterThan || op == Operator::kLessThan; }

// Recursive descent over requirement {"," requirement}. The words "in" and "notin" are operators
// only where an operator stands; elsewhere they are keys and values.
class Parser {
 public:
  explicit Parser(absl::string_view text) : lexer_(text) { Advance(); }

  absl::StatusOr<std::vector<Requirement>> Run() {
    std::vector<Requirement> requirements;
    if (AtEnd()) return requirements;
    while (true) {
      ASSIGN_OR_RETURN(Requirement requirement, ParseRequirement());
      requirements.push_back(std::move(requirement));
      if (AtEnd()) return requirements;
      if (!At(",")) return Unexpected("',' or the end");
      Advance();
    }
  }

 private:
  bool AtEnd() const { return token_.kind == TokenKind::kEnd; }
  bool AtWord() const { return token_.kind == TokenKind::kWord; }
  bool At(absl::string_view symbol) const {
    return token_.kind == TokenKind::kSymbol && token_.text == symbol;
  }
  void Advance() { token_ = lexer_.Next(); }

  absl::Status Unexpected(absl::string_view wanted) const {
    return absl::InvalidArgumentError(absl::StrCat("label selector: want ", wanted, ", got ",
                                                   AtEnd() ? "the end" : Quote(token_.text)));
  }

  absl::StatusOr<Requirement> ParseRequirement() {
    Requirement requirement;
    const bool negated = At("!");
    if (negated) Advance();
    if (!AtWord()) return Unexpected("a key");
    requirement.key = std::string(token_.text);
    RETURN_IF_ERROR(CheckKey(requirement.key));
    Advance();
    if (negated || AtEnd() || At(",")) {
      requirement.op = negated ? Operator::kDoesNotExist : Operator::kExists;
      return requirement;
    }
    const std::optional<Operator> op = BinaryOperator(token_);
    if (!op.has_value()) return Unexpected("one of = == != > < in notin");
    requirement.op = *op;
    Advance();
    RETURN_IF_ERROR(IsSet(*op) ? ParseValues(requirement) : ParseValue(requirement));
    for (const std::string& value : requirement.values)
      RETURN_IF_ERROR(CheckValue(requirement.key, value));
    return requirement;
  }

  absl::Status ParseValue(Requirement& requirement) {
    if (AtWord()) {
      requirement.values.emplace_back(token_.text);
      Advance();
    } else if (AtEnd() || At(",")) {
      requirement.values.emplace_back();
    } else {
      return Unexpected("a value");
    }
    int64_t number = 0;
    if (IsOrder(requirement.op) && !absl::SimpleAtoi(requirement.values[0], &number)) {
      return absl::InvalidArgumentError(absl::StrCat("label selector: ", requirement.key,
                                                     ": want an integer after > or <, got ",
                                                     Quote(requirement.values[0])));
    }
    return absl::OkStatus();
  }

  // "(a,b,)": an omitted value is the empty one.
  absl::Status ParseValues(Requirement& requirement) {
    if (!At("(")) return Unexpected("'('");
    Advance();
    std::vector<std::string>& values = requirement.values;
    while (true) {
      values.emplace_back(AtWord() ? token_.text : absl::string_view());
      if (AtWord()) Advance();
      if (At(")")) break;
      if (!At(",")) return Unexpected("',' or ')'");
      Advance();
    }
    Advance();
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    return absl::OkStatus();
  }

  Lexer lexer_;
  Token token_;
};

std::string PrintRequirement(const Requirement& requirement) {
  const std::string values = absl::StrJoin(requirement.values, ",");
  switch (requirement.op) {
    case Operator::kEquals:
      return absl::StrCat(requirement.key, "=", values);
    case Operator::kDoubleEquals:
      return absl::StrCat(requirement.key, "==", values);
    case Operator::kNotEquals:
      return absl::StrCat(requirement.key, "!=", values);
    case Operator::kIn:
      return absl::StrCat(requirement.key, " in (", values, ")");
    case Operator::kNotIn:
      return absl::StrCat(requirement.key, " notin (", values, ")");
    case Operator::kExists:
      return requirement.key;
    case Operator::kDoesNotExist:
      return absl::StrCat("!", requirement.key);
    case Operator::kGreaterThan:
      return absl::StrCat(requirement.key, ">", values);
    case Operator::kLessThan:
      return absl::StrCat(requirement.key, "<", values);
  }
  return "";
}

bool InOrder(Operator op, absl::string_view label, absl::string_view limit) {
  int64_t have = 0;
  int64_t want = 0;
  if (!absl::SimpleAtoi(label, &have) || !absl::SimpleAtoi(limit, &want)) return false;
  return op == Operator::kGreaterThan ? have > want : have < want;
}

}  // namespace

std::string LabelValueFault(absl::string_view value) {
  if (value.empty()) return "";
  if (value.size() > kLongestName) {
    return absl::StrCat("want a label value of at most ", kLongestName, " characters, got ",
                        value.size());
  }
  if (IsNameShaped(value)) return "";
  return absl::StrCat(
      "want a label value of letters, digits, '-', '_', '.', alphanumeric at both ends, got ",
      Quote(value));
}

bool LabelSelector::Requirement::Matches(const Labels& labels) const {
  const auto label = labels.find(key);
  const bool exists = label != labels.end();
  const auto has_value = [&] {
    return std::find(values.begin(), values.end(), label->second) != values.end();
  };
  switch (op) {
    case Operator::kEquals:
    case Operator::kDoubleEquals:
    case Operator::kIn:
      return exists && has_value();
    case Operator::kNotEquals:
    case Operator::kNotIn:
      return !exists || !has_value();
    case Operator::kExists:
      return exists;
    case Operator::kDoesNotExist:
      return !exists;
    case Operator::kGreaterThan:
    case Operator::kLessThan:
      return exists && !values.empty() && InOrder(op, label->second, values[0]);
  }
  return false;
}

absl::StatusOr<LabelSelector> LabelSelector::Parse(absl::string_view text) {
  LabelSelector selector;
  ASSIGN_OR_RETURN(selector.requirements_, Parser(text).Run());
  std::sort(selector.requirements_.begin(), selector.requirements_.end(),
            [](const Requirement& a, const Requirement& b) {
              return std::tie(a.key, a.op, a.values) < std::tie(b.key, b.op, b.values);
            });
  return selector;
}

LabelSelector LabelSelector::FromLabels(const Labels& labels) {
  LabelSelector selector;
  for (const auto& [key, value] : labels) {
    selector.requirements_.push_back({.key = key, .op = Operator::kEquals, .values = {value}});
  }
  return selector;
}

bool LabelSelector::Matches(const Labels& labels) const {
  return std::all_of(requirements_.begin(), requirements_.end(),
                     [&](const Requirement& requirement) { return requirement.Matches(labels); });
}

std::string LabelSelector::Print() const {
  return absl::StrJoin(requirements_, ",", [](std::string* out, const Requirement& requirement) {
    absl::StrAppend(out, PrintRequirement(requirement));
  });
}

absl::StatusOr<Labels> ParseEqualitySelector(absl::string_view text) {
  Labels labels;
  if (text.empty()) return labels;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    const std::vector<absl::string_view> sides = absl::StrSplit(part, '=');
    if (sides.size() != 2) {
      return absl::InvalidArgumentError(
          absl::StrCat("label selector: want key=value pairs with ',' between, got ", Quote(part)));
    }
    const absl::string_view key = absl::StripAsciiWhitespace(sides[0]);
    const absl::string_view value = absl::StripAsciiWhitespace(sides[1]);
    RETURN_IF_ERROR(CheckKey(key));
    RETURN_IF_ERROR(CheckValue(key, value));
    labels[std::string(key)] = std::string(value);
  }
  return labels;
}

}  // namespace outrigger::controller::api
