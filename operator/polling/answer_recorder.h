// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "host/client/health_cache.h"
#include "host/client/scaler_service.h"
#include "operator/polling/tracked_object.h"
#include "operator/runtime/metrics_sink.h"

namespace outrigger::controller::polling {

// Who asked. Only the failure of a poll counts. Of a stateful type, whose state a test must not
// move, a test changes nothing that is known, unless what is known is the answer to another
// question.
enum class AnswerTo { kPoll, kTest, kFirstTest };

// Told when a trigger whose values were not negative answers one that is: it counts as 0.
using OnNegative =
    std::function<void(const api::NamespacedName& key, const std::string& metric, double value)>;

// Takes what a plugin answered about a trigger, whoever asked: into the HealthCache, the metrics,
// and `on_negative`.
class AnswerRecorder {
 public:
  AnswerRecorder(host::HealthCache& health, runtime::MetricsSink& metrics,
                 OnNegative on_negative = {})
      : health_(health), metrics_(metrics), on_negative_(std::move(on_negative)) {}

  // The answer for the whole trigger: the sum of the values of each metric, since the HPA adds them
  // up; a metric of the specs without a value is an error of that metric, never 0. A negative value
  // is 0. `took`: nothing if the plugin was not asked for values.
  void Record(TrackedObject& object, TrackedTrigger& trigger,
              const absl::StatusOr<host::MetricsAnswer>& answer, AnswerTo asker,
              std::optional<absl::Duration> took) const;
  // The answer to a metric read, which is in the HealthCache already; maybe about one metric only.
  void TellOfRead(const TrackedObject& object, TrackedTrigger& trigger,
                  const host::MetricsAnswer& answer, absl::Duration took) const;

 private:
  void NoteNegative(const TrackedObject& object, TrackedTrigger& trigger,
                    const host::MetricsAnswer& answer) const;

  host::HealthCache& health_;
  runtime::MetricsSink& metrics_;
  const OnNegative on_negative_;
};

// The labels of a metric's keda_scaler_* series.
runtime::ScalerLabels LabelsOf(const TrackedObject& object, const TrackedTrigger& trigger,
                               const std::string& metric);

// Sum of the values named `metric`; NOT_FOUND when there is none, INTERNAL when one is not finite.
absl::StatusOr<double> SumOf(const host::MetricsAnswer& answer, const std::string& metric);

}  // namespace outrigger::controller::polling
