// SPDX-License-Identifier: Apache-2.0
#include "host/base/clock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "host/base/fake_clock.h"
#include "host/base/mutex.h"
#include "host/base/real_clock.h"
#include "tests/host/base/coroutine_runner.h"

namespace outrigger::host {
namespace {

using testing::ElementsAre;

TEST(FakeClockTest, StandsStillUntilItIsMoved) {
  FakeClock clock(absl::FromUnixSeconds(1000));
  const SteadyTime start = clock.SteadyNow();
  EXPECT_EQ(clock.WallNow(), absl::FromUnixSeconds(1000));
  clock.Advance(absl::Minutes(3));
  EXPECT_EQ(clock.WallNow(), absl::FromUnixSeconds(1180));
  EXPECT_EQ(clock.SteadyNow() - start, absl::Minutes(3));
}

TEST(FakeClockTest, RunsTimersInOrderOfTimeThenOfCreationEachAtItsOwnTime) {
  FakeClock clock;
  const SteadyTime start = clock.SteadyNow();
  std::vector<std::string> runs;
  auto note = [&](const char* name) {
    return [&runs, &clock, start, name] {
      runs.push_back(name + absl::FormatDuration(clock.SteadyNow() - start));
    };
  };
  clock.AddTimer(start + absl::Seconds(2), note("late@"));
  clock.AddTimer(start + absl::Seconds(1), note("first@"));
  clock.AddTimer(start + absl::Seconds(1), note("second@"));
  clock.AddTimer(start + absl::Seconds(9), note("never@"));
  clock.Advance(absl::Seconds(5));
  EXPECT_THAT(runs, ElementsAre("first@1s", "second@1s", "late@2s"));
  EXPECT_EQ(clock.SteadyNow() - start, absl::Seconds(5));
}

TEST(FakeClockTest, RunsATimerThatADueTimerAddsWithinTheSameAdvance) {
  FakeClock clock;
  int runs = 0;
  clock.AddTimer(clock.SteadyNow() + absl::Seconds(1),
                 [&] { clock.AddTimer(clock.SteadyNow() + absl::Seconds(1), [&] { ++runs; }); });
  clock.Advance(absl::Seconds(2));
  EXPECT_EQ(runs, 1);
}

TEST(FakeClockTest, RunsATimerOfThePastAtOnce) {
  FakeClock clock;
  bool ran = false;
  const Clock::TimerId id = clock.AddTimer(clock.SteadyNow(), [&] { ran = true; });
  EXPECT_TRUE(ran);
  EXPECT_FALSE(clock.CancelTimer(id));
}

TEST(FakeClockTest, ACancelledTimerNeverRuns) {
  FakeClock clock;
  bool ran = false;
  const Clock::TimerId id =
      clock.AddTimer(clock.SteadyNow() + absl::Seconds(1), [&] { ran = true; });
  EXPECT_TRUE(clock.CancelTimer(id));
  EXPECT_FALSE(clock.CancelTimer(id));
  clock.Advance(absl::Seconds(2));
  EXPECT_FALSE(ran);
}

TEST(FakeClockTest, NeverMovesToATimerThatNeverBecomesDue) {
  FakeClock clock;
  clock.AddTimer(SteadyTime::InfiniteFuture(), [] { FAIL() << "the end of time came"; });
  EXPECT_FALSE(clock.AdvanceToNextTimer());
  EXPECT_LT(clock.SteadyNow(), SteadyTime::InfiniteFuture());
}

// What a callback holds may call the clock when it goes (an Event's waiter does).
template <typename SomeClock>
void ExpectCallbackMayUseTheClockWhenItGoes() {
  SomeClock clock;
  const Clock::TimerId other = clock.AddTimer(clock.SteadyNow() + absl::Hours(2), [] {});
  auto cancels_other =
      std::shared_ptr<void>(nullptr, [&](void*) { EXPECT_TRUE(clock.CancelTimer(other)); });
  const Clock::TimerId id =
      clock.AddTimer(clock.SteadyNow() + absl::Hours(1), [held = std::move(cancels_other)] {});
  EXPECT_TRUE(clock.CancelTimer(id));
}

TEST(FakeClockTest, ACancelledCallbackMayUseTheClockWhenItGoes) {
  ExpectCallbackMayUseTheClockWhenItGoes<FakeClock>();
}

TEST(RealClockTest, ACancelledCallbackMayUseTheClockWhenItGoes) {
  ExpectCallbackMayUseTheClockWhenItGoes<RealClock>();
}

// Waits for a flag that a timer's thread sets; false after 30 s.
class Flag {
 public:
  void Set() {
    MutexLock lock(&mutex_);
    set_ = true;
    changed_.notify_all();
  }
  bool Wait() {
    MutexLock lock(&mutex_);
    return lock.WaitFor(changed_, std::chrono::seconds(30), [this] { return IsSet(); });
  }

