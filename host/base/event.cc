// SPDX-License-Identifier: Apache-2.0
#include "host/base/event.h"

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <functional>
#include <list>
#include <optional>
#include <utility>

#include "host/base/mutex.h"

namespace outrigger::host {

struct Event::State {
  struct Waiter {
    uint64_t id = 0;
    std::function<void(bool)> resume;  // posts to the waiter's executor
    std::optional<Clock::TimerId> timer;
    Clock* clock = nullptr;
  };

  Mutex mutex;
  bool pending ABSL_GUARDED_BY(mutex) = false;
  uint64_t next_id ABSL_GUARDED_BY(mutex) = 0;
  std::list<Waiter> waiters ABSL_GUARDED_BY(mutex);

  std::optional<Waiter> Take(uint64_t id) {
    MutexLock lock(&mutex);
    for (auto it = waiters.begin(); it != waiters.end(); ++it) {
      if (it->id != id) continue;
      Waiter waiter = std::move(*it);
      waiters.erase(it);
      return waiter;
    }
    return std::nullopt;
  }

  static void Resume(Waiter waiter, bool notified) {
    if (waiter.timer) waiter.clock->CancelTimer(*waiter.timer);
    waiter.resume(notified);
  }

  // Whoever takes the waiter off the list resumes it, so a timer and a Notify() never both do.
  static void Start(const std::shared_ptr<State>& self, Clock& clock, SteadyTime until,
                    const std::function<void(bool)>& resume) {
    uint64_t id = 0;
    {
      MutexLock lock(&self->mutex);
      if (!self->pending) {
        id = ++self->next_id;
        self->waiters.push_back({.id = id, .resume = resume});
      }
      self->pending = false;
    }
    if (id == 0) return resume(true);
    if (until == SteadyTime::InfiniteFuture()) return;
    const Clock::TimerId timer = clock.AddTimer(until, [self, id] {
      if (std::optional<Waiter> waiter = self->Take(id)) waiter->resume(false);
    });
    MutexLock lock(&self->mutex);
    for (Waiter& waiter : self->waiters) {
      if (waiter.id != id) continue;
      waiter.timer = timer;
      waiter.clock = &clock;
      return;
    }
    // Resumed meanwhile; a timer that is left over finds nobody.
    clock.CancelTimer(timer);
  }
};

Event::Event() : state_(std::make_shared<State>()) {}

void Event::Notify() const {
  std::optional<State::Waiter> waiter;
  {
    MutexLock lock(&state_->mutex);
    if (state_->waiters.empty()) {
      state_->pending = true;
      return;
    }
    waiter = std::move(state_->waiters.front());
    state_->waiters.pop_front();
  }
  State::Resume(*std::move(waiter), true);
}

void Event::NotifyAll() const {
  std::list<State::Waiter> waiters;
  {
    MutexLock lock(&state_->mutex);
    waiters.swap(state_->waiters);
    if (waiters.empty()) state_->pending = true;
  }
  for (State::Waiter& waiter : waiters) State::Resume(std::move(waiter), true);
}

Task<bool> Event::WaitUntil(Clock& clock, SteadyTime until) const {
  // The waiter's frame must not own the state, which owns the waiter: a frame that nobody can wake
  // any more goes with the last copy of the Event (and its timer). The initiation runs before
  // WaitUntil() suspends, while the Event is there.
  auto initiate = [state = std::weak_ptr<State>(state_), &clock, until](auto handler) {
    auto shared = std::make_shared<decltype(handler)>(std::move(handler));
    State::Start(state.lock(), clock, until, [shared](bool notified) {
      auto executor = boost::asio::get_associated_executor(*shared);
      boost::asio::post(executor, [shared, notified] { std::move (*shared)(notified); });
    });
  };
  const bool notified =
      co_await boost::asio::async_initiate<const boost::asio::use_awaitable_t<>, void(bool)>(
          std::move(initiate), boost::asio::use_awaitable);
  co_return notified;
}

Task<void> Event::Wait(Clock& clock) const {
  co_await WaitUntil(clock, SteadyTime::InfiniteFuture());
}

}  // namespace outrigger::host
