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

void AnswerRecorder::Record(TrackedObject& object, TrackedTrigger& trigger,
                            const absl::StatusOr<host::MetricsAnswer>& answer, AnswerTo asker,
                            std::optional<absl::Duration> took) const {
  const bool ends_cycle = asker == AnswerTo::kPoll;
  if (absl::IsInvalidArgument(answer.status()) && trigger.resolved.error.ok())
    trigger.refused = answer.status();
  // What only a change can heal is no failure of a scaler; an unresolvable credential is (design.md
  // section 8).
  const bool counts = ends_cycle && trigger.refused.ok();
  for (const host::HealthKey& key : object.HealthKeysOf(trigger)) {
    const runtime::ScalerLabels labels = LabelsOf(object, trigger, key.metric);
    if (took && !key.metric.empty()) metrics_.ScalerLatency(labels, *took);
    const bool answered = health_.Find(key) != nullptr;
    if (trigger.resolved.stateful && asker == AnswerTo::kTest && answered) continue;
    const absl::StatusOr<double> value = ValueOf(answer, key.metric);
    if (value.ok()) {
      health_.RecordSuccess(key, *value, answer->active);
      if (key.metric.empty()) continue;
      metrics_.ScalerValue(labels, *value);
      metrics_.ScalerActive(labels, answer->active);
    } else {
      health_.RecordFailure(key, value.status(), counts);
      metrics_.ScalerError(labels);
      if (ends_cycle) metrics_.ScaledObjectError(object.object->Key());
    }
  }
  if (answer.ok()) NoteNegative(object, trigger, *answer);
}

void AnswerRecorder::TellOfRead(const TrackedObject& object, TrackedTrigger& trigger,
                                const host::MetricsAnswer& answer, absl::Duration took) const {
  for (const scaling::MetricSpec& spec : trigger.specs) {
    const absl::StatusOr<double> value = SumOf(answer, spec.name);
    if (!value.ok()) continue;  // the read was about another metric
    const runtime::ScalerLabels labels = LabelsOf(object, trigger, spec.name);
    metrics_.ScalerValue(labels, *value);
    metrics_.ScalerActive(labels, answer.active);
    metrics_.ScalerLatency(labels, took);
  }
  NoteNegative(object, trigger, answer);
}

void AnswerRecorder::NoteNegative(const TrackedObject& object, TrackedTrigger& trigger,
                                  const host::MetricsAnswer& answer) const {
  const auto found =
      std::find_if(answer.values.begin(), answer.values.end(),
                   [](const scaler::v1::MetricValue& value) { return value.value() < 0; });
  const bool negative = found != answer.values.end();
  if (negative && !trigger.negative && on_negative_) {
    on_negative_(object.object->Key(), found->name(), found->value());
  }
  trigger.negative = negative;
}

}  // namespace outrigger::controller::polling
