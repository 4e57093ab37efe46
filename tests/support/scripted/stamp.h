// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/time/time.h>

namespace outrigger::tests {

// A moment as the value of a metric (Behaviour.stamped), and back, to less than a microsecond. Near
// 2 for all of this century: below the target of 5 that a scripted trigger has, so that nothing is
// scaled to thousands by it.
inline double StampOf(absl::Time time) {
  return absl::ToDoubleSeconds(time - absl::UnixEpoch()) * 1e-9;
}
inline absl::Time TimeOfStamp(double stamp) {
  return absl::UnixEpoch() + absl::Seconds(stamp * 1e9);
}

}  // namespace outrigger::tests
