// SPDX-License-Identifier: Apache-2.0
#include "host/base/event.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "host/base/fake_clock.h"
#include "host/base/real_clock.h"
#include "tests/host/base/coroutine_runner.h"

namespace outrigger::host {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Each waiter appends what its wait returned.
class EventTest : public testing::Test {
 protected:
  void StartWaiter(absl::Duration timeout = absl::InfiniteDuration()) {
    runner_.Start(WaitAndNote(event_, clock_, clock_.SteadyNow() + timeout, results_));
  }
  static Task<void> WaitAndNote(const Event& event, FakeClock& clock, SteadyTime until,
                                std::vector<bool>& results) {
    const bool notified = co_await event.WaitUntil(clock, until);
    results.push_back(notified);
  }

  // First, so that it goes last: what still waits is destroyed through it.
  CoroutineRunner runner_;
  FakeClock clock_;
  Event event_;
  std::vector<bool> results_;
};

TEST_F(EventTest, ANotifyBeforeTheWaitIsRememberedOnce) {
  event_.Notify();
  event_.Notify();
  StartWaiter();
  EXPECT_THAT(results_, ElementsAre(true));
  StartWaiter();
  EXPECT_THAT(results_, ElementsAre(true)) << "two notifications were remembered";
}

TEST_F(EventTest, NotifyWakesOneWaiterTheLongestWaiting) {
  StartWaiter();
  StartWaiter();
  event_.Notify();
  runner_.RunReady();
  EXPECT_THAT(results_, ElementsAre(true));
  event_.Notify();
  runner_.RunReady();
  EXPECT_THAT(results_, ElementsAre(true, true));
}

TEST_F(EventTest, NotifyAllWakesAllPresentWaitersAndIsNotRememberedThen) {
  StartWaiter();
  StartWaiter(absl::Seconds(5));
  event_.NotifyAll();
  runner_.RunReady();
  EXPECT_THAT(results_, ElementsAre(true, true));
  StartWaiter();
  EXPECT_THAT(results_, ElementsAre(true, true));
}

TEST_F(EventTest, NotifyAllWithoutWaitersLetsTheNextWaitReturn) {
  event_.NotifyAll();
  StartWaiter();
  EXPECT_THAT(results_, ElementsAre(true));
}

TEST_F(EventTest, WaitEndsAtItsTimeWithFalse) {
  StartWaiter(absl::Seconds(2));
  clock_.Advance(absl::Seconds(2) - absl::Nanoseconds(1));
  runner_.RunReady();
  EXPECT_THAT(results_, IsEmpty());
  clock_.Advance(absl::Nanoseconds(1));
  runner_.RunReady();
  EXPECT_THAT(results_, ElementsAre(false));
}

TEST_F(EventTest, AWaitUntilThePastReturnsFalseAtOnce) {
  StartWaiter(-absl::Seconds(1));
  EXPECT_THAT(results_, ElementsAre(false));
}

TEST_F(EventTest, ANotifyAfterTheTimeOutGoesToTheNextWaiter) {
  StartWaiter(absl::Seconds(1));
  clock_.Advance(absl::Seconds(1));
  event_.Notify();  // the first waiter has its answer already, though it has not run
  runner_.RunReady();
  StartWaiter();
  EXPECT_THAT(results_, ElementsAre(false, true));
}

TEST_F(EventTest, ANotifiedWaitLeavesNoTimerBehind) {
  StartWaiter(absl::Hours(1));
  event_.Notify();
  runner_.RunReady();
  EXPECT_FALSE(clock_.AdvanceToNextTimer());
}

// Fails as a leak under the address sanitizer, too.
TEST(EventLifetimeTest, AWaiterThatNothingCanWakeGoesWithTheEvent) {
  CoroutineRunner runner;
  FakeClock clock;
  auto event = std::make_unique<Event>();
  auto token = std::make_shared<int>(0);
  const std::weak_ptr<int> frame = token;
  runner.Start([](Event& waited_for, FakeClock& waiter_clock, std::shared_ptr<int>) -> Task<void> {
    co_await waited_for.Wait(waiter_clock);
  }(*event, clock, std::move(token)));
  EXPECT_FALSE(frame.expired());
  event.reset();
  runner.RunReady();
  EXPECT_TRUE(frame.expired());
}

TEST(EventLifetimeTest, ATimedWaitEndsThoughTheEventIsGone) {
  CoroutineRunner runner;
  FakeClock clock;
  std::optional<Event> event(std::in_place);
  std::vector<bool> results;
  runner.Start([](Event& waited_for, FakeClock& waiter_clock,
                  std::vector<bool>& out) -> Task<void> {
    const bool notified =
        co_await waited_for.WaitUntil(waiter_clock, waiter_clock.SteadyNow() + absl::Seconds(1));
    out.push_back(notified);
  }(*event, clock, results));
  event.reset();
  clock.Advance(absl::Seconds(1));
  runner.RunReady();
  EXPECT_THAT(results, ElementsAre(false));
}

// One consumer, many producers, as between gRPC callbacks and the operator's strand: whatever is
// produced is seen, without a wake-up for each.
TEST(EventThreadsTest, AConsumerThatChecksBeforeItWaitsMissesNothing) {
  constexpr int kProducers = 4;
  constexpr int kItems = 2000;
  RealClock clock;
  boost::asio::io_context io(2);
  Event produced;
  std::atomic<int> items = 0;
  bool saw_all = false;
  auto consume = [](RealClock& consumer_clock, const Event& event, std::atomic<int>& left,
                    bool& done) -> Task<void> {
    const SteadyTime end = consumer_clock.SteadyNow() + absl::Seconds(60);
    while (left.load() < kProducers * kItems) {
      const bool notified = co_await event.WaitUntil(consumer_clock, end);
      if (!notified) co_return;
    }
    done = true;
  };
  boost::asio::co_spawn(boost::asio::make_strand(io), consume(clock, produced, items, saw_all),
                        boost::asio::detached);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kProducers; ++i) {
      threads.emplace_back([&] {
        for (int item = 0; item < kItems; ++item) {
          ++items;
          produced.Notify();
        }
      });
    }
    for (int i = 0; i < 2; ++i) threads.emplace_back([&] { io.run(); });
  }
  EXPECT_TRUE(saw_all) << "stopped at " << items << " items";
}

TEST(EventThreadsTest, EachWaiterIsResumedOnceWhenNotifyAndTimeOutMeet) {
  constexpr int kWaiters = 500;
  RealClock clock;
  boost::asio::io_context io(2);
  std::atomic<int> resumed = 0;
  std::vector<Event> events(kWaiters);
  for (int i = 0; i < kWaiters; ++i) {
    auto wait = [](RealClock& waiter_clock, Event event, absl::Duration timeout,
                   std::atomic<int>& count) -> Task<void> {
      co_await event.WaitUntil(waiter_clock, waiter_clock.SteadyNow() + timeout);
      ++count;
    };
    boost::asio::co_spawn(io, wait(clock, events[i], absl::Microseconds(i * 10), resumed),
                          boost::asio::detached);
  }
  {
    std::vector<std::jthread> threads;
    threads.emplace_back([&] {
      for (const Event& event : events) event.Notify();
    });
    for (int i = 0; i < 2; ++i) threads.emplace_back([&] { io.run(); });
  }
  // run() returns when no coroutine holds work any more, so all have ended; none twice.
  EXPECT_EQ(resumed, kWaiters);
}

}  // namespace
}  // namespace outrigger::host
