// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/strings/string_view.h>

#include <cstdint>
#include <optional>
#include <string>

namespace outrigger::controller::scaling {

// The external metric name of a trigger's metric: "s<index>-<name>", index being the trigger's
// place in spec.triggers (cpu and memory count too). `name` is used verbatim: the plugin has
// replaced what cannot stand there.
std::string ExternalMetricName(int32_t trigger_index, absl::string_view name);

struct IndexedMetricName {
  int32_t trigger_index = 0;
  std::string name;  // without the prefix
};

// The parts of "s<index>-<name>"; nothing when `text` has another form. The 's' may be of either
// case.
std::optional<IndexedMetricName> ParseExternalMetricName(absl::string_view text);

// Metric names are compared without regard to (ASCII) case: a path of the metrics API may come in
// any.
bool SameMetricName(absl::string_view a, absl::string_view b);

}  // namespace outrigger::controller::scaling
