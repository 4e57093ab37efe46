// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/leader_term.h"

#include <utility>

namespace outrigger::controller::reconcile {
namespace {

constexpr char kQueueName[] = "scaledobject";

runtime::WorkQueue::Observer QueueObserver(runtime::MetricsSink& metrics) {
  return {.on_depth = [&metrics](size_t depth) { metrics.QueueDepth(kQueueName, depth); },
          .on_taken =
              [&metrics](absl::Duration waited) {
                metrics.QueueWaited(kQueueName, waited);
                metrics.Step(runtime::LoopStep::kQueue, waited);
              },
          .on_added = [&metrics] { metrics.QueueAdded(kQueueName); },
          .on_retry = [&metrics] { metrics.QueueRetried(kQueueName); }};
}

polling::OnNegative WarnOfNegative(const host::Logger& log) {
  return [log](const api::NamespacedName& key, const std::string& metric, double value) {
    log.Warning("a value below 0 counts as 0",
                {{"object", key.ToString()}, {"metric", metric}, {"value", value}});
  };
}

}  // namespace

LeaderTerm::LeaderTerm(Parts parts, const Options& options)
    : clock_(parts.clock),
      options_(options),
      may_write_(parts.may_write),
      gate_(parts.clock),
      status_(
          parts.clock, parts.api, gate_, parts.strand, parts.log, {},
          {.on_conflict = [&metrics = parts.metrics] { metrics.StatusConflict(); },
           .on_written = {},
           .on_failed = [this](const api::NamespacedName& key) { queue_.AddAfterFailure(key); }}),
      events_(parts.clock, parts.api, gate_, parts.strand, parts.log,
              {.instance = options.instance}),
      scaler_(parts.clock, parts.api, parts.view, gate_),
      decider_(parts.clock, parts.view, parts.health, registry_, scaler_, status_, events_,
               parts.metrics, parts.log, {}),
      recorder_(parts.health, parts.metrics, WarnOfNegative(parts.log)),
      engine_(parts.clock, parts.scalers, parts.health, recorder_, parts.resolver, registry_,
              parts.strand, host::Random(options.seed),
              [this](api::NamespacedName key) { return decider_.Decide(std::move(key)); },
              parts.metrics, {.scaler_timeout = options.scaler_timeout, .spread = options.spread}),
      observer_(parts.clock, parts.scalers, parts.health, recorder_,
                {.scaler_timeout = options.scaler_timeout}),
      reconciler_({.clock = parts.clock,
                   .api = parts.api,
                   .view = parts.view,
                   .resolver = parts.resolver,
                   .observer = observer_,
                   .health = parts.health,
                   .registry = registry_,
                   .engine = engine_,
                   .decider = decider_,
                   .scaler = scaler_,
                   .status = status_,
                   .events = events_,
                   .gate = gate_,
                   .metrics = parts.metrics,
                   .log = parts.log},
                  {.hpa_sync_period = options.hpa_sync_period}),
      queue_(parts.clock, {}, QueueObserver(parts.metrics)),
      controller_(
          parts.clock, queue_,
          [this](api::NamespacedName key, host::Deadline deadline) {
            return reconciler_.Reconcile(std::move(key), deadline);
          },
          parts.log, {.workers = options.max_concurrent_reconciles},
          [&metrics = parts.metrics](absl::string_view outcome, absl::Duration took,
                                     const absl::Status&) {
            metrics.Reconciled(kQueueName, outcome, took);
            metrics.Step(runtime::LoopStep::kReconcile, took);
          }),
      tasks_(parts.clock, parts.strand) {
  decider_.SetMayAct([this] { return may_write_().ok(); });
  reconciler_.SetMayWrite(may_write_);
  observer_.SetOnRoom([this](const api::NamespacedName& key) { queue_.Add(key); });
}

host::Task<void> LeaderTerm::Run() {
  // Objects that a leader before us decided are polled spread out while the first reconciles run.
  reconciler_.SetSpreadUntil(clock_.SteadyNow() + options_.spread);
  tasks_.Spawn(engine_.Run());
  co_await controller_.Run();
  co_await tasks_.Join();
  registry_.Clear();
  status_.Clear();
  co_await status_.Join();
  co_await events_.Join();
}

void LeaderTerm::Stop() {
  queue_.ShutDown();
  engine_.Stop();
}

void LeaderTerm::Adopt(const std::shared_ptr<const api::ScaledObject>& object) {
  const api::NamespacedName key = object->Key();
  if (status_.Wanted(key) != nullptr && !object->meta.deletion_timestamp) status_.Adopt(*object);
  // One snapshot in memory, not two, while only the status changes.
  polling::TrackedObject* tracked = registry_.Find(key);
  if (tracked != nullptr && api::SameButStatus(*tracked->object, *object)) tracked->object = object;
}

}  // namespace outrigger::controller::reconcile
