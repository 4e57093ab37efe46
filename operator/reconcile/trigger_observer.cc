// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/trigger_observer.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <boost/asio/this_coro.hpp>
#include <set>
#include <utility>

#include "host/base/status.h"
#include "host/base/task_group.h"
#include "operator/polling/answer_recorder.h"

namespace outrigger::controller::reconcile {
namespace {

using polling::TrackedObject;
using polling::TrackedTrigger;

scaling::MetricSpec FromWire(const scaler::v1::MetricSpec& wire,
                             scaler::v1::MetricType of_trigger) {
  const scaler::v1::MetricType type =
      wire.metric_type() == scaler::v1::METRIC_TYPE_UNSPECIFIED ? of_trigger : wire.metric_type();
  return {.name = wire.name(),
          .target = wire.target(),
          .type = type == scaler::v1::VALUE ? api::MetricTargetType::kValue
                                            : api::MetricTargetType::kAverageValue};
}

absl::Status ToStatus(const std::vector<scaler::v1::Violation>& violations) {
  if (violations.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrJoin(violations, "; ", [](std::string* out, const scaler::v1::Violation& violation) {
        absl::StrAppend(out, violation.field(), ": want ", violation.wanted(), ", got ",
                        violation.got());
      }));
}

// Of the answer that is known: whether it is to the question that is asked now.
enum class Known { kSame, kOther, kWhoKnows };

Known KnownAnswer(const TrackedObject* before, const TrackedTrigger& trigger, size_t i) {
  if (before == nullptr || i >= before->triggers.size()) return Known::kWhoKnows;
  const host::TriggerPtr& then = before->triggers[i].resolved.trigger;
  const host::TriggerPtr& now = trigger.resolved.trigger;
  if (then == nullptr || now == nullptr) return Known::kWhoKnows;
  return then->fingerprint() == now->fingerprint() ? Known::kSame : Known::kOther;
}

// Whether the HPA that is there was made of this spec, as far as its status tells: seen is not
// taken.
bool HpaIsOfThisSpec(const api::ScaledObject& object) {
  const int64_t observed = object.status.observed_generation;
  if (observed == 0) return true;
  const api::Condition* ready = api::FindCondition(object.status.conditions, api::kReady);
  const bool refused = ready != nullptr && ready->status == api::kFalse &&
                       (ready->reason == api::reason::kScaledObjectCheckFailed ||
                        ready->reason == api::reason::kQuotaExceeded);
  return observed == object.meta.generation && !refused;
}

}  // namespace

std::vector<std::string> TriggerObserver::PluginsOf(const TrackedObject& object) const {
  std::set<std::string> plugins;
  for (const TrackedTrigger& trigger : object.triggers) {
    if (trigger.resolved.trigger == nullptr) continue;
    if (const auto plugin = scalers_.PluginFor(trigger.resolved.type)) plugins.insert(*plugin);
  }
  return {plugins.begin(), plugins.end()};
}

bool TriggerObserver::HasRoom(const TrackedObject& object) {
  const api::NamespacedName key = object.object->Key();
  for (const std::string& plugin : PluginsOf(object)) {
    Room& room = rooms_[plugin];
    if (room.taken < options_.reconciles_per_plugin) continue;
    if (room.queued.insert(key).second) room.queue.push_back(key);
    return false;
  }
  return true;
}

void TriggerObserver::Leave(const std::string& plugin) {
  Room& room = rooms_[plugin];
  --room.taken;
  if (room.queue.empty()) return;
  const api::NamespacedName next = std::move(room.queue.front());
  room.queue.pop_front();
  room.queued.erase(next);
  if (on_room_) on_room_(next);
}

// What a plugin said last, for when it cannot be asked: of the same trigger, or after a restart of
// the operator what the HPA holds of it, unless the HPA is of an older spec.
void TriggerObserver::TakeLastGoodSpecs(TrackedObject& object, const TrackedObject* before,
                                        const api::HorizontalPodAutoscaler* hpa) const {
  const bool hpa_is_of_this_spec = before == nullptr && HpaIsOfThisSpec(*object.object);
  for (size_t i = 0; i < object.triggers.size(); ++i) {
    TrackedTrigger& trigger = object.triggers[i];
    const bool same =
        before != nullptr && i < before->triggers.size() &&
        before->triggers[i].resolved.type == trigger.resolved.type &&
        before->object->spec.triggers[i].metadata == object.object->spec.triggers[i].metadata;
    if (same) {
      trigger.specs = before->triggers[i].specs;
      trigger.negative = before->triggers[i].negative;
    } else if (hpa != nullptr && hpa_is_of_this_spec) {
      trigger.specs =
          scaling::SpecsFromHpa(*hpa, static_cast<int32_t>(trigger.resolved.index)).specs;
    }
  }
}

void TriggerObserver::ForgetRemovedTriggers(const TrackedObject& object,
                                            const TrackedObject& before) {
  for (size_t i = object.triggers.size(); i < before.triggers.size(); ++i) {
    for (const host::HealthKey& key : before.HealthKeysOf(before.triggers[i])) health_.Forget(key);
  }
}

host::Task<void> TriggerObserver::Observe(TrackedObject& object, const TrackedObject* before,
                                          std::shared_ptr<const api::HorizontalPodAutoscaler> hpa,
                                          host::Deadline deadline) {
  TakeLastGoodSpecs(object, before, hpa.get());
  if (before != nullptr) ForgetRemovedTriggers(object, *before);
  const std::vector<std::string> plugins = PluginsOf(object);
  for (const std::string& plugin : plugins) ++rooms_[plugin].taken;
  const host::Executor executor = co_await boost::asio::this_coro::executor;
  host::TaskGroup group(clock_, executor);
  const host::Deadline all = deadline.Within(clock_, options_.scaler_timeout);
  for (size_t i = 0; i < object.triggers.size(); ++i) {
    if (object.triggers[i].resolved.resource) continue;
    // The caller's tracked object (`before`) may go while we wait; only this is kept of it.
    const Known known = KnownAnswer(before, object.triggers[i], i);
    const polling::AnswerTo asker =
        known == Known::kOther ? polling::AnswerTo::kFirstTest : polling::AnswerTo::kTest;
    group.Spawn(ObserveTrigger(object, i, asker, /*ask=*/known != Known::kSame, all));
  }
  co_await group.Join();
  for (const std::string& plugin : plugins) Leave(plugin);
}

host::Task<void> TriggerObserver::ObserveTrigger(TrackedObject& object, size_t position,
                                                 polling::AnswerTo asker, bool ask,
                                                 host::Deadline deadline) {
  TrackedTrigger& trigger = object.triggers[position];
  if (trigger.resolved.trigger == nullptr) {
    recorder_.Record(object, trigger, trigger.resolved.error, asker, std::nullopt);
    co_return;
  }
  const absl::Status specs = co_await AskSpecs(trigger, deadline);
  if (absl::IsInvalidArgument(specs)) {
    trigger.refused = specs;
    recorder_.Record(object, trigger, specs, asker, std::nullopt);
    co_return;
  }
  co_await TestConnection(object, position, asker, ask, deadline);
}

// Leaves the last good specs where the plugin cannot be asked: a plugin that is down never loses a
// metric.
host::Task<absl::Status> TriggerObserver::AskSpecs(TrackedTrigger& trigger,
                                                   host::Deadline deadline) {
  absl::StatusOr<std::vector<scaler::v1::Violation>> violations =
      co_await scalers_.ValidateTrigger(trigger.resolved.trigger, deadline);
  if (violations.ok()) CO_RETURN_IF_ERROR(ToStatus(*violations));
  absl::StatusOr<std::vector<scaler::v1::MetricSpec>> specs =
      co_await scalers_.GetMetricSpecForScaling(trigger.resolved.trigger, deadline);
  if (!specs.ok()) co_return specs.status();
  trigger.specs.clear();
  for (const scaler::v1::MetricSpec& spec : *specs) {
    trigger.specs.push_back(FromWire(spec, trigger.resolved.trigger->metric_type()));
  }
  co_return absl::OkStatus();
}

// `ask`: even if something is known, which is, or may be, the answer to another question.
host::Task<void> TriggerObserver::TestConnection(TrackedObject& object, size_t position,
                                                 polling::AnswerTo asker, bool ask,
                                                 host::Deadline deadline) {
  TrackedTrigger& trigger = object.triggers[position];
  bool known = !ask;
  for (const host::HealthKey& key : object.HealthKeysOf(trigger)) {
    known = known && health_.ForConnectionTest(key) != nullptr;
  }
  if (known) co_return;
  host::MetricQuery query;
  query.timeout = options_.scaler_timeout;
  const host::SteadyTime start = clock_.SteadyNow();
  absl::StatusOr<host::MetricsAnswer> answer =
      co_await scalers_.GetMetrics(trigger.resolved.trigger, std::move(query), deadline);
  recorder_.Record(object, trigger, answer, asker, clock_.SteadyNow() - start);
}

}  // namespace outrigger::controller::reconcile
