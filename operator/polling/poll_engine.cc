// SPDX-License-Identifier: Apache-2.0
#include "operator/polling/poll_engine.h"

#include <absl/strings/str_cat.h>

#include <algorithm>

#include "operator/polling/answer_recorder.h"

namespace outrigger::controller::polling {

using api::NamespacedName;
using host::SteadyTime;

// Questions of one round. Equal ones (same fingerprint) are asked once and answered to all who
// asked.
struct PollEngine::Batch {
  struct Asker {
    NamespacedName key;
    uint32_t trigger_index = 0;
  };
  struct Cycle {
    std::string uid;
    SteadyTime started;
    size_t waiting = 0;                                 // triggers without an answer
    bool complete = false;                              // Prepare() has named them all
    absl::Duration retry_after = absl::ZeroDuration();  // the longest that a plugin asked for
  };
  std::vector<host::BatchItem> items;
  std::vector<std::vector<Asker>> askers;  // of each item
  absl::flat_hash_map<std::string, size_t> by_question;
  absl::flat_hash_map<NamespacedName, Cycle> cycles;
};

PollEngine::PollEngine(host::Clock& clock, host::ScalerService& scalers, host::HealthCache& health,
                       TriggerResolver& resolver, ObjectRegistry& registry, host::Executor strand,
                       host::Random random, OnCycle on_cycle, runtime::MetricsSink& metrics,
                       Options options)
    : clock_(clock),
      scalers_(scalers),
      health_(health),
      resolver_(resolver),
      registry_(registry),
      random_(random),
      on_cycle_(std::move(on_cycle)),
      metrics_(metrics),
      options_(options),
      cycles_(clock, std::move(strand)) {}

void PollEngine::SetDue(const NamespacedName& key, TrackedObject& object, SteadyTime due) {
  due_.erase({object.due, key});
  object.due = due;
  due_.insert({due, key});
  if (due_.begin()->second == key) changed_.Notify();
}

void PollEngine::Schedule(const NamespacedName& key, First first) {
  TrackedObject* object = registry_.Find(key);
  if (object == nullptr) return;
  absl::Duration delay = absl::ZeroDuration();
  if (first == First::kSpread) {
    delay = std::min(object->object->spec.PollingInterval(), options_.spread) * random_.Fraction();
  }
  SetDue(key, *object, clock_.SteadyNow() + delay);
}

void PollEngine::Unschedule(const NamespacedName& key) {
  if (TrackedObject* object = registry_.Find(key)) due_.erase({object->due, key});
}

void PollEngine::AnsweredOutOfTurn(const NamespacedName& key) {
  TrackedObject* object = registry_.Find(key);
  if (object == nullptr || object->in_cycle || stopping_) return;
  SteadyTime oldest = SteadyTime::InfiniteFuture();
  for (const TrackedTrigger& trigger : object->triggers) {
    if (trigger.resolved.resource) continue;
    for (const host::HealthKey& health_key : object->HealthKeysOf(trigger)) {
      const host::HealthRecord* record = health_.Find(health_key);
      const bool counts = record != nullptr && record->status.ok() && !trigger.resolved.stateful;
      oldest = std::min(oldest, counts ? record->good_at : SteadyTime::InfinitePast(),
                        [](SteadyTime a, SteadyTime b) { return a < b; });
    }
  }
  // Every trigger was asked since: the poll that would ask again can wait its interval from the
  // oldest answer.
  const SteadyTime due = oldest + object->object->spec.PollingInterval();
  if (oldest > SteadyTime::InfinitePast() && due > object->due) SetDue(key, *object, due);
  cycles_.Spawn(on_cycle_(key));
}

std::vector<NamespacedName> PollEngine::TakeDue() {
  std::vector<NamespacedName> keys;
  const SteadyTime limit = clock_.SteadyNow() + options_.gather;
  while (!due_.empty() && due_.begin()->first <= limit) {
    const Due due = *due_.begin();
    due_.erase(due_.begin());
    TrackedObject* object = registry_.Find(due.second);
    if (object == nullptr || object->in_cycle) continue;
    object->in_cycle = true;
    metrics_.PollLateness(due.second,
                          std::max(absl::ZeroDuration(), clock_.SteadyNow() - due.first));
    keys.push_back(due.second);
  }
  return keys;
}

host::Task<void> PollEngine::Run() {
  stopping_ = false;
  while (!stopping_) {
    std::vector<NamespacedName> keys = TakeDue();
    if (!keys.empty()) {
      cycles_.Spawn(RunCycles(std::move(keys)));
      continue;
    }
    co_await changed_.WaitUntil(clock_,
                                due_.empty() ? SteadyTime::InfiniteFuture() : due_.begin()->first);
  }
  co_await cycles_.Join();
}

void PollEngine::Stop() {
  stopping_ = true;
  changed_.Notify();
}

TrackedObject* PollEngine::Current(const Batch& batch, const NamespacedName& key) const {
  TrackedObject* object = registry_.Find(key);
  return object != nullptr && object->uid() == batch.cycles.at(key).uid ? object : nullptr;
}

host::Task<void> PollEngine::RunCycles(std::vector<NamespacedName> keys) {
  Batch batch;
  for (const NamespacedName& key : keys) {
    TrackedObject* object = registry_.Find(key);
    if (object == nullptr) continue;
    batch.cycles[key] = {.uid = object->uid(), .started = clock_.SteadyNow()};
    co_await Prepare(batch, key);
  }
  const host::Deadline deadline =
      host::Deadline::After(clock_, options_.scaler_timeout + absl::Milliseconds(100));
  std::vector<host::BatchItem> items = std::move(batch.items);
  auto on_answer = [this, &batch](size_t item, absl::StatusOr<host::MetricsAnswer> answer) {
    for (const Batch::Asker& asker : batch.askers[item])
      Answered(batch, asker.key, asker.trigger_index, answer);
  };
  if (!items.empty())
    co_await scalers_.BatchGetMetrics(std::move(items), std::move(on_answer), deadline);
}

host::Task<void> PollEngine::Prepare(Batch& batch, NamespacedName key) {
  TrackedObject* object = Current(batch, key);
  const std::shared_ptr<const api::ScaledObject> source = object->object;
  const host::Deadline deadline = host::Deadline::After(clock_, options_.scaler_timeout);
  // Cached but for what changed: a Secret that was rotated is in use from the next poll on.
  std::shared_ptr<const ResolvedObject> resolved = co_await resolver_.Resolve(source, deadline);
  object = Current(batch, key);
  if (object == nullptr) co_return;
  const absl::Duration timeout = std::min(options_.scaler_timeout, source->spec.PollingInterval());
  Batch::Cycle& cycle = batch.cycles.at(key);
  std::vector<std::pair<uint32_t, absl::Status>> known_failures;
  for (TrackedTrigger& trigger : object->triggers) {
    trigger.answered = true;
    const uint32_t index = trigger.resolved.index;
    if (trigger.resolved.resource || index >= resolved->triggers.size()) continue;
    if (resolved->triggers[index].trigger != trigger.resolved.trigger) {
      trigger.resolved = resolved->triggers[index];
      trigger.refused = absl::OkStatus();
    }
    trigger.answered = false;
    ++cycle.waiting;
    const absl::Status why_not =
        trigger.resolved.trigger == nullptr ? trigger.resolved.error : trigger.refused;
    if (!why_not.ok()) {
      known_failures.emplace_back(index, why_not);
      continue;
    }
    const std::string question =
        absl::StrCat(trigger.resolved.type, "/", trigger.resolved.trigger->fingerprint(), "/",
                     absl::ToInt64Milliseconds(timeout));
    auto [it, is_new] = batch.by_question.try_emplace(question, batch.items.size());
    if (is_new) {
      batch.items.push_back(
          {.trigger = trigger.resolved.trigger, .query = {.poll = true, .timeout = timeout}});
      batch.askers.emplace_back();
    }
    batch.askers[it->second].push_back({key, index});
  }
  cycle.complete = true;
  for (const auto& [index, status] : known_failures) Answered(batch, key, index, status);
  FinishIfComplete(batch,
                   key);  // an object of cpu and memory triggers only has nothing to wait for
}

void PollEngine::Answered(Batch& batch, const NamespacedName& key, uint32_t trigger_index,
                          const absl::StatusOr<host::MetricsAnswer>& answer) {
  TrackedObject* object = Current(batch, key);
  if (object == nullptr) return;
  Batch::Cycle& cycle = batch.cycles.at(key);
  for (TrackedTrigger& trigger : object->triggers) {
    if (trigger.resolved.index != trigger_index || trigger.answered) continue;
    trigger.answered = true;
    if (cycle.waiting > 0) --cycle.waiting;
    if (answer.ok()) cycle.retry_after = std::max(cycle.retry_after, answer->retry_after);
    RecordAnswer(health_, *object, trigger, answer, /*ends_cycle=*/true, metrics_);
  }
  FinishIfComplete(batch, key);
}

void PollEngine::FinishIfComplete(Batch& batch, const NamespacedName& key) {
  TrackedObject* object = Current(batch, key);
  Batch::Cycle& cycle = batch.cycles.at(key);
  if (object == nullptr || !cycle.complete || cycle.waiting > 0 || !object->in_cycle) return;
  object->in_cycle = false;
  const SteadyTime now = clock_.SteadyNow();
  SteadyTime next = cycle.started + object->object->spec.PollingInterval();
  if (next < now) next = now;
  SetDue(key, *object,
         std::max(next, now + cycle.retry_after, [](SteadyTime a, SteadyTime b) { return a < b; }));
  if (!stopping_) cycles_.Spawn(on_cycle_(key));
}

}  // namespace outrigger::controller::polling
