// SPDX-License-Identifier: Apache-2.0
#include "host/client/breaker.h"

#include <gtest/gtest.h>

#include "host/base/fake_clock.h"
#include "host/client/backoff.h"
#include "host/client/reconcile_permits.h"

namespace outrigger::host {
namespace {

class BreakerTest : public testing::Test {
 protected:
  // How many of `times` silent calls asked for a health check.
  int Silence(int times) {
    int checks = 0;
    for (int i = 0; i < times; ++i) checks += breaker_.OnSilence() ? 1 : 0;
    return checks;
  }

  FakeClock clock_;
  Breaker breaker_{clock_};
};

TEST_F(BreakerTest, AsksHealthAtTheFifthSilentCallInARowAndOnlyOnce) {
  EXPECT_EQ(Silence(4), 0);
  EXPECT_EQ(Silence(1), 1);
  EXPECT_EQ(Silence(20), 0) << "a check is under way";
  EXPECT_FALSE(breaker_.open());
}

TEST_F(BreakerTest, AnAnswerStartsTheRowAnew) {
  EXPECT_EQ(Silence(4), 0);
  breaker_.OnAnswer();
  EXPECT_EQ(Silence(4), 0);
  EXPECT_EQ(Silence(1), 1);
}

// Case B081. Five black-holed sources make calls end at their deadline; the plugin itself is well.
TEST_F(BreakerTest, StaysClosedWhenTheCheckIsAnswered) {
  ASSERT_EQ(Silence(5), 1);
  EXPECT_FALSE(breaker_.OnCheck(true));
  EXPECT_FALSE(breaker_.open());
  EXPECT_EQ(Silence(4), 0) << "the row starts anew";
  EXPECT_EQ(Silence(1), 1);
}

TEST_F(BreakerTest, OpensWhenTheCheckIsNotAnsweredEither) {
  const absl::Time first = clock_.WallNow();
  ASSERT_EQ(Silence(1), 0);
  clock_.Advance(absl::Seconds(9));
  ASSERT_EQ(Silence(4), 1);
  EXPECT_TRUE(breaker_.OnCheck(false));
  EXPECT_TRUE(breaker_.open());
  EXPECT_EQ(breaker_.silent_since(), first);
}

TEST_F(BreakerTest, StaysClosedWhenACallWasAnsweredDuringTheCheck) {
  ASSERT_EQ(Silence(5), 1);
  breaker_.OnAnswer();
  EXPECT_FALSE(breaker_.OnCheck(false));
  EXPECT_FALSE(breaker_.open());
}

TEST_F(BreakerTest, ProbesAfterOneSecondUpToTenAndClosesAtTheFirstAnswer) {
  ASSERT_EQ(Silence(5), 1);
  ASSERT_TRUE(breaker_.OnCheck(false));
  for (int seconds : {1, 2, 4, 8, 10, 10}) {
    EXPECT_EQ(breaker_.probe_delay(), absl::Seconds(seconds));
    EXPECT_FALSE(breaker_.OnProbe(false));
    EXPECT_TRUE(breaker_.open());
  }
  EXPECT_TRUE(breaker_.OnProbe(true));
  EXPECT_FALSE(breaker_.open());
  EXPECT_EQ(breaker_.probe_delay(), absl::Seconds(1));
}

TEST_F(BreakerTest, CheckOfAnEarlierConnectionDoesNotOpenIt) {
  ASSERT_EQ(Silence(5), 1);
  breaker_.Reset();
  EXPECT_FALSE(breaker_.OnCheck(false));
  EXPECT_FALSE(breaker_.open());
}

// Case B128. 0.1 s doubling to 10 s, each between half and all of itself.
TEST(BackoffTest, DoublesToTenSecondsWithJitter) {
  Backoff backoff({}, 1);
  for (double seconds : {0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0, 10.0}) {
    const absl::Duration delay = backoff.Next();
    EXPECT_GE(delay, absl::Seconds(seconds) / 2);
    EXPECT_LE(delay, absl::Seconds(seconds));
  }
}

// Case B128. A connection that broke at once tells nothing good of the next dial.
TEST(BackoffTest, StartsAnewOnlyAfterAGoodMinute) {
  Backoff backoff({}, 1);
  for (int i = 0; i < 10; ++i) backoff.Next();
  backoff.ConnectionEnded(absl::Minutes(1) - absl::Milliseconds(1));
  EXPECT_GE(backoff.Next(), absl::Seconds(5));
  backoff.ConnectionEnded(absl::Minutes(1));
  EXPECT_LE(backoff.Next(), absl::Milliseconds(100));
}

TEST(ReconcilePermitsTest, GivesThreePerPluginAndTakesThemBack) {
  ReconcilePermits permits;
  std::vector<ReconcilePermits::Permit> held;
  held.reserve(3);
  for (int i = 0; i < 3; ++i) held.push_back(*permits.TryAcquireReconcile("hung"));
  EXPECT_FALSE(permits.TryAcquireReconcile("hung").has_value());
  EXPECT_TRUE(permits.TryAcquireReconcile("other").has_value());
  held.pop_back();
  EXPECT_TRUE(permits.TryAcquireReconcile("hung").has_value());
}

}  // namespace
}  // namespace outrigger::host
