// SPDX-License-Identifier: Apache-2.0
#include "operator/api/quantity.h"

#include <absl/strings/escaping.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <optional>
#include <utility>

namespace outrigger::controller::api {
namespace {

constexpr int64_t kNano = -9;
constexpr int kMaxInt64Digits = 19;
constexpr absl::string_view kMaxInt64Text = "9223372036854775807";

struct DecimalSuffix {
  absl::string_view text;
  int32_t exponent;
};
constexpr DecimalSuffix kDecimalSuffixes[] = {{"n", -9}, {"u", -6}, {"m", -3}, {"", 0},
                                              {"k", 3},  {"M", 6},  {"G", 9},  {"T", 12},
                                              {"P", 15}, {"E", 18}};
constexpr absl::string_view kBinarySuffixes[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// The pieces of "[+-]digits[.digits]suffix". Any of them may be empty: Go takes "+", "." and "k"
// for 0.
struct Pieces {
  bool negative = false;
  absl::string_view whole;     // without leading zeros
  absl::string_view fraction;  // as written
  absl::string_view suffix;
  bool has_digit = false;
};

absl::string_view TakeDigits(absl::string_view& text) {
  const size_t count = std::find_if_not(text.begin(), text.end(), IsDigit) - text.begin();
  const absl::string_view digits = text.substr(0, count);
  text.remove_prefix(count);
  return digits;
}

// Letters, then a sign, then digits, and nothing else; which of them mean something is decided
// later.
bool IsSuffixShaped(absl::string_view text) {
  const size_t letters = std::min(text.find_first_not_of("eEinumkKMGTP"), text.size());
  text.remove_prefix(letters);
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) text.remove_prefix(1);
  return std::all_of(text.begin(), text.end(), IsDigit);
}

std::optional<Pieces> Split(absl::string_view text) {
  Pieces pieces;
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) {
    pieces.negative = text[0] == '-';
    text.remove_prefix(1);
  }
  pieces.whole = TakeDigits(text);
  if (!text.empty() && text[0] == '.') {
    text.remove_prefix(1);
    pieces.fraction = TakeDigits(text);
  }
  pieces.has_digit = !pieces.whole.empty() || !pieces.fraction.empty();
  pieces.whole.remove_prefix(std::min(pieces.whole.find_first_not_of('0'), pieces.whole.size()));
  pieces.suffix = text;
  if (!IsSuffixShaped(text)) return std::nullopt;
  return pieces;
}

// e5, E-3, e+12. Go reads 64 bits and keeps the lower 32 of them.
std::optional<int32_t> ParseExponent(absl::string_view suffix) {
  if (suffix.size() < 2 || (suffix[0] != 'e' && suffix[0] != 'E')) return std::nullopt;
  absl::string_view digits = suffix.substr(1);
  if (digits[0] == '+') digits.remove_prefix(1);
  int64_t exponent = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return static_cast<int32_t>(exponent);
}

std::optional<int32_t> DecimalExponentOf(absl::string_view suffix) {
  for (const DecimalSuffix& known : kDecimalSuffixes) {
    if (suffix == known.text) return known.exponent;
  }
  return std::nullopt;
}

std::optional<int> ThousandsOf1024(absl::string_view suffix) {
  for (size_t i = 1; i < std::size(kBinarySuffixes); ++i) {
    if (suffix == kBinarySuffixes[i]) return static_cast<int>(i);
  }
  return std::nullopt;
}

// A text without a digit ("", "+", "k", "Ti") is 0 on Go's fast path and an error on its slow one.
// These are its borders: an exponent below nano, and a binary suffix of more than about 14 digits.
bool GoTakesNoDigitsForZero(std::optional<int> power_of_1024, int32_t exponent) {
  constexpr int kLargestFastPower = 4;  // Ti
  return power_of_1024.has_value() ? *power_of_1024 <= kLargestFastPower : exponent >= kNano;
}

std::string TimesTo1024(std::string digits, int power) {
  for (; power > 0; --power) {
    int carry = 0;
    for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit) {
      const int product = (*digit - '0') * 1024 + carry;
      *digit = static_cast<char>('0' + product % 10);
      carry = product / 10;
    }
    if (carry > 0) digits.insert(0, std::to_string(carry));
  }
  return digits;
}

