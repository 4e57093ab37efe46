// SPDX-License-Identifier: Apache-2.0
#include "host/base/deadline.h"

#include <algorithm>

namespace outrigger::host {

absl::Duration Deadline::Remaining(const Clock& clock) const {
  return std::max(absl::ZeroDuration(), at_ - clock.SteadyNow());
}

Deadline Deadline::Within(const Clock& clock, absl::Duration d) const {
  return Min(After(clock, d));
}

}  // namespace outrigger::host
