// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>

#include "operator/api/hpa.h"
#include "operator/api/quantity.h"
#include "operator/api/scaled_object.h"

namespace outrigger::controller::scaling {

// Failed poll cycles in a row that make a trigger unhealthy, whatever its fallback says.
inline constexpr int32_t kUnhealthyFailures = 3;

// True when spec.fallback is there with numbers that mean something.
bool FallbackConfigured(const api::ScaledObjectSpec& spec);

// At which count of failed poll cycles in a row the fallback begins: max(1, failureThreshold). KEDA
// begins one later (design.md section 8).
int32_t FallbackThreshold(const api::Fallback& fallback);

// Whether a metric with this many failed poll cycles in a row is answered by the fallback value.
bool FallsBack(const api::ScaledObjectSpec& spec, int32_t failed_cycles);

// What the metrics API answers for a metric that falls back, so that the HPA arrives at
// fallback.replicas: target * replicas for AverageValue, that divided by the ready pods for Value
// (the HPA multiplies by them); truncated to thousandths, saturating. FAILED_PRECONDITION: type
// Value and no ready pod is known, or the behaviour is not static.
absl::StatusOr<api::Quantity> FallbackValue(const api::Fallback& fallback,
                                            api::MetricTargetType type, double target,
                                            std::optional<int32_t> ready_pods);

}  // namespace outrigger::controller::scaling
