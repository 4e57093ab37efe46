// SPDX-License-Identifier: Apache-2.0
#include "operator/polling/answer_recorder.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>

#include "operator/scaling/metric_name.h"

namespace outrigger::controller::polling {
namespace {

// While no spec is known an answer has no metric to be about: it only says that the trigger works.
absl::StatusOr<double> ValueOf(const absl::StatusOr<host::MetricsAnswer>& answer,
                               const std::string& metric) {
  if (!answer.ok()) return answer.status();
  if (metric.empty()) return 0.0;
  return SumOf(*answer, metric);
}

}  // namespace

absl::StatusOr<double> SumOf(const host::MetricsAnswer& answer, const std::string& metric) {
  double sum = 0;
  bool found = false;
  for (const scaler::v1::MetricValue& value : answer.values) {
    if (!scaling::SameMetricName(value.name(), metric)) continue;
    if (!std::isfinite(value.value())) {
      return absl::InternalError(
          absl::StrCat("metric ", metric, ": want a finite number, got ", value.value()));
    }
    sum += std::max(0.0, value.value());
    found = true;
  }
  if (!found)
    return absl::NotFoundError(
        absl::StrCat("metric ", metric, ": the plugin answered without a value for it"));
  if (!std::isfinite(sum))
    return absl::InternalError(absl::StrCat("metric ", metric, ": the sum is not finite"));
  return sum;
}

runtime::ScalerLabels LabelsOf(const TrackedObject& object, const TrackedTrigger& trigger,
                               const std::string& metric) {
  const ResolvedTrigger& resolved = trigger.resolved;
  return {.object = object.object->Key(),
          .metric = scaling::ExternalMetricName(static_cast<int32_t>(resolved.index), metric),
          .scaler = resolved.name.empty() ? absl::StrCat(resolved.type, "Scaler") : resolved.name,
          .trigger_index = resolved.index};
}

void NoteNegative(const TrackedObject& object, TrackedTrigger& trigger,
                  const host::MetricsAnswer& answer, const OnNegative& on_negative) {
  const auto found =
      std::find_if(answer.values.begin(), answer.values.end(),
                   [](const scaler::v1::MetricValue& value) { return value.value() < 0; });
  const bool negative = found != answer.values.end();
  if (negative && !trigger.negative && on_negative) {
    on_negative(object.object->Key(), found->name(), found->value());
  }
  trigger.negative = negative;
}

void RecordAnswer(host::HealthCache& health, TrackedObject& object, TrackedTrigger& trigger,
                  const absl::StatusOr<host::MetricsAnswer>& answer, AnswerTo asker,
                  runtime::MetricsSink& metrics) {
  const bool ends_cycle = asker == AnswerTo::kPoll;
  if (absl::IsInvalidArgument(answer.status()) && trigger.resolved.error.ok())
    trigger.refused = answer.status();
  // What only a change can heal is no failure of a scaler; an unresolvable credential is (design.md
  // section 8).
  const bool counts = ends_cycle && trigger.refused.ok();
  for (const host::HealthKey& key : object.HealthKeysOf(trigger)) {
    const bool answered = health.Find(key) != nullptr;
    if (trigger.resolved.stateful && asker == AnswerTo::kTest && answered) continue;
    const runtime::ScalerLabels labels = LabelsOf(object, trigger, key.metric);
    const absl::StatusOr<double> value = ValueOf(answer, key.metric);
    if (value.ok()) {
      health.RecordSuccess(key, *value, answer->active);
      if (!key.metric.empty()) metrics.ScalerValue(labels, *value);
      if (ends_cycle && !key.metric.empty()) metrics.ScalerActive(labels, answer->active);
    } else {
      health.RecordFailure(key, value.status(), counts);
      metrics.ScalerError(labels);
      if (ends_cycle) metrics.ScaledObjectError(object.object->Key());
    }
  }
}

}  // namespace outrigger::controller::polling
