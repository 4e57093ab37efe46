// SPDX-License-Identifier: Apache-2.0
#include "operator/polling/live_metric_source.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "host/base/status.h"
#include "operator/api/scale_target.h"
#include "operator/polling/answer_recorder.h"
#include "operator/scaling/fallback.h"
#include "operator/scaling/metric_name.h"

namespace outrigger::controller::polling {

using Readings = absl::StatusOr<std::vector<MetricReading>>;

namespace {

// The HPA controller adds the series up in 64 bits of thousandths and turns the outcome into 32
// bits without a look, so that a huge value wraps to a negative count and the target is scaled
// *in*. So the sum is never above what lets a quarter of those counts come out: for a target of
// type Value, which is multiplied by the ready Pods, a rollout may have up to four times
// maxReplicas of them.
constexpr double kLargestCount = std::numeric_limits<int32_t>::max() / 4.0;
constexpr double kLargestSum = 9e15;   // below 2^63 thousandths
constexpr double kSmallestRatio = 10;  // by which a huge value of type Value still scales out

double LargestSum(const api::HpaMetricTarget& target, double target_value, int32_t max_replicas) {
  const double ratio = target.type == api::MetricTargetType::kValue
                           ? std::max(kSmallestRatio, kLargestCount / std::max(1, max_replicas))
                           : kLargestCount;
  return std::min(ratio * target_value, kLargestSum);
}

void KeepCountable(const api::HpaMetricTarget* target, int32_t max_replicas,
                   std::vector<MetricReading>& readings) {
  if (target == nullptr) return;
  const std::optional<api::Quantity>& quantity =
      target->type == api::MetricTargetType::kValue ? target->value : target->average_value;
  if (!quantity) return;
  const double most = LargestSum(*target, quantity->AsDouble(), max_replicas);
  double sum = 0;
  for (const MetricReading& reading : readings) sum += reading.value;
  if (!(sum > most)) return;
  for (MetricReading& reading : readings) reading.value *= most / sum;
}

}  // namespace

// By the spec that is polled, or a read would ask another question than the poll whose answer it
// shares.
std::shared_ptr<const api::ScaledObject> LiveMetricSource::FindObject(
    const api::NamespacedName& key) const {
  std::shared_ptr<const api::ScaledObject> object = view_.ScaledObject(key);
  if (object == nullptr || !running_) return object;
  const std::shared_ptr<const api::ScaledObject> running = running_(key);
  if (running == nullptr || running->meta.uid != object->meta.uid ||
      running->meta.generation == object->meta.generation) {
    return object;
  }
  auto merged = std::make_shared<api::ScaledObject>(*running);
  merged->status = object->status;
  return merged;
}

absl::StatusOr<LiveMetricSource::Known> LiveMetricSource::Find(const MetricRead& read) const {
  if (!view_.Synced()) return NotSyncedError();
  const api::NamespacedName key{read.namespace_name, read.scaled_object};
  Known known;
  known.object = FindObject(key);
  if (known.object == nullptr)
    return NoSuchMetricError(absl::StrCat("ScaledObject ", key.ToString(), ": not found"));
  const std::optional<scaling::IndexedMetricName> parsed =
      scaling::ParseExternalMetricName(read.metric_name);
  if (!parsed ||
      parsed->trigger_index >= static_cast<int32_t>(known.object->spec.triggers.size())) {
    return NoSuchMetricError(
        absl::StrCat("ScaledObject ", key.ToString(), " has no metric \"", read.metric_name, "\""));
  }
  known.trigger_index = static_cast<uint32_t>(parsed->trigger_index);
  known.hpa = view_.Hpa({key.namespace_name, known.object->HpaName()});
  if (known.hpa != nullptr) {
    for (const api::HpaMetric& metric : known.hpa->spec.metrics) {
      if (metric.type != api::kExternalMetric ||
          !scaling::SameMetricName(metric.name, read.metric_name))
        continue;
      known.full_name = metric.name;
      known.target = &metric.target;
    }
  }
  for (const std::string& name : known.object->status.external_metric_names) {
    if (known.full_name.empty() && scaling::SameMetricName(name, read.metric_name))
      known.full_name = name;
  }
  if (known.full_name.empty()) {
    return NoSuchMetricError(
        absl::StrCat("ScaledObject ", key.ToString(), " has no metric \"", read.metric_name, "\""));
  }
  known.name = scaling::ParseExternalMetricName(known.full_name)->name;
  return known;
}

bool LiveMetricSource::FallsBack(const Known& known) const {
  if (!scaling::FallbackConfigured(known.object->spec) || known.target == nullptr) return false;
  auto health = known.object->status.health.find(known.full_name);
  return health != known.object->status.health.end() &&
         scaling::FallsBack(known.object->spec, health->second.number_of_failures);
}

host::Task<Readings> LiveMetricSource::FallbackReading(Known known, host::Deadline deadline) {
  std::optional<int32_t> ready_pods;
  const bool average = known.target->type == api::MetricTargetType::kAverageValue;
  if (!average) {
    absl::StatusOr<api::GroupVersionKindResource> target =
        api::ResolveTarget(known.object->spec.scale_target_ref);
    if (target.ok()) target = co_await scaler_.Map(*std::move(target), deadline);
    if (!target.ok()) co_return target.status();
    const api::NamespacedName key{known.object->meta.namespace_name,
                                  known.object->spec.scale_target_ref.name};
    absl::StatusOr<int32_t> pods = co_await scaler_.ReadyPods(*target, key, deadline);
    if (!pods.ok()) co_return host::Annotate(pods.status(), "fallback of ", known.full_name);
    ready_pods = *pods;
  }
  const std::optional<api::Quantity>& quantity =
      average ? known.target->average_value : known.target->value;
  if (!quantity)
    co_return absl::InternalError(absl::StrCat(known.full_name, ": the HPA has no target for it"));
  absl::StatusOr<api::Quantity> value = scaling::FallbackValue(
      *known.object->spec.fallback, known.target->type, quantity->AsDouble(), ready_pods);
  if (!value.ok()) co_return host::Annotate(value.status(), "fallback of ", known.full_name);
  std::vector<MetricReading> readings(1);
  readings[0].metric_name = known.full_name;
  readings[0].value = value->AsDouble();
  readings[0].measured_at = clock_.WallNow();
  co_return readings;
}

absl::Status LiveMetricSource::PublishedFailure(const Known& known,
                                                const host::HealthRecord* record) const {
  auto health = known.object->status.health.find(known.full_name);
  if (health == known.object->status.health.end()) return absl::OkStatus();
  const int32_t failures = health->second.number_of_failures;
  const bool unhealthy = failures >= scaling::kUnhealthyFailures;
  if (!unhealthy || (record != nullptr && record->status.ok())) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("metric ", known.full_name,
                                             " could not be read in the last ", failures,
                                             " poll cycles; it is not asked for reads"));
}

