// SPDX-License-Identifier: Apache-2.0
#include "operator/scaling/fallback.h"

#include <absl/numeric/int128.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <limits>

namespace outrigger::controller::scaling {
namespace {

int64_t Saturate(absl::int128 value) {
  return value > std::numeric_limits<int64_t>::max() ? std::numeric_limits<int64_t>::max()
                                                     : static_cast<int64_t>(value);
}

}  // namespace

bool FallbackConfigured(const api::ScaledObjectSpec& spec) {
  return spec.fallback.has_value() && spec.fallback->failure_threshold >= 0 &&
         spec.fallback->replicas >= 0;
}

int32_t FallbackThreshold(const api::Fallback& fallback) {
  return std::max(1, fallback.failure_threshold);
}

bool FallsBack(const api::ScaledObjectSpec& spec, int32_t failed_cycles) {
  return FallbackConfigured(spec) && failed_cycles >= FallbackThreshold(*spec.fallback);
}

absl::StatusOr<api::Quantity> FallbackValue(const api::Fallback& fallback,
                                            api::MetricTargetType type, double target,
                                            std::optional<int32_t> ready_pods) {
  if (!fallback.behavior.empty() && fallback.behavior != "static") {
    return absl::FailedPreconditionError(absl::StrCat("spec.fallback.behavior: want static, got ",
                                                      fallback.behavior, " (not supported yet)"));
  }
  // The target as the HPA has it, in thousandths: integer arithmetic then truncates where KEDA
  // does.
  absl::int128 milli = api::Quantity::FromDouble(target).AsMilli();
  milli *= fallback.replicas;
  if (type == api::MetricTargetType::kValue) {
    if (ready_pods.value_or(0) <= 0) {
      return absl::FailedPreconditionError(
          "fallback of a metric of type Value: want at least one ready pod to divide by, got none");
    }
    milli /= *ready_pods;
  }
  return api::Quantity::FromMilli(Saturate(milli));
}

}  // namespace outrigger::controller::scaling
