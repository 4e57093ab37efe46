// SPDX-License-Identifier: Apache-2.0
#include "host/client/health_cache.h"

#include <gtest/gtest.h>

#include "host/base/fake_clock.h"

namespace outrigger::host {
namespace {

constexpr absl::Duration kEdge = absl::Milliseconds(1);
constexpr absl::Duration kFreshness = absl::Seconds(5);

class HealthCacheTest : public testing::Test {
 protected:
  void FailCycle(int times = 1) {
    for (int i = 0; i < times; ++i) cache_.RecordFailure(key_, refused_, true);
  }

  FakeClock clock_;
  HealthCache cache_{clock_, {}};
  const HealthKey key_{.uid = "uid-1", .trigger_index = 0, .metric = "depth"};
  const absl::Status refused_ = absl::UnavailableError("refused");
};

// Shows R15.
TEST_F(HealthCacheTest, ConnectionTestTrustsASuccessForThirtySeconds) {
  cache_.RecordSuccess(key_, 5, true);
  clock_.Advance(absl::Seconds(30));
  const HealthRecord* record = cache_.ForConnectionTest(key_);
  ASSERT_NE(record, nullptr);
  EXPECT_EQ(record->value, 5);
  clock_.Advance(kEdge);
  EXPECT_EQ(cache_.ForConnectionTest(key_), nullptr);
}

// Shows R15.
TEST_F(HealthCacheTest, ConnectionTestTrustsAFailureForFiveSeconds) {
  cache_.RecordFailure(key_, refused_, false);
  clock_.Advance(absl::Seconds(5) - kEdge);
  const HealthRecord* record = cache_.ForConnectionTest(key_);
  ASSERT_NE(record, nullptr);
  EXPECT_EQ(record->status, refused_);
  clock_.Advance(kEdge);
  EXPECT_EQ(cache_.ForConnectionTest(key_), nullptr);
}

TEST_F(HealthCacheTest, NothingIsKnownBeforeTheFirstAnswer) {
  EXPECT_EQ(cache_.Find(key_), nullptr);
  EXPECT_EQ(cache_.ForConnectionTest(key_), nullptr);
  EXPECT_EQ(cache_.ForRead(key_, kFreshness), nullptr);
  EXPECT_FALSE(cache_.Unhealthy(key_));
}

// Shows R16.
TEST_F(HealthCacheTest, ThreeFailedCyclesInARowMakeUnhealthy) {
  FailCycle(2);
  EXPECT_FALSE(cache_.Unhealthy(key_));
  FailCycle();
  EXPECT_TRUE(cache_.Unhealthy(key_));
}

// Shows R16.
TEST_F(HealthCacheTest, OneSuccessStartsTheRowAnew) {
  FailCycle(2);
  cache_.RecordSuccess(key_, 1, true);
  FailCycle(2);
  EXPECT_EQ(cache_.FailedCycles(key_), 2);
  FailCycle();
  ASSERT_TRUE(cache_.Unhealthy(key_));
  cache_.RecordSuccess(key_, 1, true);
  EXPECT_FALSE(cache_.Unhealthy(key_));
}

// Shows R16. A threshold is a time, not a number of readers.
TEST_F(HealthCacheTest, OnlyPollCyclesCount) {
  for (int i = 0; i < 10; ++i) cache_.RecordFailure(key_, refused_, false);
  EXPECT_EQ(cache_.FailedCycles(key_), 0);
  EXPECT_FALSE(cache_.Unhealthy(key_));
}

TEST_F(HealthCacheTest, ReadTrustsAValueForItsFreshness) {
  cache_.RecordSuccess(key_, 5, true);
  clock_.Advance(kFreshness);
  EXPECT_NE(cache_.ForRead(key_, kFreshness), nullptr);
  clock_.Advance(kEdge);
  EXPECT_EQ(cache_.ForRead(key_, kFreshness), nullptr);
}

TEST_F(HealthCacheTest, ReadTrustsAFailureForFiveSecondsHoweverFreshValuesMustBe) {
  cache_.RecordFailure(key_, refused_, true);
  clock_.Advance(absl::Seconds(5) - kEdge);
  EXPECT_NE(cache_.ForRead(key_, absl::ZeroDuration()), nullptr);
  clock_.Advance(kEdge);
  EXPECT_EQ(cache_.ForRead(key_, absl::Minutes(1)), nullptr);
}

// Shows R16. While unhealthy a read answers the failure without a call, however old it is.
TEST_F(HealthCacheTest, ReadNeverAsksWhileUnhealthy) {
  FailCycle(3);
  clock_.Advance(absl::Hours(1));
  const HealthRecord* record = cache_.ForRead(key_, kFreshness);
  ASSERT_NE(record, nullptr);
  EXPECT_EQ(record->status, refused_);
  EXPECT_EQ(cache_.ForConnectionTest(key_), nullptr) << "a reconcile may find out that it healed";
}

TEST_F(HealthCacheTest, FailureKeepsTheLastGoodValueAndItsTimes) {
  cache_.RecordSuccess(key_, 5, true);
  const absl::Time measured = clock_.WallNow();
  clock_.Advance(absl::Seconds(30));
  FailCycle();
  const HealthRecord* record = cache_.Find(key_);
  EXPECT_EQ(record->status, refused_);
  EXPECT_EQ(record->value, 5);
  EXPECT_TRUE(record->active);
  EXPECT_EQ(record->measured_at, measured);
  EXPECT_EQ(record->answered_at - record->good_at, absl::Seconds(30));
}

// A new leader starts from what the last one published.
TEST_F(HealthCacheTest, RestoredFailuresStayUntilOneSuccess) {
  cache_.Restore(key_, 3, refused_);
  EXPECT_TRUE(cache_.Unhealthy(key_));
  EXPECT_NE(cache_.ForRead(key_, kFreshness), nullptr);
  cache_.RecordSuccess(key_, 1, false);
  EXPECT_EQ(cache_.FailedCycles(key_), 0);
}

// Shows R16. Two restored failures and one cycle more are three in a row.
TEST_F(HealthCacheTest, CyclesGoOnFromWhatWasRestored) {
  cache_.Restore(key_, 2, refused_);
  FailCycle();
  EXPECT_TRUE(cache_.Unhealthy(key_));
}

TEST_F(HealthCacheTest, ForgetsOneObjectWithoutTouchingAnother) {
  const HealthKey second{.uid = "uid-1", .trigger_index = 1, .metric = "age"};
  const HealthKey other{.uid = "uid-2", .trigger_index = 0, .metric = "depth"};
  for (const HealthKey& key : {key_, second, other}) cache_.RecordSuccess(key, 1, true);
  cache_.Forget("uid-1");
  EXPECT_EQ(cache_.size(), 1);
  EXPECT_NE(cache_.Find(other), nullptr);
}

// Case B083. An object that was deleted and made again has another uid, and starts anew.
TEST_F(HealthCacheTest, ObjectMadeAgainStartsAnew) {
  FailCycle(3);
  HealthKey again = key_;
  again.uid = "uid-9";
  EXPECT_EQ(cache_.Find(again), nullptr);
}

}  // namespace
}  // namespace outrigger::host
