// SPDX-License-Identifier: Apache-2.0
#include "host/client/backoff.h"

#include <algorithm>

namespace outrigger::host {

absl::Duration Backoff::Next() {
  const absl::Duration delay = random_.Jitter(next_);
  next_ = std::min(next_ * 2, options_.longest);
  return delay;
}

}  // namespace outrigger::host
