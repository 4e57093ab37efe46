// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/time/time.h>

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "host/base/clock.h"
#include "host/base/event.h"
#include "host/base/random.h"
#include "host/base/task_group.h"
#include "host/client/health_cache.h"
#include "host/client/scaler_service.h"
#include "operator/polling/answer_recorder.h"
#include "operator/polling/tracked_object.h"
#include "operator/polling/trigger_resolver.h"
#include "operator/runtime/metrics_sink.h"

namespace outrigger::controller::polling {

// Asks the plugins for every tracked object at its pollingInterval: a set of due times, not a timer
// per object. What is due together is asked together, equal questions once; an object is decided as
// soon as each of its triggers has an answer or its timeout, however slow others are. A missing
// answer is an error, never "inactive".
//
// The leader's only. Use on the core strand. Objects that were active before we led are spread over
// min(pollingInterval, 10 s), new ones are polled at once.
// Source: requirements.md R14, R16; design.md section 5.
class PollEngine {
 public:
  struct Options {
    absl::Duration scaler_timeout = absl::Seconds(3);
    absl::Duration spread = absl::Seconds(10);
    absl::Duration gather = absl::Milliseconds(5);  // what is due within this joins the batch
  };
  // Called when all triggers of an object were answered or given up. Decides; awaited by nobody.
  using OnCycle = std::function<host::Task<void>(api::NamespacedName key)>;

  PollEngine(host::Clock& clock, host::ScalerService& scalers, host::HealthCache& health,
             const AnswerRecorder& recorder, TriggerResolver& resolver, ObjectRegistry& registry,
             host::Executor strand, host::Random random, OnCycle on_cycle,
             runtime::MetricsSink& metrics, Options options);

  enum class First { kAtOnce, kSpread };
  // The object is in the registry, or its triggers changed: its next poll is now, or somewhere in
  // the spread.
  void Schedule(const api::NamespacedName& key, First first);
  // The object leaves the schedule; an answer that comes later is dropped.
  void Unschedule(const api::NamespacedName& key);
  // A good answer came for another reason than the poll: as good as a poll for all but stateful
  // types. The due time moves and the object is decided.
  void AnsweredOutOfTurn(const api::NamespacedName& key);
  // The same, of one trigger, by the live call of a metric read that took so long.
  void AnsweredLive(const api::NamespacedName& key, uint32_t trigger_index,
                    const host::MetricsAnswer& answer, absl::Duration took);

  // Once, until Stop(); returns when every cycle that runs has ended.
  host::Task<void> Run();
  void Stop();

  size_t scheduled() const { return due_.size(); }

 private:
  struct Batch;  // one round of questions
  using Due = std::pair<host::SteadyTime, api::NamespacedName>;
  // An object whose poll began.
  struct Begun {
    api::NamespacedName key;
    uint64_t cycle = 0;
    host::SteadyTime at;
  };

  void SetDue(const api::NamespacedName& key, TrackedObject& object, host::SteadyTime due);
  // One polling interval after `last`, at the nearest slot.
  host::SteadyTime NextSlot(const TrackedObject& object, host::SteadyTime last) const;
  // When the oldest of the last good answers came; nothing unless each trigger gave one that is as
  // good as a poll.
  std::optional<host::SteadyTime> OldestAnswer(const TrackedObject& object) const;
  std::vector<Begun> TakeDue();
  host::Task<void> RunCycles(std::vector<Begun> begun);
  // Of an object whose triggers cannot be resolved without asking the API server.
  host::Task<void> ResolveAndRun(Begun begun);
  host::Task<void> Ask(Batch& batch);
  void Prepare(Batch& batch, const Begun& begun, const ResolvedObject& resolved);
  void Answered(Batch& batch, const api::NamespacedName& key, uint32_t trigger_index,
                const host::TriggerPtr& asked, const absl::StatusOr<host::MetricsAnswer>& answer);
  void FinishIfComplete(Batch& batch, const api::NamespacedName& key);
  // The object if that cycle of it still runs.
  TrackedObject* Current(const api::NamespacedName& key, uint64_t cycle) const;

  host::Clock& clock_;
  host::ScalerService& scalers_;
  host::HealthCache& health_;
  const AnswerRecorder& recorder_;
  TriggerResolver& resolver_;
  ObjectRegistry& registry_;
  host::Random random_;
  const OnCycle on_cycle_;
  runtime::MetricsSink& metrics_;
  const Options options_;
  host::TaskGroup cycles_;
  std::set<Due> due_;
  uint64_t last_cycle_ = 0;
  host::Event changed_;
  bool stopping_ = false;
};

}  // namespace outrigger::controller::polling