// Adds one to a number of at least one digit.
std::string PlusOne(std::string digits) {
  for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit) {
    if (*digit != '9') {
      ++*digit;
      return digits;
    }
    *digit = '0';
  }
  return "1" + digits;
}

// digits * 10^exponent as an integer, rounded up; nothing beyond int64.
std::optional<int64_t> ToInt64RoundedUp(const std::string& digits, int64_t exponent) {
  if (digits.empty()) return 0;
  if (static_cast<int64_t>(digits.size()) + exponent > kMaxInt64Digits) return std::nullopt;
  std::string whole = digits;
  if (exponent >= 0) {
    whole.append(static_cast<size_t>(exponent), '0');
  } else {
    // The last digit is not 0, so what is cut off is not 0 either: up by one.
    const size_t cut = std::min(whole.size(), static_cast<size_t>(-exponent));
    whole.resize(whole.size() - cut);
    whole = whole.empty() ? "1" : PlusOne(std::move(whole));
  }
  int64_t value = 0;
  const auto [end, error] = std::from_chars(whole.data(), whole.data() + whole.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

absl::Status NotAQuantity(absl::string_view text, absl::string_view wanted) {
  constexpr size_t kLongestQuote = 64;
  return absl::InvalidArgumentError(absl::StrCat("quantity: want ", wanted, ", got \"",
                                                 absl::CHexEscape(text.substr(0, kLongestQuote)),
                                                 text.size() > kLongestQuote ? "…\"" : "\""));
}

}  // namespace

Quantity Quantity::FromDigits(bool negative, std::string digits, int64_t exponent, Format format) {
  Quantity quantity;
  quantity.format_ = format;
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
  if (digits.empty()) return quantity;
  const size_t last = digits.find_last_not_of('0');
  quantity.exponent_ = exponent + static_cast<int64_t>(digits.size() - 1 - last);
  digits.resize(last + 1);
  quantity.digits_ = std::move(digits);
  quantity.negative_ = negative;
  return quantity;
}

void Quantity::RoundUpToNano() {
  if (digits_.empty() || exponent_ >= kNano) return;
  const size_t cut = std::min(digits_.size(), static_cast<size_t>(kNano - exponent_));
  std::string kept = digits_.substr(0, digits_.size() - cut);
  *this = FromDigits(negative_, kept.empty() ? "1" : PlusOne(std::move(kept)), kNano, format_);
}

absl::StatusOr<Quantity> Quantity::Parse(absl::string_view text) {
  constexpr absl::string_view kForm =
      "a number with an optional suffix (n u m k M G T P E, Ki Mi Gi Ti Pi Ei, e<int>)";
  if (text.empty()) return NotAQuantity(text, kForm);
  const std::optional<Pieces> pieces = Split(text);
  if (!pieces.has_value()) return NotAQuantity(text, kForm);

  Format format = Format::kDecimalSi;
  std::optional<int32_t> exponent = DecimalExponentOf(pieces->suffix);
  const std::optional<int> power_of_1024 = ThousandsOf1024(pieces->suffix);
  if (power_of_1024.has_value()) {
    format = Format::kBinarySi;
    exponent = 0;
  } else if (!exponent.has_value()) {
    format = Format::kDecimalExponent;
    exponent = ParseExponent(pieces->suffix);
  }
  if (!exponent.has_value()) return NotAQuantity(text, "a known suffix");
  if (!pieces->has_digit && !GoTakesNoDigitsForZero(power_of_1024, *exponent)) {
    return NotAQuantity(text, "a digit before the suffix");
  }

  std::string digits =
      TimesTo1024(absl::StrCat(pieces->whole, pieces->fraction), power_of_1024.value_or(0));
  Quantity quantity =
      FromDigits(pieces->negative, std::move(digits),
                 int64_t{*exponent} - static_cast<int64_t>(pieces->fraction.size()), format);
  quantity.RoundUpToNano();
  // Such an exponent would not be read back as it is printed; Go lets it wrap around.
  if (quantity.exponent_ > std::numeric_limits<int32_t>::max()) {
    return NotAQuantity(text, "an exponent of 32 bits");
  }
  if (format == Format::kBinarySi) {
    const Quantity limit = FromDigits(quantity.negative_, std::string(kMaxInt64Text), 0, format);
    if (quantity.negative_ ? quantity < limit : quantity > limit) quantity = limit;
  }
  return quantity;
}

Quantity Quantity::FromInt(int64_t value) {
  std::string digits = absl::StrCat(value);
  if (value < 0) digits.erase(0, 1);
  return FromDigits(value < 0, std::move(digits), 0, Format::kDecimalSi);
}

Quantity Quantity::FromMilli(int64_t milli) {
  Quantity quantity = FromInt(milli);
  if (!quantity.IsZero()) quantity.exponent_ -= 3;
  return quantity;
}

Quantity Quantity::FromDouble(double value) {
  if (!std::isfinite(value)) return Quantity();
  // printf works on the exact binary value and rounds half to even, as Go's %.3f does.
  std::array<char, 400> text;  // the largest double has 309 digits before the point
  const int length = std::snprintf(text.data(), text.size(), "%.3f", std::fabs(value));
  std::string digits(text.data(), static_cast<size_t>(length));
  digits.erase(digits.find('.'), 1);
  return FromDigits(std::signbit(value), std::move(digits), -3, Format::kDecimalSi);
}

absl::StatusOr<Quantity> Quantity::FromMetricValue(double value) {
  if (!std::isfinite(value)) {
    return absl::InternalError(absl::StrCat("metric value: want a finite number, got ", value));
  }
  if (value <= 0) return Quantity();
  const Quantity largest = FromMilli(std::numeric_limits<int64_t>::max());
  return std::min(FromDouble(value), largest);
}

std::string Quantity::DecimalText() const {
  // The exponent becomes a multiple of 3, downwards.
  const int64_t zeros = ((exponent_ % 3) + 3) % 3;
  const int64_t exponent = exponent_ - zeros;
  std::string text =
      absl::StrCat(negative_ ? "-" : "", digits_, std::string(static_cast<size_t>(zeros), '0'));
  if (format_ != Format::kDecimalExponent) {
    for (const DecimalSuffix& suffix : kDecimalSuffixes) {
      if (suffix.exponent == exponent) return absl::StrCat(text, suffix.text);
    }
  }
  return exponent == 0 ? text : absl::StrCat(text, "e", exponent);
}

std::string Quantity::ToString() const {
  if (IsZero()) return "0";
  if (format_ != Format::kBinarySi || exponent_ < 0) return DecimalText();
  std::optional<int64_t> whole = ToInt64RoundedUp(digits_, exponent_);
  if (!whole.has_value() || *whole < 1024) return DecimalText();
  size_t power = 0;
  for (; *whole % 1024 == 0; ++power) *whole /= 1024;
  return absl::StrCat(negative_ ? "-" : "", *whole, kBinarySuffixes[power]);
}

double Quantity::AsDouble() const {
  const std::string text =
      absl::StrCat(negative_ ? "-" : "", IsZero() ? "0" : digits_, "e", exponent_);
  return std::strtod(text.c_str(), nullptr);
}

int64_t Quantity::AsMilli() const {
  const int64_t magnitude =
      ToInt64RoundedUp(digits_, exponent_ + 3).value_or(std::numeric_limits<int64_t>::max());
  return negative_ ? -magnitude : magnitude;
}

std::strong_ordering operator<=>(const Quantity& a, const Quantity& b) {
  const auto sign = [](const Quantity& q) { return q.IsZero() ? 0 : q.negative_ ? -1 : 1; };
  if (sign(a) != sign(b)) return sign(a) <=> sign(b);
  const auto magnitude = [](const Quantity& q) {
    return static_cast<int64_t>(q.digits_.size()) + q.exponent_;
  };
  std::strong_ordering order = magnitude(a) <=> magnitude(b);
  // Same magnitude: the first digits have the same place, and a shorter number has zeros after it.
  if (order == 0) order = a.digits_.compare(b.digits_) <=> 0;
  return a.negative_ ? 0 <=> order : order;
}

}  // namespace outrigger::controller::api
