// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include "host/base/fake_clock.h"
#include "host/base/task.h"

namespace outrigger::controller {

// Runs the operator's core on the test's thread in virtual time. What is still suspended when it
// goes is dropped, so what coroutines refer to must be declared before it.
class CoreLoop {
 public:
  host::FakeClock& clock() { return clock_; }
  host::Executor executor() { return context_.get_executor(); }

  // Runs all that can run without time passing.
  void Settle() {
    context_.restart();
    context_.poll();
  }
  // Moves the clock timer by timer; after each, runs all that can run.
  void Advance(absl::Duration duration) {
    const host::SteadyTime end = clock_.SteadyNow() + duration;
    Settle();
    while (clock_.AdvanceToNextTimer(end)) Settle();
    clock_.Advance(end - clock_.SteadyNow());
    Settle();
  }
  void Spawn(host::Task<void> task) {
    boost::asio::co_spawn(context_, std::move(task), boost::asio::detached);
  }

  // Runs a task to its end, however much virtual time that takes (an hour at most).
  template <typename T>
  T Run(host::Task<T> task) {
    std::shared_ptr<std::optional<T>> result = Start(std::move(task));
    const host::SteadyTime end = clock_.SteadyNow() + absl::Hours(1);
    Settle();
    while (!result->has_value() && clock_.AdvanceToNextTimer(end)) Settle();
    EXPECT_TRUE(result->has_value()) << "the task did not end within an hour";
    return *std::move(*result);
  }
  // Starts a task; its result appears when it has ended.
  template <typename T>
  std::shared_ptr<std::optional<T>> Start(host::Task<T> task) {
    auto result = std::make_shared<std::optional<T>>();
    boost::asio::co_spawn(context_, std::move(task), [result](const std::exception_ptr&, T value) {
      result->emplace(std::move(value));
    });
    return result;
  }

 private:
  // The clock goes first: what still sleeps on it is handed to the executor when it goes.
  boost::asio::io_context context_;
  host::FakeClock clock_;
};

}  // namespace outrigger::controller
