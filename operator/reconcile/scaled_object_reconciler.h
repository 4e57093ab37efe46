// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/status/statusor.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/base/logging.h"
#include "operator/kube/api.h"
#include "operator/polling/object_decider.h"
#include "operator/polling/poll_engine.h"
#include "operator/polling/target_scaler.h"
#include "operator/polling/trigger_resolver.h"
#include "operator/reconcile/hpa_keeper.h"
#include "operator/reconcile/registered_totals.h"
#include "operator/reconcile/target_finder.h"
#include "operator/reconcile/trigger_observer.h"
#include "operator/runtime/controller.h"
#include "operator/runtime/event_recorder.h"
#include "operator/runtime/status_writer.h"
#include "operator/runtime/write_gate.h"

namespace outrigger::controller::reconcile {

// Brings one ScaledObject's HPA and status to what its spec says, and hands it to the poll engine.
// Three phases:
//
// - admission: all that can be seen without asking anybody; a field that is not supported yet;
// - state: finalizer and label, the target, the triggers: resolve, validate, specs, and tests of
//   all connections in parallel;
// - children: at most one HPA write, and none unless spec, labels, annotations or owner differ;
//
// and one status write at the end. Idempotent: a second run without a change makes no write. An HPA
// is created or changed only when every trigger has a spec, fresh or last good, so none without
// metrics ever exists. The leader's only; on the core strand. Source: requirements.md R3-R12;
// design.md section 5; spec/scaledobject.md section 7.
class ScaledObjectReconciler {
 public:
  struct Options {
    absl::Duration hpa_sync_period = absl::Seconds(15);
    // Where nothing else would bring the object back: its plugin has room again, or gives the spec
    // that it could not give. Both are normally told by an event.
    absl::Duration no_room_retry = absl::Seconds(1);
    // An object that is refused for something else that may change without an event for it is tried
    // this often: a target of a kind that is not watched, an HPA's name that another object has.
    absl::Duration refused_retry = absl::Seconds(30);
    absl::Duration unknown_spec_retry = absl::Seconds(10);
    int hpa_conflict_retries = 5;
  };
  struct Parts {
    host::Clock& clock;
    kube::Api& api;
    const polling::ClusterView& view;
    polling::TriggerResolver& resolver;
    TriggerObserver& observer;
    host::HealthCache& health;
    polling::ObjectRegistry& registry;
    polling::PollEngine& engine;
    polling::ObjectDecider& decider;
    polling::TargetScaler& scaler;
    runtime::StatusWriter& status;
    runtime::EventRecorder& events;
    runtime::WriteGate& gate;
    runtime::MetricsSink& metrics;
    host::Logger log;
  };
  ScaledObjectReconciler(Parts parts, Options options)
      : p_(std::move(parts)),
        options_(options),
        hpas_({.clock = p_.clock,
               .api = p_.api,
               .view = p_.view,
               .gate = p_.gate,
               .metrics = p_.metrics,
               .log = p_.log},
              options.hpa_conflict_retries),
        totals_(p_.metrics),
        targets_(p_.api, p_.scaler) {}

  // As Controller wants it. NOT_FOUND never; INVALID_ARGUMENT: said in the status, waits for a
  // change.
  host::Task<absl::StatusOr<runtime::Result>> Reconcile(api::NamespacedName key,
                                                        host::Deadline deadline);

  // OK, or why nothing may be written at all: the metrics API belongs to somebody else. Asked at
  // each pass.
  void SetMayWrite(std::function<absl::Status()> may_write) { may_write_ = std::move(may_write); }
  // Until this time after a start of leading, objects that somebody decided before are polled
  // spread out.
  void SetSpreadUntil(host::SteadyTime until) { spread_until_ = until; }

 private:
  // Why a pass ends without looking at the triggers and the HPA. An object that ran until then runs
  // on as its last accepted spec says, its HPA does too, unless `stops`.
  struct Refusal {
    std::string reason;
    std::string message;
    bool stops = false;
  };
  using ObjectPtr = std::shared_ptr<const api::ScaledObject>;

  std::optional<Refusal> Admit(const api::ScaledObject& object) const;
  host::Task<absl::Status> EnsureMetadata(ObjectPtr object, host::Deadline deadline);
  host::Task<absl::StatusOr<runtime::Result>> RefuseTarget(ObjectPtr object, absl::Status why,
                                                           host::Deadline deadline);
  host::Task<absl::StatusOr<runtime::Result>> ReconcileState(ObjectPtr object,
                                                             TargetFinder::Target target,
                                                             host::Deadline deadline);
  host::Task<absl::Status> ReconcileHpa(ObjectPtr object, const polling::TrackedObject& tracked,
                                        host::Deadline deadline);
  host::Task<absl::StatusOr<runtime::Result>> Finalize(ObjectPtr object, host::Deadline deadline);
  host::Task<absl::StatusOr<runtime::Result>> Refuse(ObjectPtr object, Refusal refusal,
                                                     absl::Status result, host::Deadline deadline);
  // Its HPA was what this spec says, when we last looked.
  bool HpaIsOf(const api::ScaledObject& object) const;
  polling::TrackedObject MakeTracked(ObjectPtr object, const polling::ResolvedObject& resolved,
                                     const api::GroupVersionKindResource& target) const;
  void Track(polling::TrackedObject next);
  // `hpa`: what came of it, to be told in Ready unless it `passes`.
  void WriteFacts(const polling::TrackedObject& tracked, int32_t replicas, const absl::Status& hpa,
                  bool passes);
  void AnnounceReady(const api::ScaledObject& object, const api::Condition* before,
                     const api::Condition* after);
  void Untrack(const api::NamespacedName& key);
  void ForgetAll(const api::NamespacedName& key);
  void RestorePublished(const polling::TrackedObject& tracked);

  Parts p_;
  const Options options_;
  HpaKeeper hpas_;
  RegisteredTotals totals_;
  TargetFinder targets_;
  std::function<absl::Status()> may_write_ = [] { return absl::OkStatus(); };
  host::SteadyTime spread_until_ = host::SteadyTime::InfinitePast();
  std::string refused_because_;                      // the last answer of may_write_, logged once
  std::map<api::NamespacedName, std::string> uids_;  // of the objects that were seen, to forget by
};

}  // namespace outrigger::controller::reconcile