// Of a stateful type, whose answer to a read would be another one than to the poll.
Readings LiveMetricSource::LastPoll(const Known& known, const host::HealthRecord* record) const {
  if (record != nullptr && !record->status.ok()) return record->status;
  if (record != nullptr && record->value) return OneReading(known, *record);
  absl::Status status = absl::UnavailableError(
      absl::StrCat("metric ", known.full_name, " was not polled here yet; its type is stateful"));
  host::MarkPluginUnreachable(status);
  return status;
}

std::vector<MetricReading> LiveMetricSource::OneReading(const Known& known,
                                                        const host::HealthRecord& record) {
  std::vector<MetricReading> readings(1);
  readings[0].metric_name = known.full_name;
  readings[0].value = *record.value;
  readings[0].measured_at = record.measured_at;
  KeepCountable(known.target, known.object->spec.MaxReplicas(), readings);
  return readings;
}

host::Task<Readings> LiveMetricSource::Read(MetricRead read, host::Deadline deadline) {
  absl::StatusOr<Known> known = Find(read);
  if (!known.ok()) co_return known.status();
  if (FallsBack(*known)) co_return co_await FallbackReading(*std::move(known), deadline);
  const api::Trigger& spec = known->object->spec.triggers[known->trigger_index];
  const host::HealthKey key{
      .uid = known->object->meta.uid, .trigger_index = known->trigger_index, .metric = known->name};
  const absl::Duration freshness =
      spec.use_cached_metrics
          ? std::max(known->object->spec.PollingInterval(), options_.metric_freshness)
          : options_.metric_freshness;
  const host::HealthRecord* record =
      read.selector.empty() ? health_.ForRead(key, freshness) : nullptr;
  if (record != nullptr && !record->status.ok()) co_return record->status;
  if (record != nullptr && record->value) co_return OneReading(*known, *record);
  CO_RETURN_IF_ERROR(PublishedFailure(*known, health_.Find(key)));
  const std::shared_ptr<const api::ScaledObject> object = known->object;
  std::shared_ptr<const ResolvedObject> resolved = co_await resolver_.Resolve(object, deadline);
  const ResolvedTrigger& trigger = resolved->triggers[known->trigger_index];
  if (trigger.stateful) co_return LastPoll(*known, health_.Find(key));
  if (trigger.trigger == nullptr) {
    co_return host::Annotate(trigger.error, "metric ", known->full_name);
  }
  co_return co_await ReadLive(*std::move(known), trigger, std::move(read.selector), deadline);
}

