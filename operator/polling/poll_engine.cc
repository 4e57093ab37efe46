// SPDX-License-Identifier: Apache-2.0
#include "operator/polling/poll_engine.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <optional>

namespace outrigger::controller::polling {

using api::NamespacedName;
using host::SteadyTime;

namespace {

constexpr absl::Duration kLongestRetryAfter = absl::Seconds(30);

// Due times lie on multiples of a slot, so that objects that came at different moments are soon
// asked together: a call of a plugin costs several times as much as a further entry in it. A slot
// is a sixtieth of the interval at most and divides a second.
absl::Duration SlotOf(absl::Duration interval) {
  if (interval >= absl::Seconds(30)) return absl::Milliseconds(500);
  if (interval >= absl::Seconds(6)) return absl::Milliseconds(100);
  return absl::Milliseconds(10);
}

// Of the same question: a trigger that was resolved anew with the same outcome takes the answer,
// one that changed while it was asked does not.
bool SameQuestion(const host::TriggerPtr& a, const host::TriggerPtr& b) {
  if (a == nullptr || b == nullptr) return a == b;
  return a->type() == b->type() && a->fingerprint() == b->fingerprint();
}

}  // namespace

// Questions of one round. Equal ones (same fingerprint) are asked once and answered to all who
// asked.
struct PollEngine::Batch {
  struct Asker {
    NamespacedName key;
    uint32_t trigger_index = 0;
  };
  struct Cycle {
    uint64_t id = 0;
    SteadyTime started;
    std::set<uint32_t> waiting;                         // indexes of triggers without an answer
    absl::Duration retry_after = absl::ZeroDuration();  // the longest that a plugin asked for
  };
  std::vector<host::BatchItem> items;
  std::vector<std::vector<Asker>> askers;  // of each item
  absl::flat_hash_map<std::string, size_t> by_question;
  absl::flat_hash_map<NamespacedName, Cycle> cycles;
  std::optional<SteadyTime> asked_at;
};

PollEngine::PollEngine(host::Clock& clock, host::ScalerService& scalers, host::HealthCache& health,
                       const AnswerRecorder& recorder, TriggerResolver& resolver,
                       ObjectRegistry& registry, host::Executor strand, host::Random random,
                       OnCycle on_cycle, runtime::MetricsSink& metrics, Options options)
    : clock_(clock),
      scalers_(scalers),
      health_(health),
      recorder_(recorder),
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

SteadyTime PollEngine::NextSlot(const TrackedObject& object, SteadyTime last) const {
  const absl::Duration interval = object.object->spec.PollingInterval();
  const absl::Duration slot = SlotOf(interval);
  const absl::Duration due = last.since_epoch() + interval;
  // The nearest, not the next: a poll that began a moment after its slot would slip by one each
  // time.
  return SteadyTime(absl::Floor(due + slot / 2, slot));
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
  if (object == nullptr || object->cycle != 0 || stopping_) return;
  if (const std::optional<SteadyTime> oldest = OldestAnswer(*object)) {
    // Every trigger was asked since: the poll that would ask again can wait its interval from the
    // oldest answer.
    const SteadyTime due = NextSlot(*object, *oldest);
    if (due > object->due) SetDue(key, *object, due);
  }
  cycles_.Spawn(on_cycle_(key));
}

// Such an answer puts the poll off, so all that a poll would tell of it is told here.
void PollEngine::AnsweredLive(const NamespacedName& key, uint32_t trigger_index,
                              const host::MetricsAnswer& answer, absl::Duration took) {
  TrackedObject* object = registry_.Find(key);
  if (object == nullptr) return;
  for (TrackedTrigger& trigger : object->triggers) {
    if (trigger.resolved.index != trigger_index || trigger.resolved.resource) continue;
    recorder_.TellOfRead(*object, trigger, answer, took);
  }
  AnsweredOutOfTurn(key);
}

std::optional<SteadyTime> PollEngine::OldestAnswer(const TrackedObject& object) const {
  std::optional<SteadyTime> oldest;
  for (const TrackedTrigger& trigger : object.triggers) {
    if (trigger.resolved.resource) continue;
    for (const host::HealthKey& health_key : object.HealthKeysOf(trigger)) {
      const host::HealthRecord* record = health_.Find(health_key);
      if (record == nullptr || !record->status.ok() || trigger.resolved.stateful) {
        return std::nullopt;
      }
      if (!oldest || record->good_at < *oldest) oldest = record->good_at;
    }
  }
  return oldest;
}

std::vector<PollEngine::Begun> PollEngine::TakeDue() {
  std::vector<Begun> begun;
  const SteadyTime now = clock_.SteadyNow();
  while (!due_.empty() && due_.begin()->first <= now + options_.gather) {
    const auto [due, key] = *due_.begin();
    due_.erase(due_.begin());
    TrackedObject* object = registry_.Find(key);
    if (object == nullptr) continue;
    if (object->cycle != 0) {
      object->poll_again = true;
      continue;
    }
    object->cycle = ++last_cycle_;
    metrics_.PollLateness(key, std::max(absl::ZeroDuration(), now - due));
    begun.push_back({.key = key, .cycle = object->cycle, .at = now});
  }
  return begun;
}

host::Task<void> PollEngine::Run() {
  while (!stopping_) {
    std::vector<Begun> begun = TakeDue();
    if (!begun.empty()) {
      cycles_.Spawn(RunCycles(std::move(begun)));
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

TrackedObject* PollEngine::Current(const NamespacedName& key, uint64_t cycle) const {
  TrackedObject* object = registry_.Find(key);
  return object != nullptr && object->cycle == cycle ? object : nullptr;
}

// Whoever needs the API server first (a Secret that was rotated is in use from the next poll on)
// goes alone, so that a slow read delays no other object.
host::Task<void> PollEngine::RunCycles(std::vector<Begun> begun) {
  Batch batch;
  for (const Begun& one : begun) {
    const TrackedObject* object = Current(one.key, one.cycle);
    if (object == nullptr) continue;
    if (const auto resolved = resolver_.Cached(*object->object)) {
      Prepare(batch, one, *resolved);
    } else {
      cycles_.Spawn(ResolveAndRun(one));
    }
  }
  co_await Ask(batch);
}

host::Task<void> PollEngine::ResolveAndRun(Begun begun) {
  const TrackedObject* object = Current(begun.key, begun.cycle);
  if (object == nullptr) co_return;
  const host::Deadline deadline = host::Deadline::After(clock_, options_.scaler_timeout);
  const std::shared_ptr<const ResolvedObject> resolved =
      co_await resolver_.Resolve(object->object, deadline);
  Batch batch;
  Prepare(batch, begun, *resolved);
  co_await Ask(batch);
}

host::Task<void> PollEngine::Ask(Batch& batch) {
  if (!batch.items.empty()) {
    batch.asked_at = clock_.SteadyNow();
    const host::Deadline deadline =
        host::Deadline::After(clock_, options_.scaler_timeout + absl::Milliseconds(100));
    std::vector<host::BatchItem> items = batch.items;
    auto on_answer = [this, &batch](size_t item,
                                    const absl::StatusOr<host::MetricsAnswer>& answer) {
      for (const Batch::Asker& asker : batch.askers[item]) {
        Answered(batch, asker.key, asker.trigger_index, batch.items[item].trigger, answer);
      }
    };
    co_await scalers_.BatchGetMetrics(std::move(items), std::move(on_answer), deadline);
  }
  for (size_t item = 0; item < batch.items.size(); ++item) {
    for (const Batch::Asker& asker : batch.askers[item]) {
      Answered(batch, asker.key, asker.trigger_index, batch.items[item].trigger,
               absl::DeadlineExceededError("no answer"));  // nothing for those that had one
    }
  }
}

void PollEngine::Prepare(Batch& batch, const Begun& begun, const ResolvedObject& resolved) {
  TrackedObject* object = Current(begun.key, begun.cycle);
  if (object == nullptr) return;
  if (resolved.generation != object->object->meta.generation) {  // edited while it was resolved
    object->cycle = 0;
    object->poll_again = false;
    return SetDue(begun.key, *object, clock_.SteadyNow());
  }
  const absl::Duration timeout =
      std::min(options_.scaler_timeout, object->object->spec.PollingInterval());
  Batch::Cycle& cycle = batch.cycles[begun.key];
  cycle.id = begun.cycle;
  cycle.started = begun.at;
  std::vector<std::pair<uint32_t, absl::Status>> known_failures;
  for (TrackedTrigger& trigger : object->triggers) {
    const uint32_t index = trigger.resolved.index;
    if (trigger.resolved.resource || index >= resolved.triggers.size()) continue;
    if (resolved.triggers[index].trigger != trigger.resolved.trigger) {
      trigger.refused = absl::OkStatus();
    }
    trigger.resolved = resolved.triggers[index];
    cycle.waiting.insert(index);
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
    batch.askers[it->second].push_back({begun.key, index});
  }
  for (const auto& [index, status] : known_failures) {
    const host::TriggerPtr asked = resolved.triggers[index].trigger;
    Answered(batch, begun.key, index, asked, status);
  }
  // An object of cpu and memory triggers only has nothing to wait for.
  FinishIfComplete(batch, begun.key);
}

void PollEngine::Answered(Batch& batch, const NamespacedName& key, uint32_t trigger_index,
                          const host::TriggerPtr& asked,
                          const absl::StatusOr<host::MetricsAnswer>& answer) {
  Batch::Cycle& cycle = batch.cycles.at(key);
  TrackedObject* object = Current(key, cycle.id);
  if (object == nullptr || cycle.waiting.erase(trigger_index) == 0) return;
  const absl::Duration retry_after =
      answer.ok() ? answer->retry_after
                  : host::RetryAfter(answer.status()).value_or(absl::ZeroDuration());
  cycle.retry_after = std::max(cycle.retry_after, std::min(retry_after, kLongestRetryAfter));
  std::optional<absl::Duration> took;
  if (batch.asked_at) took = clock_.SteadyNow() - *batch.asked_at;
  for (TrackedTrigger& trigger : object->triggers) {
    if (trigger.resolved.index != trigger_index || trigger.resolved.resource) continue;
    if (!SameQuestion(trigger.resolved.trigger, asked)) continue;
    recorder_.Record(*object, trigger, answer, AnswerTo::kPoll, took);
  }
  FinishIfComplete(batch, key);
}

void PollEngine::FinishIfComplete(Batch& batch, const NamespacedName& key) {
  Batch::Cycle& cycle = batch.cycles.at(key);
  TrackedObject* object = Current(key, cycle.id);
  if (object == nullptr || !cycle.waiting.empty()) return;
  object->cycle = 0;
  const SteadyTime now = clock_.SteadyNow();
  SteadyTime next = NextSlot(*object, cycle.started);
  if (next < now + cycle.retry_after) next = now + cycle.retry_after;
  SetDue(key, *object, std::exchange(object->poll_again, false) ? now : next);
  if (!stopping_) cycles_.Spawn(on_cycle_(key));
}

}  // namespace outrigger::controller::polling
