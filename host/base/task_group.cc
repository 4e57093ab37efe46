// SPDX-License-Identifier: Apache-2.0
#include "host/base/task_group.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <utility>

namespace outrigger::host {

TaskGroup::TaskGroup(Clock& clock, Executor strand) : clock_(clock), strand_(std::move(strand)) {}

Task<void> TaskGroup::Count(std::shared_ptr<State> state, Task<void> task) {
  co_await std::move(task);
  --state->running;
  state->ended.NotifyAll();
}

void TaskGroup::Spawn(Task<void> task) {
  ++state_->running;
  // co_spawn() may run the first part at once when called on the strand; posting keeps the promise
  // of Spawn().
  auto counted = std::make_shared<Task<void>>(Count(state_, std::move(task)));
  boost::asio::post(strand_, [strand = strand_, counted] {
    boost::asio::co_spawn(strand, std::move(*counted), boost::asio::detached);
  });
}

Task<void> TaskGroup::Join() {
  while (state_->running > 0) co_await state_->ended.Wait(clock_);
}

}  // namespace outrigger::host
