// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/strings/string_view.h>

#include <functional>
#include <string>
#include <vector>

#include "host/base/logging.h"
#include "host/client/health_cache.h"
#include "operator/kube/api.h"
#include "operator/polling/cluster_view.h"
#include "operator/polling/target_scaler.h"
#include "operator/polling/tracked_object.h"
#include "operator/runtime/event_recorder.h"
#include "operator/runtime/metrics_sink.h"
#include "operator/runtime/status_writer.h"

namespace outrigger::controller::polling {

// What the leader publishes of failed cycles, so that a status is not written at every poll: the
// largest of 3 and max(1, failureThreshold) that `failed_cycles` has reached, else 0. Every replica
// answers by it.
int32_t PublishedFailures(const api::ScaledObjectSpec& spec, int32_t failed_cycles);

// Turns what the triggers of one object said into its replica count, its status and its events:
// observe, decide (pure, in scaling/), act. The leader's only; one object is in one decision at a
// time. Use on the core strand.
//
// Scaling reads the target live first and decides again on what it finds, so a stale cache never
// lowers a target that the HPA has raised meanwhile; the write names uid and resourceVersion.
// Source: requirements.md R12, R16, R17, R31, R32.
class ObjectDecider {
 public:
  struct Options {
    absl::Duration act_timeout = absl::Seconds(10);
    int conflict_retries = 5;  // of one scaling
  };
  ObjectDecider(host::Clock& clock, const ClusterView& view, const host::HealthCache& health,
                ObjectRegistry& registry, TargetScaler& scaler, runtime::StatusWriter& status,
                runtime::EventRecorder& events, runtime::MetricsSink& metrics, host::Logger log,
                Options options)
      : clock_(clock),
        view_(view),
        health_(health),
        registry_(registry),
        scaler_(scaler),
        status_(status),
        events_(events),
        metrics_(metrics),
        log_(std::move(log)),
        options_(options) {}

  // After each cycle, and after each good answer out of turn. Never fails: what goes wrong is in
  // status, event and log, and the next poll tries again.
  host::Task<void> Decide(api::NamespacedName key);

  // The HPA's status changed: conditions HPAActive and HPAInSync. No request but a status write.
  void ObserveHpa(const api::NamespacedName& key);

  // What is known of each trigger now.
  std::vector<scaling::TriggerFacts> FactsOf(const TrackedObject& object) const;

  // Acting is allowed (leading, and the metrics API is ours). Asked before each write.
  void SetMayAct(std::function<bool()> may_act) { may_act_ = std::move(may_act); }

 private:
  host::Task<void> DecideOnce(api::NamespacedName key, std::string uid);
  host::Task<absl::Status> Act(api::NamespacedName key, std::string uid,
                               scaling::Decision& decision, scaling::DecisionInputs inputs);
  host::Task<absl::Status> ActOnce(const TrackedObject& object, scaling::Decision& decision,
                                   scaling::DecisionInputs& inputs, host::Deadline deadline);
  void AnnounceScaling(const runtime::EventTarget& about, const scaling::Decision& decision,
                       const absl::Status& status);
  scaling::DecisionInputs InputsOf(const TrackedObject& object, int32_t replicas) const;
  api::ScaledObject Snapshot(const TrackedObject& object) const;
  void Publish(TrackedObject& object, const scaling::Decision& decision);
  void PublishHealth(const TrackedObject& object, api::ScaledObjectStatus& status);
  void Announce(const TrackedObject& object, const api::ScaledObjectStatus& before,
                const api::ScaledObjectStatus& after);
  void ObserveAgreement(TrackedObject& object, const api::HorizontalPodAutoscaler& hpa,
                        api::ScaledObjectStatus& status);
  runtime::EventTarget EventTargetOf(const TrackedObject& object) const;

  host::Clock& clock_;
  const ClusterView& view_;
  const host::HealthCache& health_;
  ObjectRegistry& registry_;
  TargetScaler& scaler_;
  runtime::StatusWriter& status_;
  runtime::EventRecorder& events_;
  runtime::MetricsSink& metrics_;
  const host::Logger log_;
  const Options options_;
  std::function<bool()> may_act_ = [] { return true; };
};

}  // namespace outrigger::controller::polling
