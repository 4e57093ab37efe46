// SPDX-License-Identifier: Apache-2.0
#include "operator/local/hpa_algorithm.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace outrigger::controller::local {
namespace {

using Recommendation = HpaHistory::Recommendation;
using ScaleEvent = HpaHistory::ScaleEvent;
using Policy = HpaScalingRules::Policy;
using Select = HpaScalingRules::Select;

constexpr int32_t kMaxInt32 = std::numeric_limits<int32_t>::max();
constexpr int64_t kMaxInt64 = std::numeric_limits<int64_t>::max();

int32_t ToInt32(double value) {
  if (std::isnan(value)) return 0;
  constexpr double kMin = std::numeric_limits<int32_t>::min();
  return static_cast<int32_t>(std::clamp(value, kMin, static_cast<double>(kMaxInt32)));
}

int64_t ToInt64(double value) {
  if (std::isnan(value)) return 0;
  if (value >= static_cast<double>(kMaxInt64)) return kMaxInt64;
  return static_cast<int64_t>(value);
}

int64_t SaturatedSum(const std::vector<int64_t>& values) {
  int64_t sum = 0;
  for (int64_t value : values) {
    if (value > 0 && sum > kMaxInt64 - value) return kMaxInt64;
    sum += value;
  }
  return sum;
}

// Replaces the last sample that is too old to matter, as upstream does, or appends: the list grows
// no longer than the windows need.
template <typename Sample, typename IsOld>
void Remember(std::vector<Sample>& samples, Sample sample, IsOld is_old) {
  const auto old = std::find_if(samples.rbegin(), samples.rend(), is_old);
  if (old == samples.rend()) {
    samples.push_back(sample);
  } else {
    *old = sample;
  }
}

// Without behavior: the highest recommendation of the window.
int32_t StabilizeDown(absl::Duration window, int32_t wish, host::SteadyTime now,
                      HpaHistory& history) {
  const host::SteadyTime cutoff = now - window;
  int32_t highest = wish;
  for (const Recommendation& earlier : history.recommendations) {
    if (earlier.at >= cutoff) highest = std::max(highest, earlier.replicas);
  }
  Remember(history.recommendations, {wish, now},
           [&](const Recommendation& earlier) { return earlier.at < cutoff; });
  return highest;
}

// With behavior: between the lowest of the window for scaling up and the highest of the one for
// scaling down.
int32_t Stabilize(const HpaBehavior& behavior, int32_t current, int32_t wish, host::SteadyTime now,
                  HpaHistory& history) {
  const host::SteadyTime up_cutoff = now - behavior.scale_up.stabilization_window;
  const host::SteadyTime down_cutoff = now - behavior.scale_down.stabilization_window;
  int32_t up = wish;
  int32_t down = wish;
  for (const Recommendation& earlier : history.recommendations) {
    if (earlier.at > up_cutoff) up = std::min(up, earlier.replicas);
    if (earlier.at > down_cutoff) down = std::max(down, earlier.replicas);
  }
  Remember(history.recommendations, {wish, now}, [&](const Recommendation& earlier) {
    return earlier.at < up_cutoff && earlier.at < down_cutoff;
  });
  return std::min(std::max(current, up), down);
}

int32_t ChangeWithin(absl::Duration period, const std::vector<ScaleEvent>& events,
                     host::SteadyTime now) {
  int32_t change = 0;
  for (const ScaleEvent& event : events) {
    if (event.at > now - period) change += event.change;
  }
  return change;
}

int32_t AtPeriodStart(const Policy& policy, int32_t current, host::SteadyTime now,
                      const HpaHistory& history) {
  return current - ChangeWithin(policy.period, history.scale_ups, now) +
         ChangeWithin(policy.period, history.scale_downs, now);
}

int32_t UpLimit(const HpaScalingRules& rules, int32_t current, host::SteadyTime now,
                const HpaHistory& history) {
  if (rules.select == Select::kDisabled) return current;
  const bool least = rules.select == Select::kMin;
  int32_t limit = least ? kMaxInt32 : std::numeric_limits<int32_t>::min();
  for (const Policy& policy : rules.policies) {
    const int32_t start = AtPeriodStart(policy, current, now, history);
    // Rounded up, or a small percentage of few replicas would never add one.
    const int32_t proposed = policy.type == Policy::Type::kPods
                                 ? ToInt32(static_cast<double>(start) + policy.value)
                                 : ToInt32(std::ceil(start * (1 + policy.value / 100.0)));
    limit = least ? std::min(limit, proposed) : std::max(limit, proposed);
  }
  return std::max(limit, current);
}

int32_t DownLimit(const HpaScalingRules& rules, int32_t current, host::SteadyTime now,
                  const HpaHistory& history) {
  if (rules.select == Select::kDisabled) return current;
  const bool least = rules.select == Select::kMin;
  int32_t limit = least ? std::numeric_limits<int32_t>::min() : kMaxInt32;
  for (const Policy& policy : rules.policies) {
    const int32_t start = AtPeriodStart(policy, current, now, history);
    const int32_t proposed = policy.type == Policy::Type::kPods
                                 ? ToInt32(static_cast<double>(start) - policy.value)
                                 : ToInt32(start * (1 - policy.value / 100.0));
    limit = least ? std::max(limit, proposed) : std::min(limit, proposed);
  }
  return std::min(limit, current);
}

struct Limited {
  int32_t replicas = 0;
  const char* reason = "";
  const char* message = "";
};

constexpr char kTooFast[] =
    "the desired replica count is increasing faster than the maximum scale rate";
constexpr char kTooSlow[] =
    "the desired replica count is decreasing faster than the maximum scale rate";
constexpr char kTooMany[] = "the desired replica count is more than the maximum replica count";
constexpr char kTooFew[] = "the desired replica count is less than the minimum replica count";

Limited WithinRange(int32_t replicas) {
  return {replicas, "DesiredWithinRange", "the desired count is within the acceptable range"};
}

// At most twice as many, at least 4, whatever the metrics say.
Limited LimitWithoutBehavior(const HpaLimits& limits, int32_t current, int32_t wish) {
  const int32_t rate_limit = ToInt32(std::max(2.0 * current, 4.0));
  if (wish < limits.min_replicas) return {limits.min_replicas, "TooFewReplicas", kTooFew};
  if (limits.max_replicas > rate_limit) {
    if (wish > rate_limit) return {rate_limit, "ScaleUpLimit", kTooFast};
  } else if (wish > limits.max_replicas) {
    return {limits.max_replicas, "TooManyReplicas", kTooMany};
  }
  return WithinRange(wish);
}

Limited LimitWithBehavior(const HpaLimits& limits, int32_t current, int32_t wish,
                          host::SteadyTime now, const HpaHistory& history) {
  if (wish > current) {
    const int32_t rate_limit = UpLimit(limits.behavior->scale_up, current, now, history);
    if (limits.max_replicas > rate_limit) {
      if (wish > rate_limit) return {rate_limit, "ScaleUpLimit", kTooFast};
    } else if (wish > limits.max_replicas) {
      return {limits.max_replicas, "TooManyReplicas", kTooMany};
    }
  } else if (wish < current) {
    const int32_t rate_limit = DownLimit(limits.behavior->scale_down, current, now, history);
    if (limits.min_replicas < rate_limit) {
      if (wish < rate_limit) return {rate_limit, "ScaleDownLimit", kTooSlow};
    } else if (wish < limits.min_replicas) {
      return {limits.min_replicas, "TooFewReplicas", kTooFew};
    }
  }
  return WithinRange(wish);
}

HpaVerdict Stabilized(bool upwards) {
  if (upwards) {
    return {true, "ScaleUpStabilized",
            "recent recommendations were lower than current one, applying the lowest recent "
            "recommendation"};
  }
  return {true, "ScaleDownStabilized",
          "recent recommendations were higher than current one, applying the highest recent "
          "recommendation"};
}

}  // namespace