 private:
  bool IsSet() const ABSL_NO_THREAD_SAFETY_ANALYSIS { return set_; }

  Mutex mutex_;
  std::condition_variable changed_;
  bool set_ ABSL_GUARDED_BY(mutex_) = false;
};

TEST(RealClockTest, SteadyTimeNeverGoesBack) {
  RealClock clock;
  SteadyTime last = clock.SteadyNow();
  for (int i = 0; i < 1000; ++i) {
    const SteadyTime now = clock.SteadyNow();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(RealClockTest, RunsATimerNotBeforeItIsDue) {
  RealClock clock;
  Flag done;
  const SteadyTime due = clock.SteadyNow() + absl::Milliseconds(20);
  std::atomic<bool> early = false;
  clock.AddTimer(due, [&] {
    early = clock.SteadyNow() < due;
    done.Set();
  });
  ASSERT_TRUE(done.Wait()) << "a timer of 20 ms did not run in 30 s";
  EXPECT_FALSE(early);
}

TEST(RealClockTest, ASoonerTimerIsNotHeldUpByOneThatReplacedACancelledOne) {
  RealClock clock;
  for (int i = 0; i < 20; ++i) {
    const Clock::TimerId later = clock.AddTimer(clock.SteadyNow() + absl::Seconds(60), [] {});
    Flag between;  // the clock's thread has seen `later` and waits for it
    clock.AddTimer(clock.SteadyNow() + absl::Milliseconds(1), [&] { between.Set(); });
    ASSERT_TRUE(between.Wait());
    EXPECT_TRUE(clock.CancelTimer(later));
    Flag done;
    const SteadyTime due = clock.SteadyNow() + absl::Milliseconds(5);
    absl::Duration lateness;
    clock.AddTimer(due, [&] {
      lateness = clock.SteadyNow() - due;
      done.Set();
    });
    ASSERT_TRUE(done.Wait());
    ASSERT_LT(lateness, absl::Milliseconds(500)) << "round " << i;
  }
}

TEST(RealClockTest, EachTimerRunsOnceOrIsCancelledWithManyThreads) {
  RealClock clock;
  constexpr int kThreads = 4;
  constexpr int kTimers = 500;
  std::atomic<int> ran = 0;
  std::atomic<int> cancelled = 0;
  Flag all;
  auto count = [&] {
    if (ran.load() + cancelled.load() == kThreads * kTimers) all.Set();
  };
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < kTimers; ++i) {
          const Clock::TimerId id =
              clock.AddTimer(clock.SteadyNow() + absl::Microseconds(i * 7 % 300), [&] {
                ++ran;
                count();
              });
          if ((i + t) % 3 == 0 && clock.CancelTimer(id)) {
            ++cancelled;
            count();
          }
        }
      });
    }
  }
  EXPECT_TRUE(all.Wait()) << ran << " ran, " << cancelled << " cancelled, of "
                          << kThreads * kTimers;
  EXPECT_EQ(ran + cancelled, kThreads * kTimers);
}

TEST(ClockTest, SleepUntilReturnsOnTheCallersExecutorWhenTheTimeHasCome) {
  FakeClock clock;
  CoroutineRunner runner;
  std::vector<std::string> trace;
  runner.Start([](FakeClock& sleeper_clock, std::vector<std::string>& out) -> Task<void> {
    out.push_back("sleeps");
    co_await sleeper_clock.Sleep(absl::Seconds(10));
    out.push_back("woke");
  }(clock, trace));
  clock.Advance(absl::Seconds(10) - absl::Nanoseconds(1));
  runner.RunReady();
  EXPECT_THAT(trace, ElementsAre("sleeps"));
  clock.Advance(absl::Nanoseconds(1));
  EXPECT_THAT(trace, ElementsAre("sleeps")) << "resumed inside Advance()";
  runner.RunReady();
  EXPECT_THAT(trace, ElementsAre("sleeps", "woke"));
}

}  // namespace
}  // namespace outrigger::host
