// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/lease.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <utility>

#include "host/base/status.h"

namespace outrigger::controller::kube {
namespace {

// A lease of another that says nothing sensible is believed no longer than this.
constexpr absl::Duration kLongestForeignLease = absl::Minutes(1);

}  // namespace

LeaderElector::LeaderElector(host::Clock& clock, Api& api, host::Random random,
                             const host::Logger& log, Options options, Callbacks callbacks)
    : clock_(clock),
      api_(api),
      random_(random),
      log_(log.With({{"lease", absl::StrCat(options.namespace_name, "/", options.name)},
                     {"identity", options.identity}})),
      options_(std::move(options)),
      callbacks_(std::move(callbacks)) {}

void LeaderElector::Stop() {
  stopping_ = true;
  wake_.NotifyAll();
}

host::SteadyTime LeaderElector::WritesEnd() const {
  const int64_t end = writes_end_ns_.load(std::memory_order_acquire);
  return end == kNotLeading ? host::SteadyTime::InfinitePast()
                            : host::SteadyTime(absl::Nanoseconds(end));
}

host::Task<void> LeaderElector::Run() {
  while (true) {
    const bool acquired = co_await Acquire();
    if (!acquired) co_return;
    log_.Info("leading");
    if (callbacks_.on_started_leading) callbacks_.on_started_leading();
    const End end = co_await KeepRenewing();
    co_await StopLeading(end);
    if (stopping_) co_return;
  }
}

// False: stopping.
host::Task<bool> LeaderElector::Acquire() {
  while (!stopping_) {
    absl::Status status = co_await TryToAcquire();
    if (status.ok()) {
      SetLeading(true);
      logged_.clear();
      co_return true;
    }
    LogOnce(status);
    // Jitter keeps two candidates apart; whoever comes second sees a conflict.
    const host::SteadyTime now = clock_.SteadyNow();
    host::SteadyTime next = now + random_.Jitter(options_.retry_period);
    if (HeldByOther() && HolderExpires() > now) next = std::min(next, HolderExpires());
    co_await WaitUntil(next);
  }
  co_return false;
}

host::Task<LeaderElector::End> LeaderElector::KeepRenewing() {
  while (true) {
    const host::SteadyTime give_up = renewed_at_ + options_.renew_deadline;
    const host::SteadyTime next = clock_.SteadyNow() + random_.Jitter(options_.retry_period);
    co_await WaitUntil(std::min(next, give_up));
    if (stopping_) co_return End::kStopping;
    // Also when the process was stopped: it must not write before it has noticed.
    if (clock_.SteadyNow() >= give_up) co_return End::kLost;
    const host::Deadline deadline =
        host::Deadline::At(give_up).Within(clock_, options_.renew_deadline / 2);
    absl::Status status = co_await TryToRenew(deadline);
    LogOnce(status);
    if (absl::IsFailedPrecondition(status)) co_return End::kLost;
  }
}

host::Task<void> LeaderElector::StopLeading(End why) {
  if (why == End::kLost) {
    SetLeading(false);
    log_.Warning("no longer leading", {{"holder", record_.holder}});
  }
  if (callbacks_.on_stopped_leading) co_await callbacks_.on_stopped_leading();
  if (why == End::kLost) co_return;
  const bool held = MayWrite();
  SetLeading(false);
  bool ended = true;
  if (callbacks_.writes_ended) ended = co_await callbacks_.writes_ended();
  if (!ended) log_.Warning("lease not released: writes are under way; it ends by itself");
  if (held && ended) co_await Release();
}

host::Task<void> LeaderElector::Release() {
  // As the Go client: an empty holder and one second, so that older readers take it at once too.
  LeaseRecord record = record_;
  record.holder.clear();
  record.duration = absl::Seconds(1);
  record.renewed = clock_.WallNow();
  const host::Deadline deadline =
      host::Deadline::At(renewed_at_ + options_.lease_duration).Within(clock_, absl::Seconds(2));
  absl::Status status = co_await Write(std::move(record), deadline);
  if (status.ok()) {
    log_.Info("lease released");
  } else {
    log_.Warning("lease not released; it ends by itself", {{"error", host::Describe(status)}});
  }
}

host::Task<absl::Status> LeaderElector::TryToAcquire() {
  const host::Deadline deadline = host::Deadline::After(clock_, options_.renew_deadline / 2);
  CO_RETURN_IF_ERROR(co_await Read(deadline));
  if (HeldByOther() && clock_.SteadyNow() < HolderExpires()) {
    co_return absl::FailedPreconditionError(absl::StrCat("held by ", record_.holder));
  }
  absl::Status status = co_await Write(OwnRecord(), deadline);
  co_return status;
}

host::Task<absl::Status> LeaderElector::TryToRenew(host::Deadline deadline) {
  absl::Status status = co_await Write(OwnRecord(), deadline);
  if (!absl::IsAborted(status) && !absl::IsNotFound(status) && !absl::IsAlreadyExists(status)) {
    co_return status;
  }
  // Somebody else changed it: a holder, or only a label. Or our own write was done, but its answer
  // was lost.
  CO_RETURN_IF_ERROR(co_await Read(deadline));
  if (HeldByOther() || (lease_ && record_.holder.empty())) {
    co_return absl::FailedPreconditionError(absl::StrCat(
        "taken by ", record_.holder.empty() ? "nobody: somebody released it" : record_.holder));
  }
  status = co_await Write(OwnRecord(), deadline);
  co_return status;
}

host::Task<absl::Status> LeaderElector::Read(host::Deadline deadline) {
  absl::StatusOr<boost::json::value> lease =
      co_await api_.Get(Leases(), options_.namespace_name, options_.name, "", deadline);
  if (absl::IsNotFound(lease.status())) {
    lease_.reset();
    record_ = {};
    co_return absl::OkStatus();
  }
  CO_RETURN_IF_ERROR(lease.status());
  Observe(*std::move(lease));
  co_return absl::OkStatus();
}

host::Task<absl::Status> LeaderElector::Write(LeaseRecord record, host::Deadline deadline) {
  const host::SteadyTime sent_at = clock_.SteadyNow();
  absl::StatusOr<boost::json::value> written;
  if (lease_) {
    boost::json::value lease = WithRecord(*lease_, record);
    written = co_await api_.Update(Leases(), options_.namespace_name, options_.name,
                                   std::move(lease), {}, deadline);
  } else {
    boost::json::value lease = MakeLease(options_.namespace_name, options_.name, record);
    written =
        co_await api_.Create(Leases(), options_.namespace_name, std::move(lease), {}, deadline);
  }
  CO_RETURN_IF_ERROR(written.status());
  Observe(*std::move(written));
  if (record_.holder == options_.identity) {
    renewed_at_ = sent_at;
    if (leading()) SetLeading(true);
  }
  co_return absl::OkStatus();
}

void LeaderElector::Observe(boost::json::value lease) {
  LeaseRecord record = ParseLease(lease);
  const bool new_holder = record.holder != record_.holder;
  if (!lease_ || record != record_) observed_at_ = clock_.SteadyNow();
  record_ = std::move(record);
  lease_ = std::move(lease);
  if (new_holder && !record_.holder.empty() && callbacks_.on_new_leader) {
    callbacks_.on_new_leader(record_.holder);
  }
}

bool LeaderElector::HeldByOther() const {
  return lease_ && !record_.holder.empty() && record_.holder != options_.identity;
}

host::SteadyTime LeaderElector::HolderExpires() const {
  const bool sensible = record_.duration > absl::ZeroDuration();
  const absl::Duration duration = sensible ? record_.duration : options_.lease_duration;
  return observed_at_ + std::min(duration, kLongestForeignLease);
}

LeaseRecord LeaderElector::OwnRecord() const {
  LeaseRecord record = record_;
  record.renewed = clock_.WallNow();
  record.duration = options_.lease_duration;
  if (record.holder == options_.identity) return record;
  // As the Go client: a new Lease counts from 0, each change of the holder adds one.
  if (lease_) ++record.transitions;
  record.holder = options_.identity;
  record.acquired = record.renewed;
  return record;
}

void LeaderElector::SetLeading(bool leading) {
  const host::SteadyTime end = renewed_at_ + options_.lease_duration - options_.write_margin;
  writes_end_ns_.store(leading ? absl::ToInt64Nanoseconds(end.since_epoch()) : kNotLeading,
                       std::memory_order_release);
}

// Tries come each second or two; a line for each would hide the others.
void LeaderElector::LogOnce(const absl::Status& status) {
  std::string text = status.ok() ? "" : host::Describe(status);
  if (text == logged_) return;
  logged_ = std::move(text);
  if (status.ok()) {
    log_.Info("the lease can be renewed again");
  } else if (absl::IsFailedPrecondition(status)) {
    log_.Info("waiting for the lease", {{"holder", record_.holder}});
  } else {
    log_.Warning("the lease cannot be read or written", {{"error", logged_}});
  }
}

host::Task<void> LeaderElector::WaitUntil(host::SteadyTime until) {
  while (!stopping_ && clock_.SteadyNow() < until) co_await wake_.WaitUntil(clock_, until);
}

}  // namespace outrigger::controller::kube
