// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/seeded_executor.h"

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <set>
#include <string>
#include <vector>

#include "host/base/event.h"

namespace outrigger::simulation {
namespace {

host::Task<void> Yield() {
  const host::Executor executor = co_await boost::asio::this_coro::executor;
  co_await boost::asio::post(executor, boost::asio::use_awaitable);
}

host::Task<void> Walker(host::FakeClock& clock, int id, std::vector<std::string>& trace) {
  for (int step = 0; step < 5; ++step) {
    trace.push_back(
        absl::StrCat(id, ".", step, "@", absl::FormatDuration(clock.SteadyNow().since_epoch())));
    co_await Yield();
    if (step % 2 == 1) co_await clock.Sleep(absl::Milliseconds(id));
  }
}

std::vector<std::string> TraceOf(uint64_t seed) {
  host::FakeClock clock;
  SeededExecutor executor(clock, seed);
  std::vector<std::string> trace;
  for (int id = 1; id <= 6; ++id) {
    boost::asio::co_spawn(executor.executor(), Walker(clock, id, trace), boost::asio::detached);
  }
  executor.RunFor(absl::Seconds(1));
  return trace;
}

TEST(SeededExecutorTest, SameSeedGivesTheSameTrace) {
  const std::vector<std::string> trace = TraceOf(7);
  EXPECT_EQ(trace.size(), 30u);
  EXPECT_EQ(TraceOf(7), trace);
}

TEST(SeededExecutorTest, SeedsGiveDifferentOrders) {
  std::set<std::vector<std::string>> traces;
  for (uint64_t seed = 0; seed < 20; ++seed) traces.insert(TraceOf(seed));
  EXPECT_GT(traces.size(), 15u);
}

TEST(SeededExecutorTest, TimeMovesOnlyWhenNothingCanRun) {
  host::FakeClock clock;
  SeededExecutor executor(clock, 1);
  const host::SteadyTime start = clock.SteadyNow();
  std::vector<absl::Duration> yields;
  auto yielder = [&]() -> host::Task<void> {
    for (int i = 0; i < 100; ++i) {
      co_await Yield();
      yields.push_back(clock.SteadyNow() - start);
    }
  };
  auto sleeper = [&]() -> host::Task<void> { co_await clock.Sleep(absl::Seconds(1)); };
  boost::asio::co_spawn(executor.executor(), yielder(), boost::asio::detached);
  boost::asio::co_spawn(executor.executor(), sleeper(), boost::asio::detached);
  executor.RunFor(absl::Hours(1));
  EXPECT_EQ(yields, std::vector<absl::Duration>(100, absl::ZeroDuration()));
  EXPECT_EQ(clock.SteadyNow() - start, absl::Hours(1));
}

TEST(SeededExecutorTest, RunUntilStopsAtItsConditionOrItsLimit) {
  host::FakeClock clock;
  SeededExecutor executor(clock, 1);
  const host::SteadyTime start = clock.SteadyNow();
  bool woke = false;
  auto sleeper = [&]() -> host::Task<void> {
    co_await clock.Sleep(absl::Seconds(10));
    woke = true;
  };
  boost::asio::co_spawn(executor.executor(), sleeper(), boost::asio::detached);
  EXPECT_FALSE(executor.RunUntil([&] { return woke; }, absl::Seconds(9)));
  EXPECT_EQ(clock.SteadyNow() - start, absl::Seconds(9));
  EXPECT_TRUE(executor.RunUntil([&] { return woke; }, absl::Seconds(9)));
  EXPECT_EQ(clock.SteadyNow() - start, absl::Seconds(10));
}

TEST(SeededExecutorTest, EventsWakeWaiters) {
  host::FakeClock clock;
  SeededExecutor executor(clock, 3);
  host::Event event;
  bool notified = false;
  auto waiter = [&]() -> host::Task<void> {
    notified = co_await event.WaitUntil(clock, clock.SteadyNow() + absl::Seconds(5));
  };
  auto notifier = [&]() -> host::Task<void> {
    co_await clock.Sleep(absl::Seconds(1));
    event.Notify();
  };
  boost::asio::co_spawn(executor.executor(), waiter(), boost::asio::detached);
  boost::asio::co_spawn(executor.executor(), notifier(), boost::asio::detached);
  EXPECT_TRUE(executor.RunUntil([&] { return notified; }, absl::Seconds(2)));
}

TEST(SeededExecutorTest, WhatStillWaitsIsDroppedAtTheEnd) {
  auto alive = std::make_shared<int>(1);
  {
    host::FakeClock clock;
    SeededExecutor executor(clock, 1);
    auto sleeper = [](host::FakeClock& sleeper_clock,
                      std::shared_ptr<int> held) -> host::Task<void> {
      co_await sleeper_clock.Sleep(absl::Hours(*held));
    };
    boost::asio::co_spawn(executor.executor(), sleeper(clock, alive), boost::asio::detached);
    executor.RunFor(absl::Seconds(1));
    EXPECT_GT(alive.use_count(), 1);
  }
  EXPECT_EQ(alive.use_count(), 1);
}

}  // namespace
}  // namespace outrigger::simulation
