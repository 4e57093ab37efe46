// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <exception>
#include <functional>
#include <optional>
#include <utility>

#include "host/base/task.h"

namespace outrigger::tests {

// Runs Tasks to their end on the test's thread. One thread.
class TaskRunner {
 public:
  host::Executor executor() { return context_.get_executor(); }

  // Blocks until it has ended; other tasks that were Spawn()ed run meanwhile.
  template <typename T>
  T Run(host::Task<T> task) {
    std::optional<T> result;
    boost::asio::co_spawn(context_, std::move(task), [&](const std::exception_ptr& error, T value) {
      if (error) std::rethrow_exception(error);
      result.emplace(std::move(value));
    });
    context_.restart();
    while (!result.has_value()) context_.run_one();
    return *std::move(result);
  }

  void Spawn(host::Task<void> task) {
    ++running_;
    boost::asio::co_spawn(context_, std::move(task), [this](const std::exception_ptr& error) {
      --running_;
      if (error) std::rethrow_exception(error);
    });
  }

  // Runs all that is ready now.
  void RunReady() {
    context_.restart();
    context_.poll();
  }
  // How many Spawn()ed tasks have not ended.
  int running() const { return running_; }

 private:
  boost::asio::io_context context_;
  int running_ = 0;
};

}  // namespace outrigger::tests
