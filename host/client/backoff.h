// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/time/time.h>

#include "host/base/clock.h"
#include "host/base/random.h"

namespace outrigger::host {

// How long to wait before the next dial of a plugin: 0.1 s doubling to 10 s, each cut by jitter to
// between half and all of itself, and from the start again after a minute of good connection. Pure.
// Source: design.md section 1, rule 6.
class Backoff {
 public:
  struct Options {
    absl::Duration first = absl::Milliseconds(100);
    absl::Duration longest = absl::Seconds(10);
    absl::Duration good = absl::Minutes(1);
  };
  Backoff(Options options, uint64_t seed) : options_(options), random_(seed) {}

  absl::Duration Next();
  // A connection that lasted `lasted` is over.
  void ConnectionEnded(absl::Duration lasted) {
    if (lasted >= options_.good) Reset();
  }
  void Reset() { next_ = options_.first; }

 private:
  const Options options_;
  Random random_;
  absl::Duration next_ = options_.first;
};

}  // namespace outrigger::host
