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

// The sum of what the metrics API answers for one external metric of the HPA.
struct ExternalReading {
  std::string metric_name;  // with prefix
  double value = 0;
};

// By how much a metric may differ from its target before the HPA moves: 10 %, or what `behavior`
// says.
struct HpaTolerance {
  double up = 0.1;
  double down = 0.1;
};

// The replicas that one external metric asks for by the HPA's rule: the current ones within the
// tolerance, else ceil(value / target) for AverageValue and ceil(current * value / target) for
// Value (where the HPA counts ready pods; in a steady state they are the current ones). Nothing
// when the target is not positive. Source: k8s.io/kubernetes/pkg/controller/podautoscaler/
// replica_calculator.go.
std::optional<int32_t> WantedByMetric(const api::HpaMetricTarget& target, double value,
                                      int32_t current_replicas, const HpaTolerance& tolerance);

// The largest wish of all external metrics, clamped to min and max of the HPA. Nothing unless every
// external metric has a reading: a half known truth is no ground for a complaint.
std::optional<int32_t> WantedReplicas(const api::HorizontalPodAutoscaler& hpa,
                                      const std::vector<ExternalReading>& readings);

// Watches one HPA for disagreement with the scalers' values (requirement R31): desiredReplicas
// stays below what they ask for, or above it beyond the scale-down window, where `behavior` does
// not explain it, for two HPA syncs.
//
// Explained is: a side that `behavior` disables; the time of its stabilisation window and of its
// longest policy period; a count that still moves towards the wanted one; above, any cpu or memory
// metric, whose wish we do not know. Nothing is judged unless ScalingActive is True. A missing
// reading keeps the state and starts the wait anew.
//
// Fed on each change of the HPA's status and after each poll. One object's strand only. Never
// blocks.
class HpaAgreement {
 public:
  struct Options {
    absl::Duration hpa_sync_period = absl::Seconds(15);
  };
  enum class State { kUnknown, kInSync, kDisagrees };
  struct Verdict {
    State state = State::kUnknown;
    bool changed = false;  // against the verdict before
    // Of a disagreement, as it was when it began, so that it does not change with every poll:
    // "HPA web wants 1 replicas, but s0-redis-orders asks for 5 (min 1, max 10)".
    std::string message;
    // When to look again though nothing changed: at this moment a pending disagreement becomes one.
    std::optional<host::SteadyTime> recheck_at;
  };

  HpaAgreement() : HpaAgreement(Options{}) {}
  explicit HpaAgreement(Options options) : options_(options) {}

  Verdict Observe(const api::HorizontalPodAutoscaler& hpa,
                  const std::vector<ExternalReading>& readings, host::SteadyTime now);

 private:
  enum class Side { kNone, kBelow, kAbove };
  Verdict Report(State state, std::optional<host::SteadyTime> recheck_at);

  Options options_;
  State state_ = State::kUnknown;
  Side side_ = Side::kNone;       // where desiredReplicas was at the last look
  int32_t desired_replicas_ = 0;  // at the last look
  host::SteadyTime since_;  // when it came to that side, or last moved towards the wanted count
  std::string message_;
};

}  // namespace outrigger::controller::scaling
