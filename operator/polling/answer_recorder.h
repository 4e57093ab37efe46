// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include "host/client/health_cache.h"
#include "host/client/scaler_service.h"
#include "operator/polling/tracked_object.h"
#include "operator/runtime/metrics_sink.h"

namespace outrigger::controller::polling {

// Puts a plugin's answer for one whole trigger into the HealthCache: the sum of the values of each
// metric, since the HPA adds them up; a metric of the specs without a value is an error of that
// metric, never 0. A negative value is 0. `ends_cycle`: the answer of a poll at its due time, the
// only kind whose failure counts; of a stateful type the only kind that changes what is known at
// all.
void RecordAnswer(host::HealthCache& health, TrackedObject& object, TrackedTrigger& trigger,
                  const absl::StatusOr<host::MetricsAnswer>& answer, bool ends_cycle,
                  runtime::MetricsSink& metrics);

// The labels of a metric's keda_scaler_* series.
runtime::ScalerLabels LabelsOf(const TrackedObject& object, const TrackedTrigger& trigger,
                               const std::string& metric);

// Sum of the values named `metric`; NOT_FOUND when there is none, INTERNAL when one is not finite.
absl::StatusOr<double> SumOf(const host::MetricsAnswer& answer, const std::string& metric);

}  // namespace outrigger::controller::polling
