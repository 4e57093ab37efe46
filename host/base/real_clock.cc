// SPDX-License-Identifier: Apache-2.0
#include "host/base/real_clock.h"

#include <absl/time/clock.h>
#include <time.h>

#include <algorithm>
#include <chrono>

namespace outrigger::host {

RealClock::RealClock() : thread_([this] { Run(); }) {}

RealClock::~RealClock() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

absl::Time RealClock::WallNow() const { return absl::Now(); }

SteadyTime RealClock::SteadyNow() const {
  timespec now = {};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return SteadyTime(absl::Seconds(now.tv_sec) + absl::Nanoseconds(now.tv_nsec));
}

Clock::TimerId RealClock::AddTimer(SteadyTime at, std::function<void()> callback) {
  bool is_first = false;
  TimerId id = 0;
  {
    MutexLock lock(&mutex_);
    id = next_id_++;
    auto it = timers_.emplace(at.since_epoch(), std::make_pair(id, std::move(callback)));
    by_id_.emplace(id, it);
    is_first = it == timers_.begin();
  }
  if (is_first) changed_.notify_all();
  return id;
}

bool RealClock::CancelTimer(TimerId id) {
  std::function<void()> dropped;  // goes after the lock: what it holds may call us when it goes
  MutexLock lock(&mutex_);
  auto it = by_id_.find(id);
  if (it == by_id_.end()) return false;
  dropped = std::move(it->second->second.second);
  timers_.erase(it->second);
  by_id_.erase(it);
  return true;
}

void RealClock::Run() {
  // condition_variable waits on CLOCK_MONOTONIC; a look once a second catches time spent suspended.
  constexpr absl::Duration kLongestWait = absl::Seconds(1);
  while (true) {
    std::function<void()> due;
    {
      MutexLock lock(&mutex_);
      if (stopping_) return;
      const absl::Duration now = SteadyNow().since_epoch();
      if (!timers_.empty() && timers_.begin()->first <= now) {
        auto it = timers_.begin();
        due = std::move(it->second.second);
        by_id_.erase(it->second.first);
        timers_.erase(it);
      } else {
        const absl::Duration first = timers_.empty() ? kLongestWait : timers_.begin()->first - now;
        const absl::Duration head =
            timers_.empty() ? absl::InfiniteDuration() : timers_.begin()->first;
        lock.WaitFor(changed_, absl::ToChronoNanoseconds(std::min(first, kLongestWait)),
                     [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
                       return stopping_ || (!timers_.empty() && timers_.begin()->first < head);
                     });
      }
    }
    if (due) due();
  }
}

}  // namespace outrigger::host
