// SPDX-License-Identifier: Apache-2.0
#include "host/base/clock.h"

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <memory>

namespace outrigger::host {

Task<void> Clock::SleepUntil(SteadyTime t) {
  auto initiate = [this, t](auto handler) {
    // std::function must be copyable, a handler is not.
    auto shared = std::make_shared<decltype(handler)>(std::move(handler));
    AddTimer(t, [shared] {
      auto executor = boost::asio::get_associated_executor(*shared);
      boost::asio::post(executor, [shared] { std::move (*shared)(); });
    });
  };
  co_await boost::asio::async_initiate<const boost::asio::use_awaitable_t<>, void()>(
      std::move(initiate), boost::asio::use_awaitable);
}

}  // namespace outrigger::host
