// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/time/time.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "host/base/fake_clock.h"
#include "host/base/task.h"

namespace outrigger::simulation {

// Runs coroutines on the calling thread, in an order drawn from a seed, in virtual time: of all
// that could run now a random one does; only when nothing can, the clock moves to its next timer.
// So one seed is one interleaving, and a failing one replays exactly, as long as everything waits
// through the same FakeClock and draws its randomness from seeds too.
//
// Single-threaded: nothing may be posted from another thread. Handlers that are still queued or
// waiting when this is destroyed are dropped, never run; what they refer to must outlive it, the
// clock included.
class SeededExecutor {
 public:
  SeededExecutor(host::FakeClock& clock, uint64_t seed);
  ~SeededExecutor();
  SeededExecutor(const SeededExecutor&) = delete;
  SeededExecutor& operator=(const SeededExecutor&) = delete;

  host::Executor executor() const;

  // Runs until `done` holds (asked before each turn): true. Until `limit` of virtual time has
  // passed, or nothing is left to wait for: the clock stands at the limit, false.
  bool RunUntil(const std::function<bool()>& done, absl::Duration limit);
  // Runs for that much virtual time.
  void RunFor(absl::Duration duration);

  uint64_t turns() const;  // handlers run so far: equal for equal runs

 private:
  struct State;
  class Handle;

  host::FakeClock& clock_;
  const std::shared_ptr<State> state_;
};

}  // namespace outrigger::simulation
