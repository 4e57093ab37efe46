// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/time/time.h>

#include <compare>
#include <cstdint>
#include <functional>

#include "host/base/task.h"

namespace outrigger::host {

// A moment of a clock that never jumps; only differences mean something. Counts through suspend
// where the system can tell (CLOCK_BOOTTIME), so that a process that was stopped knows that its
// lease is over.
class SteadyTime {
 public:
  SteadyTime() = default;
  explicit SteadyTime(absl::Duration since_epoch) : since_epoch_(since_epoch) {}

  static SteadyTime InfiniteFuture() { return SteadyTime(absl::InfiniteDuration()); }
  static SteadyTime InfinitePast() { return SteadyTime(-absl::InfiniteDuration()); }
  absl::Duration since_epoch() const { return since_epoch_; }

  friend SteadyTime operator+(SteadyTime t, absl::Duration d) {
    return SteadyTime(t.since_epoch_ + d);
  }
  friend SteadyTime operator-(SteadyTime t, absl::Duration d) {
    return SteadyTime(t.since_epoch_ - d);
  }
  friend absl::Duration operator-(SteadyTime a, SteadyTime b) {
    return a.since_epoch_ - b.since_epoch_;
  }
  friend bool operator==(SteadyTime a, SteadyTime b) { return a.since_epoch_ == b.since_epoch_; }
  friend bool operator<(SteadyTime a, SteadyTime b) { return a.since_epoch_ < b.since_epoch_; }
  friend bool operator>(SteadyTime a, SteadyTime b) { return b < a; }
  friend bool operator<=(SteadyTime a, SteadyTime b) { return !(b < a); }
  friend bool operator>=(SteadyTime a, SteadyTime b) { return !(a < b); }

 private:
  absl::Duration since_epoch_ = absl::ZeroDuration();
};

// All time comes from here. Two nows: WallNow() for what people and the API server read,
// SteadyNow() for ages, backoff and deadlines.
//
// Thread-safe. Timers are the primitive on which SleepUntil() and Event are built: a callback runs
// exactly once, on an unspecified thread, unless CancelTimer() returned true. Callbacks must not
// block; they post.
class Clock {
 public:
  using TimerId = uint64_t;
  virtual ~Clock() = default;

  virtual absl::Time WallNow() const = 0;
  virtual SteadyTime SteadyNow() const = 0;

  virtual TimerId AddTimer(SteadyTime at, std::function<void()> callback) = 0;
  // True: the callback will never run. False: it has run, or is about to.
  virtual bool CancelTimer(TimerId id) = 0;

  // Returns at `t` on the caller's executor. Not cancellable: whoever must be able to stop waits on
  // an Event.
  Task<void> SleepUntil(SteadyTime t);
  Task<void> Sleep(absl::Duration d) { return SleepUntil(SteadyNow() + d); }
};

}  // namespace outrigger::host
