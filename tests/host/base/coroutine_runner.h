// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <utility>

#include "host/base/task.h"

namespace outrigger::host {

// Runs coroutines on the calling thread, as far as they can go without the clock moving.
class CoroutineRunner {
 public:
  Executor executor() { return io_.get_executor(); }
  void Start(Task<void> task) {
    boost::asio::co_spawn(io_, std::move(task), boost::asio::detached);
    RunReady();
  }
  // Runs what can run now; returns when all that is left waits for something.
  void RunReady() {
    io_.restart();
    io_.poll();
  }

 private:
  boost::asio::io_context io_{1};
};

}  // namespace outrigger::host
