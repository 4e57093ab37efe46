// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/operator_core.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

#include "host/base/secret.h"

namespace outrigger::controller::reconcile {
namespace {

constexpr size_t kFingerprintKeyBytes = 32;

ClusterInformers::Options InformerOptions(const OperatorCore::Options& options) {
  ClusterInformers::Options informers = options.informers;
  informers.cluster_object_namespace = options.own_namespace;
  return informers;
}

}  // namespace

OperatorCore::OperatorCore(Parts parts, Options options)
    : p_(std::move(parts)),
      options_(std::move(options)),
      health_(p_.clock, {}),
      informers_(p_.clock, p_.api, p_.strand, host::Random(options_.term.seed + 1), p_.log,
                 p_.metrics, InformerOptions(options_), MakeListener()),
      resolver_(p_.api, informers_, p_.scalers,
                {.fingerprint_key = host::RandomBytes(kFingerprintKeyBytes),
                 .cluster_object_namespace = options_.own_namespace}),
      gate_(p_.clock),
      scaler_(p_.clock, p_.api, informers_, gate_),
      source_(p_.clock, informers_, resolver_, p_.scalers, health_, scaler_,
              {.metric_freshness = options_.metric_freshness,
               .scaler_timeout = options_.term.scaler_timeout}),
      tasks_(p_.clock, p_.strand) {
  source_.SetOnAnswer([this](const api::NamespacedName& key, uint32_t trigger_index,
                             const host::MetricsAnswer& answer, absl::Duration took) {
    if (term_ != nullptr) term_->AnsweredLive(key, trigger_index, answer, took);
  });
  source_.SetRunning([this](const api::NamespacedName& key) {
    const polling::TrackedObject* tracked =
        term_ == nullptr ? nullptr : term_->registry().Find(key);
    return tracked == nullptr ? nullptr : tracked->object;
  });
  p_.scalers.SetChangeListener(
      [this](const std::vector<std::string>& types) { OnPluginChange(types); });
}

OperatorCore::~OperatorCore() = default;

ClusterInformers::Listener OperatorCore::MakeListener() {
  return {.reconcile =
              [this](const api::NamespacedName& key) {
                if (term_ != nullptr) term_->Enqueue(key);
              },
          .seen =
              [this](const std::shared_ptr<const api::ScaledObject>& object) {
                if (term_ != nullptr) term_->Adopt(object);
              },
          .gone =
              [this](const std::string& uid) {
                health_.Forget(uid);  // a standby, too, reads and remembers
                resolver_.Forget(uid);
              },
          .hpa_changed =
              [this](const api::NamespacedName& key) {
                if (term_ != nullptr) term_->ObserveHpa(key);
              },
          .users_of = [this](const std::string& reference) { return resolver_.UsersOf(reference); },
          .api_service_changed = [this] { EnqueueAll(); }};
}

absl::Status OperatorCore::MayWrite() const {
  const std::string service = informers_.MetricsService();
  const std::string ours = absl::StrCat(options_.own_namespace, "/", options_.metrics_service);
  if (service.empty() || service == ours || options_.take_over) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "APIService v1beta1.external.metrics.k8s.io: want Service ", ours, ", got ", service,
      ", which is somebody else's; the operator only watches until it is ours, or with "
      "--take-over"));
}

host::Task<void> OperatorCore::Run() {
  co_await informers_.Run();
  co_await StopLeading(host::Deadline::Never());
  co_await tasks_.Join();
}

void OperatorCore::Stop() { informers_.Stop(); }

void OperatorCore::StartLeading() {
  if (term_running_) return;
  // What this replica learnt as a standby was never counted; what it counted in a term before is of
  // the past.
  health_.Clear();
  term_ =
      std::make_shared<LeaderTerm>(LeaderTerm::Parts{.clock = p_.clock,
                                                     .api = p_.leader_api,
                                                     .view = informers_,
                                                     .scalers = p_.scalers,
                                                     .health = health_,
                                                     .resolver = resolver_,
                                                     .metrics = p_.metrics,
                                                     .strand = p_.strand,
                                                     .log = p_.log,
                                                     .may_write = [this] { return MayWrite(); }},
                                   options_.term);
  term_running_ = true;
  p_.metrics.Leading(true);
  EnqueueAll();
  tasks_.Spawn(RunTerm(term_));
}

host::Task<void> OperatorCore::RunTerm(std::shared_ptr<LeaderTerm> term) {
  co_await term->Run();
  // Nobody polls here any more, so a failure would never be forgiven: reads ask for themselves.
  health_.Clear();
  term_running_ = false;
  term_ended_.NotifyAll();
}

host::Task<void> OperatorCore::StopLeading(host::Deadline patience) {
  if (term_ != nullptr) {
    term_->Stop();
    term_ = nullptr;
    p_.metrics.Leading(false);
  }
  while (term_running_ && !patience.Expired(p_.clock)) {
    co_await term_ended_.WaitUntil(p_.clock, patience.time());
  }
}

void OperatorCore::EnqueueAll() {
  if (term_ == nullptr) return;
  for (const api::NamespacedName& key : informers_.ScaledObjectKeys()) term_->Enqueue(key);
}

// A plugin that connects, goes or announces something else: its objects are new work.
void OperatorCore::OnPluginChange(const std::vector<std::string>& types) {
  if (term_ == nullptr) return;
  for (const api::NamespacedName& key : informers_.ScaledObjectKeys()) {
    const auto object = informers_.ScaledObject(key);
    const bool concerned =
        object != nullptr &&
        std::any_of(object->spec.triggers.begin(), object->spec.triggers.end(),
                    [&](const api::Trigger& trigger) {
                      return std::find(types.begin(), types.end(), trigger.type) != types.end();
                    });
    if (concerned) term_->Enqueue(key);
  }
}

}  // namespace outrigger::controller::reconcile
