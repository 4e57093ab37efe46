// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <utility>

#include "host/base/clock.h"
#include "host/base/mutex.h"

namespace outrigger::host {

// A Clock that stands still until a test moves it. Thread-safe. Advance() runs the timers that
// become due, in order of time and then of creation, on the calling thread, each at its own time.
class FakeClock : public Clock {
 public:
  explicit FakeClock(absl::Time wall = absl::FromUnixSeconds(1'700'000'000))
      : wall_at_zero_(wall) {}

  absl::Time WallNow() const override;
  SteadyTime SteadyNow() const override;
  TimerId AddTimer(SteadyTime at, std::function<void()> callback) override;
  bool CancelTimer(TimerId id) override;

  void Advance(absl::Duration d);
  // Moves to the next timer and runs it. False: there is none (or none at or before `limit`,
  // or only such as never become due).
  bool AdvanceToNextTimer(SteadyTime limit = SteadyTime::InfiniteFuture());

 private:
  using Key = std::pair<SteadyTime, TimerId>;
  struct KeyLess {
    bool operator()(const Key& a, const Key& b) const {
      return a.first < b.first || (a.first == b.first && a.second < b.second);
    }
  };

  const absl::Time wall_at_zero_;
  mutable Mutex mutex_;
  SteadyTime now_ ABSL_GUARDED_BY(mutex_);
  TimerId next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<Key, std::function<void()>, KeyLess> timers_ ABSL_GUARDED_BY(mutex_);
  std::map<TimerId, SteadyTime> times_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace outrigger::host
