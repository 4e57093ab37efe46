// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/time/time.h>

#include "host/base/clock.h"

namespace outrigger::host {

// The moment at which a wait must have ended. Last parameter of whatever waits; a child gets no
// more than its parent has left. Retries spend the same budget.
class Deadline {
 public:
  static Deadline After(const Clock& clock, absl::Duration d) {
    return Deadline(clock.SteadyNow() + d);
  }
  static Deadline At(SteadyTime t) { return Deadline(t); }
  static Deadline Never() { return Deadline(SteadyTime::InfiniteFuture()); }

  SteadyTime time() const { return at_; }
  bool Expired(const Clock& clock) const { return clock.SteadyNow() >= at_; }
  // Never negative.
  absl::Duration Remaining(const Clock& clock) const;
  // The sooner of this one and `d` from now.
  Deadline Within(const Clock& clock, absl::Duration d) const;
  Deadline Min(Deadline other) const { return other.at_ < at_ ? other : *this; }

 private:
  explicit Deadline(SteadyTime at) : at_(at) {}
  SteadyTime at_;
};

}  // namespace outrigger::host
