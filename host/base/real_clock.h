// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <thread>
#include <utility>

#include "host/base/clock.h"
#include "host/base/mutex.h"

namespace outrigger::host {

// The system's clocks, with one thread that runs due timers. Made in main() only (a lint sees to
// it). Steady time is CLOCK_BOOTTIME. At destruction timers that are not due are dropped; whoever
// waits on them must have ended before.
class RealClock : public Clock {
 public:
  RealClock();
  ~RealClock() override;

  absl::Time WallNow() const override;
  SteadyTime SteadyNow() const override;
  TimerId AddTimer(SteadyTime at, std::function<void()> callback) override;
  bool CancelTimer(TimerId id) override;

 private:
  void Run();

  Mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  TimerId next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  std::multimap<absl::Duration, std::pair<TimerId, std::function<void()>>> timers_
      ABSL_GUARDED_BY(mutex_);
  std::map<TimerId,
           std::multimap<absl::Duration, std::pair<TimerId, std::function<void()>>>::iterator>
      by_id_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace outrigger::host
