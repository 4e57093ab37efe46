// SPDX-License-Identifier: Apache-2.0
#include "host/base/fake_clock.h"

#include <algorithm>

namespace outrigger::host {

absl::Time FakeClock::WallNow() const {
  MutexLock lock(&mutex_);
  return wall_at_zero_ + now_.since_epoch();
}

SteadyTime FakeClock::SteadyNow() const {
  MutexLock lock(&mutex_);
  return now_;
}

Clock::TimerId FakeClock::AddTimer(SteadyTime at, std::function<void()> callback) {
  {
    MutexLock lock(&mutex_);
    if (at > now_) {
      const TimerId id = next_id_++;
      timers_.emplace(Key(at, id), std::move(callback));
      times_.emplace(id, at);
      return id;
    }
  }
  callback();
  return 0;
}

bool FakeClock::CancelTimer(TimerId id) {
  std::function<void()> dropped;  // goes after the lock: what it holds may call us when it goes
  MutexLock lock(&mutex_);
  auto it = times_.find(id);
  if (it == times_.end()) return false;
  auto timer = timers_.find(Key(it->second, id));
  dropped = std::move(timer->second);
  timers_.erase(timer);
  times_.erase(it);
  return true;
}

bool FakeClock::AdvanceToNextTimer(SteadyTime limit) {
  std::function<void()> callback;
  {
    MutexLock lock(&mutex_);
    if (timers_.empty()) return false;
    const SteadyTime next = timers_.begin()->first.first;
    if (next > limit || next == SteadyTime::InfiniteFuture()) return false;
    auto it = timers_.begin();
    now_ = std::max(now_, it->first.first, [](SteadyTime a, SteadyTime b) { return a < b; });
    callback = std::move(it->second);
    times_.erase(it->first.second);
    timers_.erase(it);
  }
  callback();
  return true;
}

void FakeClock::Advance(absl::Duration d) {
  const SteadyTime target = SteadyNow() + d;
  while (AdvanceToNextTimer(target)) {
  }
  MutexLock lock(&mutex_);
  if (now_ < target) now_ = target;
}

}  // namespace outrigger::host
