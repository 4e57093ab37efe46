// SPDX-License-Identifier: Apache-2.0
// Any text is refused or has a canonical form that means the same; any double has one, too.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "operator/api/quantity.h"

namespace {

using outrigger::controller::api::Quantity;

void Require(bool holds) {
  if (!holds) std::abort();
}

void CheckText(absl::string_view text) {
  const absl::StatusOr<Quantity> quantity = Quantity::Parse(text);
  if (!quantity.ok()) return Require(!quantity.status().message().empty());
  const std::string canonical = quantity->ToString();
  const absl::StatusOr<Quantity> again = Quantity::Parse(canonical);
  Require(again.ok() && *again == *quantity && again->ToString() == canonical);
  Require((quantity->AsMilli() < 0) == quantity->IsNegative());
  Require(quantity->IsZero() == (canonical == "0"));
}

void CheckDouble(double value) {
  const absl::StatusOr<Quantity> quantity = Quantity::FromMetricValue(value);
  Require(quantity.ok() == std::isfinite(value));
  if (!quantity.ok()) return;
  Require(!quantity->IsNegative());
  Require(value < 0.001 || !quantity->IsZero());
  CheckText(quantity->ToString());
  CheckText(Quantity::FromDouble(value).ToString());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  CheckText(absl::string_view(reinterpret_cast<const char*>(data), size));
  double value = 0;
  if (size >= sizeof(value)) {
    std::memcpy(&value, data, sizeof(value));
    CheckDouble(value);
  }
  return 0;
}
