// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/time/time.h>

#include <cstdint>

namespace outrigger::host {

// All randomness of the operator comes through this: jitter of backoffs and of first polls.
// Injected, so that a seed replays a run. Not for keys (see secret.h). Not thread-safe: one per
// strand.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  // splitmix64: small, fast, good enough for jitter.
  uint64_t Next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15ULL);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }
  // In [0, 1).
  double Fraction() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }
  // Between 50 % and 100 % of d, so that no jittered backoff exceeds its cap.
  absl::Duration Jitter(absl::Duration d) { return d * (0.5 + 0.5 * Fraction()); }

 private:
  uint64_t state_;
};

}  // namespace outrigger::host
