// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/time/time.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "host/base/clock.h"
#include "operator/local/hpa_behavior.h"

// What the HorizontalPodAutoscaler controller of Kubernetes computes, without its I/O: from metrics
// to a wish, from the wish to the replicas that windows, policies and limits allow. Pure; time is a
// parameter. Metric values and targets are int64 thousandths, as there. One difference: where Go's
// conversion of a float that does not fit an int32 or int64 gives the lowest number, these give the
// nearest. Source: k8s.io/kubernetes v1.36 pkg/controller/podautoscaler/{horizontal,
// replica_calculator}.go.
namespace outrigger::controller::local {

// How far the ratio of value to target may be from 1 without a change.
struct HpaTolerances {
  double scale_down = 0.1;
  double scale_up = 0.1;
  bool IsWithin(double ratio) const { return 1.0 - scale_down <= ratio && ratio <= 1.0 + scale_up; }
};

// What one metric asks for, and what status.currentMetrics says of it.
struct MetricWish {
  int32_t replicas = 0;
  int64_t usage_milli = 0;  // AverageValue: per pod
};

// Target type AverageValue: ceil(sum / target), unchanged within the tolerance. `status_replicas`
// are the target's status.replicas.
MetricWish ExternalPerPodWish(int32_t status_replicas, int64_t target_milli,
                              const std::vector<int64_t>& values_milli, HpaTolerances tolerances);

// Target type Value: ceil(sum / target * ready pods), unchanged within the tolerance; from 0
// replicas ceil(sum / target). `spec_replicas` are the target's spec.replicas.
MetricWish ExternalValueWish(int32_t spec_replicas, int32_t ready_pods, int64_t target_milli,
                             const std::vector<int64_t>& values_milli, HpaTolerances tolerances);

// What the controller remembers of one HPA between syncs, lost at a restart as in Kubernetes.
struct HpaHistory {
  struct Recommendation {
    int32_t replicas = 0;
    host::SteadyTime at;
  };
  struct ScaleEvent {
    int32_t change = 0;  // not negative
    host::SteadyTime at;
  };
  std::vector<Recommendation> recommendations;  // before stabilisation
  std::vector<ScaleEvent> scale_ups;
  std::vector<ScaleEvent> scale_downs;
};

struct HpaLimits {
  int32_t min_replicas = 1;
  int32_t max_replicas = 1;
  // Absent when spec.behavior is: then only the general limit (twice as many, at least 4) and the
  // window for scaling down hold.
  std::optional<HpaBehavior> behavior;
  absl::Duration down_window = absl::Minutes(5);
};

// One condition's status, reason and message.
struct HpaVerdict {
  bool value = false;
  std::string reason;
  std::string message;
};

struct NormalizedReplicas {
  int32_t replicas = 0;
  HpaVerdict able_to_scale;  // ReadyForNewScale, ScaleUpStabilized, ScaleDownStabilized
  HpaVerdict
      scaling_limited;  // DesiredWithinRange, TooFewReplicas, TooManyReplicas, ScaleUpLimit, …
};

// Puts the wish through stabilisation windows, policies, min and max, and remembers it.
NormalizedReplicas NormalizeReplicas(const HpaLimits& limits, int32_t current, int32_t wish,
                                     host::SteadyTime now, HpaHistory& history);

// Remembers that the target was scaled, for the policies. Nothing without behavior.
void StoreScaleEvent(const HpaLimits& limits, int32_t before, int32_t after, host::SteadyTime now,
                     HpaHistory& history);

}  // namespace outrigger::controller::local
