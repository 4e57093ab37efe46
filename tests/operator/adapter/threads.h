// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_future.hpp>
#include <thread>
#include <utility>
#include <vector>

#include "host/base/task.h"

namespace outrigger::tests {

// The threads of an operator: an io_context that two of them run, until destruction.
class Threads {
 public:
  Threads() {
    for (int i = 0; i < 2; ++i) threads_.emplace_back([this] { context_.run(); });
  }
  ~Threads() {
    work_.reset();
    context_.stop();
  }

  host::Executor executor() { return context_.get_executor(); }
  host::Executor strand() { return boost::asio::make_strand(context_.get_executor()); }

  // Blocks the calling thread, which is none of these.
  template <typename T>
  T Run(const host::Executor& executor, host::Task<T> task) {
    return boost::asio::co_spawn(executor, std::move(task), boost::asio::use_future).get();
  }

 private:
  boost::asio::io_context context_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{
      context_.get_executor()};
  std::vector<std::jthread> threads_;
};

}  // namespace outrigger::tests
