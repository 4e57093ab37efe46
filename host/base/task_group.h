// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "host/base/clock.h"
#include "host/base/event.h"
#include "host/base/task.h"

namespace outrigger::host {

// Coroutines that their owner starts and later waits for: the one place that spawns. The owner must
// Join() before it goes (a coroutine that nobody joins would touch what is no more). Use from one
// strand.
class TaskGroup {
 public:
  TaskGroup(Clock& clock, Executor strand);

  // Starts `task` on the strand; it runs at the next turn, never inside Spawn().
  void Spawn(Task<void> task);
  // Waits until all have ended, those included that are spawned meanwhile.
  Task<void> Join();
  size_t running() const { return state_->running; }

 private:
  struct State {
    size_t running = 0;
    Event ended;
  };
  static Task<void> Count(std::shared_ptr<State> state, Task<void> task);

  Clock& clock_;
  const Executor strand_;
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace outrigger::host
