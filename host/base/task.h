// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

namespace outrigger::host {

// A coroutine of ours: lazy, started by `co_await` or by co_spawn. Nothing in the operator blocks a
// thread; what waits returns a Task. The executor is whatever the caller runs on: io_context in
// production, a seeded one in simulation.
template <typename T>
using Task = boost::asio::awaitable<T>;

using Executor = boost::asio::any_io_executor;

}  // namespace outrigger::host
