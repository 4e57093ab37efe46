// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <compare>
#include <cstdint>
#include <string>

namespace outrigger::controller::api {

// A number in the text form that Kubernetes calls a quantity: "5", "500m", "1Gi", "1e3". Exact:
// decimal digits with a power of ten, as many as were written, down to the nano (smaller parts
// round away from zero, as in Go).
//
// Accepts and refuses the same texts as Go's resource.ParseQuantity, prints the same canonical
// text, and is checked against it on generated cases (tests/operator/api/quantity_oracle). One
// difference: where Go has no suffix for a decimal SI exponent (1000E) it prints the digits alone,
// a wrong number; we print "1e21". Compared by value only: "1k" == "1000". A value type, not
// synchronised. Source: k8s.io/apimachinery/pkg/api/resource/quantity.go, spec/scaledobject.md
// section 11.
class Quantity {
 public:
  Quantity() = default;  // 0

  // INVALID_ARGUMENT with the text and what was wanted.
  static absl::StatusOr<Quantity> Parse(absl::string_view text);

  static Quantity FromInt(int64_t value);
  static Quantity FromMilli(int64_t milli);

  // Rounds the exact binary value to 3 decimals, ties to even: 2.0005 (a little more in binary) is
  // 2001m, 1.0005 (a little less) is 1. Never overflows: 1e300 is its 301 digits. `value` must be
  // finite; NaN and infinity give 0, so refuse them before.
  static Quantity FromDouble(double value);

  // What the metrics API answers for a value of a scaler. NaN and infinity: INTERNAL, never a
  // number. Negative: 0 (the caller warns). Above 2^63-1 milli (about 9.2e15): that limit, for the
  // HPA controller reads int64 milli and takes what does not fit as 0.
  static absl::StatusOr<Quantity> FromMetricValue(double value);

  // Canonical text.
  std::string ToString() const;

  // The nearest double; infinity beyond its range.
  double AsDouble() const;

  // In thousandths, rounded away from zero, saturating at the limits of int64.
  int64_t AsMilli() const;

  bool IsZero() const { return digits_.empty(); }
  bool IsNegative() const { return negative_; }

  friend bool operator==(const Quantity& a, const Quantity& b) { return (a <=> b) == 0; }
  friend std::strong_ordering operator<=>(const Quantity& a, const Quantity& b);

 private:
  enum class Format { kDecimalSi, kDecimalExponent, kBinarySi };

  // value = (negative_ ? -1 : 1) * digits_ * 10^exponent_. digits_ has neither leading nor trailing
  // zeros; empty is 0.
  static Quantity FromDigits(bool negative, std::string digits, int64_t exponent, Format format);
  void RoundUpToNano();
  std::string DecimalText() const;

  std::string digits_;
  int64_t exponent_ = 0;
  bool negative_ = false;
  Format format_ = Format::kDecimalSi;  // how it was written, so how it is printed
};

}  // namespace outrigger::controller::api
