// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>
#include <absl/time/time.h>

#include <atomic>
#include <boost/json/value.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "host/base/clock.h"
#include "host/base/event.h"
#include "host/base/logging.h"
#include "host/base/random.h"
#include "operator/kube/api.h"
#include "operator/kube/lease_record.h"

namespace outrigger::controller::kube {

// Decides by a Lease object which replica leads, as the Go client's leaderelection does, so that
// `kubectl get lease` reads the same.
//
// A holder is judged by when we saw its record change, not by the times in it, which are of its own
// clock: who has not changed it for its lease duration has lost it; an empty holder has released
// it. What we ourselves hold lasts for the lease duration from before our last successful write was
// sent, so we stop before anybody may take it. Times are steady and count while the process is
// stopped (CLOCK_BOOTTIME): one that was stopped for longer finds that it leads no more before it
// does anything else.
//
// Losing the lease does not end the process: it contends again (case B071 of the public bug
// reports). Used by Manager. Run(), Stop() and the callbacks are on one strand; MayWrite(),
// WritesEnd() and leading() may be asked on any thread. Api must be the real one, not FencedApi.
// Source: requirements.md R25; design.md section 5, StatusWriter.
class LeaderElector {
 public:
  struct Options {
    std::string namespace_name = "outrigger";
    std::string name = "outrigger-operator";
    std::string identity;  // unique to this process
    absl::Duration lease_duration = absl::Seconds(15);
    absl::Duration renew_deadline = absl::Seconds(10);  // without a renewal: stop leading
    absl::Duration retry_period = absl::Seconds(2);     // the most between two tries; jittered
    // Writes end this long before the lease does: for a request that the server still works on
    // when we have given it up, and for clocks that do not run alike.
    absl::Duration write_margin = absl::Seconds(1);
  };
  struct Callbacks {
    std::function<void()> on_started_leading;
    // Awaited before the lease is released or contended for again: ends the work of the leader.
    // After a Stop() the lease is still held meanwhile, so the last writes may be done.
    std::function<host::Task<void>()> on_stopped_leading;
    // After a Stop(), awaited once no write may begin any more: whether all that began have ended.
    // False: the lease is not released, for they might come after another's. Empty: they have.
    std::function<host::Task<bool>()> writes_ended;
    std::function<void(const std::string& holder)> on_new_leader;  // also of ourselves
  };

  LeaderElector(host::Clock& clock, Api& api, host::Random random, const host::Logger& log,
                Options options, Callbacks callbacks);

  // Once. Contends until Stop(), then stops leading, releases the lease and returns.
  host::Task<void> Run();
  void Stop();

  bool leading() const { return WritesEnd() != host::SteadyTime::InfinitePast(); }
  // When each write must have ended; InfinitePast while not leading.
  host::SteadyTime WritesEnd() const;
  // Whether there is time for a write now.
  bool MayWrite() const { return clock_.SteadyNow() < WritesEnd(); }
  // Who holds the lease, as far as seen; "" = nobody. On the strand.
  const std::string& holder() const { return record_.holder; }

 private:
  enum class End { kLost, kStopping };

  host::Task<bool> Acquire();
  host::Task<End> KeepRenewing();
  host::Task<void> StopLeading(End why);
  host::Task<void> Release();

  // One try each; FAILED_PRECONDITION: somebody else holds it.
  host::Task<absl::Status> TryToAcquire();
  host::Task<absl::Status> TryToRenew(host::Deadline deadline);
  host::Task<absl::Status> Read(host::Deadline deadline);
  host::Task<absl::Status> Write(LeaseRecord record, host::Deadline deadline);

  void Observe(boost::json::value lease);
  bool HeldByOther() const;
  host::SteadyTime HolderExpires() const;
  LeaseRecord OwnRecord() const;
  void SetLeading(bool leading);
  void LogOnce(const absl::Status& status);
  host::Task<void> WaitUntil(host::SteadyTime until);

  host::Clock& clock_;
  Api& api_;
  host::Random random_;
  const host::Logger log_;
  const Options options_;
  const Callbacks callbacks_;

  host::Event wake_;
  bool stopping_ = false;
  std::optional<boost::json::value> lease_;  // as last seen; nullopt: there is none
  LeaseRecord record_;                       // its spec
  host::SteadyTime observed_at_ = host::SteadyTime::InfinitePast();  // when record_ last changed
  host::SteadyTime renewed_at_ = host::SteadyTime::InfinitePast();   // before our write was sent
  std::string logged_;
  static constexpr int64_t kNotLeading = INT64_MIN;
  std::atomic<int64_t> writes_end_ns_ = kNotLeading;
};

}  // namespace outrigger::controller::kube
