// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "host/base/clock.h"

namespace outrigger::host {

// Wakes coroutines that wait for something to happen, or for a time.
//
// Thread-safe: Notify() may come from a gRPC callback or a signal thread. A Notify() while nobody
// waits is remembered once, so a waiter that checks its condition, finds nothing and waits never
// misses it. NotifyAll() wakes every present waiter and remembers nothing when there is none but
// one. Cheap to copy: copies share the event, which lives as long as its last copy or timer, so a
// callback may outlive the waiter. A waiter that nothing can wake any more is destroyed with it,
// through its executor, which must outlive the event.
class Event {
 public:
  Event();

  // Wakes one waiter, or lets the next Wait return at once.
  void Notify() const;
  // Wakes all present waiters; with none, lets the next Wait return at once.
  void NotifyAll() const;

  // Returns true when notified, false at `until`. On the caller's executor.
  Task<bool> WaitUntil(Clock& clock, SteadyTime until) const;
  Task<void> Wait(Clock& clock) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace outrigger::host