host::Task<Readings> LiveMetricSource::ReadLive(Known known, ResolvedTrigger trigger,
                                                std::string selector, host::Deadline deadline) {
  const host::HealthKey key{
      .uid = known.object->meta.uid, .trigger_index = known.trigger_index, .metric = known.name};
  const bool whole = selector.empty();
  host::MetricQuery query;
  query.metric_name = known.name;
  query.selector = std::move(selector);
  query.timeout = options_.scaler_timeout;
  const host::Deadline call_deadline = deadline.Within(clock_, options_.scaler_timeout);
  const host::SteadyTime start = clock_.SteadyNow();
  absl::StatusOr<host::MetricsAnswer> answer =
      co_await scalers_.GetMetrics(trigger.trigger, std::move(query), call_deadline);
  absl::StatusOr<double> sum =
      answer.ok() ? SumOf(*answer, known.name) : absl::StatusOr<double>(answer.status());
  if (whole && !trigger.stateful && view_.ScaledObject(known.object->Key()) != nullptr) {
    // A failure is remembered for 5 s, and never counted.
    if (sum.ok()) {
      health_.RecordSuccess(key, *sum, answer->active);
      if (on_answer_) {
        on_answer_(known.object->Key(), known.trigger_index, *answer, clock_.SteadyNow() - start);
      }
    } else {
      health_.RecordFailure(key, sum.status(), /*ends_cycle=*/false);
    }
  }
  if (!sum.ok()) co_return host::Annotate(sum.status(), "metric ", known.full_name);
  std::vector<MetricReading> readings;
  for (const scaler::v1::MetricValue& value : answer->values) {
    if (!scaling::SameMetricName(value.name(), known.name)) continue;
    MetricReading reading;
    reading.metric_name = known.full_name;
    reading.labels.insert(value.labels().begin(), value.labels().end());
    reading.value = std::max(0.0, value.value());
    reading.measured_at = value.has_measured_at()
                              ? absl::FromUnixSeconds(value.measured_at().seconds())
                              : clock_.WallNow();
    if (value.has_window()) reading.window = absl::Seconds(value.window().seconds());
    readings.push_back(std::move(reading));
  }
  KeepCountable(known.target, known.object->spec.MaxReplicas(), readings);
  co_return readings;
}

}  // namespace outrigger::controller::polling
