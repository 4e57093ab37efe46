// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/time/time.h>

#include <cstdint>
#include <functional>

#include "host/base/clock.h"
#include "host/base/random.h"
#include "operator/kube/memory_api.h"

namespace outrigger::simulation {

// The faults of an API server and its network, while a storm blows; a quota that lets no HPA in
// while it is full; the trace of all calls always.
class ApiWeather : public controller::kube::FaultInjector {
 public:
  using Call = controller::kube::MemoryCall;

  ApiWeather(const host::Clock& clock, uint64_t seed) : clock_(clock), random_(seed) {}

  void SetStorm(bool blows) { storm_ = blows; }
  bool storm() const { return storm_; }
  void SetQuotaFull(bool full) { quota_full_ = full; }
  bool quota_full() const { return quota_full_; }
  // Told of each call that was done, with its outcome.
  void SetOnDone(std::function<void(const Call&, const absl::Status&)> on_done) {
    on_done_ = std::move(on_done);
  }
  uint64_t trace() const { return trace_; }
  int faults() const { return faults_; }
  int quota_refusals() const { return quota_refusals_; }  // which count as faults too
  // Writes since the last reset but those of Deployments and of HPA statuses, which are not the
  // operator's.
  int operator_writes() const { return operator_writes_; }
  void ResetOperatorWrites() { operator_writes_ = 0; }

  Fault BeforeCall(const Call& call) override;
  Fault AfterCall(const Call& call, const absl::Status& outcome) override;
  WatchFault BeforeEvent(const Call& watch, const controller::kube::WatchEvent& event) override;

 private:
  bool Strikes(double probability) { return storm_ && random_.Fraction() < probability; }
  absl::Duration SomeDelay() { return absl::Milliseconds(random_.Next() % 2000); }
  void Trace(const Call& call);

  const host::Clock& clock_;
  host::Random random_;
  bool storm_ = false;
  bool quota_full_ = false;
  std::function<void(const Call&, const absl::Status&)> on_done_;
  uint64_t trace_ = 14695981039346656037ULL;
  int faults_ = 0;
  int quota_refusals_ = 0;
  int operator_writes_ = 0;
};

}  // namespace outrigger::simulation
