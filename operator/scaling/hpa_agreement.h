// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/time/time.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "host/base/clock.h"
#include "operator/api/hpa.h"

namespace outrigger::controller::scaling {

inline constexpr double kHpaTolerance = 0.1;

// The sum of what the metrics API answers for one external metric of the HPA.
struct ExternalReading {
  std::string metric_name;  // with prefix
  double value = 0;
};

// The replicas that one external metric asks for by the HPA's rule: unchanged within 10 % of the
// target, else ceil(value / target) for AverageValue and ceil(current * value / target) for Value.
// Nothing when the target is not positive.
std::optional<int32_t> WantedByMetric(const api::HpaMetricTarget& target, double value,
                                      int32_t current_replicas);

// The largest wish of all external metrics, clamped to min and max of the HPA. Nothing unless every
// external metric has a reading: a half known truth is no ground for a complaint.
std::optional<int32_t> WantedReplicas(const api::HorizontalPodAutoscaler& hpa,
                                      const std::vector<ExternalReading>& readings);

// Watches one HPA for disagreement with the scalers' values (requirement R31): desiredReplicas
// stays below what they ask for, or above it beyond the scale-down window, where `behavior` does
// not explain it, for two HPA syncs.
//
// Fed on each change of the HPA's status and after each poll; remembers since when. One object's
// strand only. Never blocks.
class HpaAgreement {
 public:
  struct Options {
    absl::Duration hpa_sync_period = absl::Seconds(15);
  };
  enum class State { kUnknown, kInSync, kDisagrees };
  struct Verdict {
    State state = State::kUnknown;
    bool changed = false;  // against the verdict before
    std::string
        message;  // "HPA wants 1 replicas, s0-redis-orders=23 asks for 5 (min 1, max 10) since 30s"
    // When to look again though nothing changed: the moment at which a pending disagreement becomes
    // one.
    std::optional<host::SteadyTime> recheck_at;
  };

  explicit HpaAgreement(Options options) : options_(options) {}

  Verdict Observe(const api::HorizontalPodAutoscaler& hpa,
                  const std::vector<ExternalReading>& readings, host::SteadyTime now);

 private:
  enum class Side { kNone, kBelow, kAbove };
  Side Compare(const api::HorizontalPodAutoscaler& hpa, std::optional<int32_t> wanted) const;
  absl::Duration Patience(const api::HorizontalPodAutoscaler& hpa, Side side) const;

  const Options options_;
  State state_ = State::kUnknown;
  Side side_ = Side::kNone;
  host::SteadyTime since_;
};

}  // namespace outrigger::controller::scaling