MetricWish ExternalPerPodWish(int32_t status_replicas, int64_t target_milli,
                              const std::vector<int64_t>& values_milli, HpaTolerances tolerances) {
  const double usage = static_cast<double>(SaturatedSum(values_milli));
  const double target = static_cast<double>(target_milli);
  MetricWish wish{.replicas = status_replicas};
  if (!tolerances.IsWithin(usage / (target * status_replicas))) {
    wish.replicas = ToInt32(std::ceil(usage / target));
  }
  wish.usage_milli = ToInt64(std::ceil(usage / status_replicas));
  return wish;
}

MetricWish ExternalValueWish(int32_t spec_replicas, int32_t ready_pods, int64_t target_milli,
                             const std::vector<int64_t>& values_milli, HpaTolerances tolerances) {
  MetricWish wish{.replicas = spec_replicas, .usage_milli = SaturatedSum(values_milli)};
  const double ratio = static_cast<double>(wish.usage_milli) / static_cast<double>(target_milli);
  if (spec_replicas == 0) {
    wish.replicas = ToInt32(std::ceil(ratio));
  } else if (!tolerances.IsWithin(ratio)) {
    wish.replicas = ToInt32(std::ceil(ratio * ready_pods));
  }
  return wish;
}

NormalizedReplicas NormalizeReplicas(const HpaLimits& limits, int32_t current, int32_t wish,
                                     host::SteadyTime now, HpaHistory& history) {
  const bool with_behavior = limits.behavior.has_value();
  const int32_t stabilized = with_behavior
                                 ? Stabilize(*limits.behavior, current, wish, now, history)
                                 : StabilizeDown(limits.down_window, wish, now, history);
  const Limited limited = with_behavior
                              ? LimitWithBehavior(limits, current, stabilized, now, history)
                              : LimitWithoutBehavior(limits, current, stabilized);
  NormalizedReplicas result{.replicas = limited.replicas};
  result.able_to_scale = stabilized == wish ? HpaVerdict{true, "ReadyForNewScale",
                                                         "recommended size matches current size"}
                                            : Stabilized(with_behavior && wish >= current);
  result.scaling_limited = {limited.replicas != stabilized, limited.reason, limited.message};
  return result;
}

void StoreScaleEvent(const HpaLimits& limits, int32_t before, int32_t after, host::SteadyTime now,
                     HpaHistory& history) {
  if (!limits.behavior.has_value()) return;
  const bool up = after > before;
  const HpaScalingRules& rules = up ? limits.behavior->scale_up : limits.behavior->scale_down;
  const host::SteadyTime cutoff = now - rules.LongestPeriod();
  Remember(up ? history.scale_ups : history.scale_downs, ScaleEvent{std::abs(after - before), now},
           [&](const ScaleEvent& event) { return event.at < cutoff; });
}

}  // namespace outrigger::controller::local
