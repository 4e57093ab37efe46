// SPDX-License-Identifier: Apache-2.0
// Any text is refused or selects the same as its canonical form.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "operator/api/label_selector.h"

namespace {

using outrigger::controller::api::Labels;
using outrigger::controller::api::LabelSelector;
using outrigger::controller::api::ParseEqualitySelector;

void Require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  if (const absl::StatusOr<LabelSelector> selector = LabelSelector::Parse(text); selector.ok()) {
    const absl::StatusOr<LabelSelector> again = LabelSelector::Parse(selector->Print());
    Require(again.ok() && again->requirements() == selector->requirements());
    const Labels labels = {{"a", "b"}, {"app", "web"}, {"replicas", "5"}};
    Require(again->Matches(labels) == selector->Matches(labels));
  }
  if (const absl::StatusOr<Labels> labels = ParseEqualitySelector(text); labels.ok()) {
    const LabelSelector selector = LabelSelector::FromLabels(*labels);
    Require(selector.Matches(*labels));
    Require(LabelSelector::Parse(selector.Print()).ok());
  }
  return 0;
}
