// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <string>

#include "operator/polling/metric_source.h"

namespace outrigger::controller::adapter {

inline constexpr char kExternalMetricsGroup[] = "external.metrics.k8s.io";

// What a request path of the metrics API asks for.
enum class Route {
  kHealth,
  kApis,
  kGroup,
  kVersion,
  kServerVersion,
  kOpenApiV2,
  kOpenApiV3,
  kMetric
};

struct MetricRequest {
  Route route = Route::kMetric;
  std::string path;          // as it came, without the query
  polling::MetricRead read;  // of kMetric
};

// Reads the target of a GET: path and query, percent-encoded as on the wire. Pure.
//
// INVALID_ARGUMENT: broken percent-encoding, a label selector that is not key=value only, or one
// that names no ScaledObject; NOT_FOUND: no such path. Messages say what was wanted and what came.
// Source: spec/adapter.md sections 1 and 2.
absl::StatusOr<MetricRequest> ParseMetricRequest(absl::string_view target);

}  // namespace outrigger::controller::adapter
