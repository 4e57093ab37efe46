// SPDX-License-Identifier: Apache-2.0
#include "operator/runtime/work_queue.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "tests/operator/support/core_loop.h"

namespace outrigger::controller::runtime {
namespace {

using api::NamespacedName;
using testing::ElementsAre;
using testing::IsEmpty;

NamespacedName Key(absl::string_view name) { return {"ns", std::string(name)}; }

class WorkQueueTest : public testing::Test {
 protected:
  ~WorkQueueTest() override {
    queue_.ShutDown();
    loop_.Advance(absl::Minutes(2));  // those that hold a key still sleep
  }

  // A worker that holds each key for `work` and fails those in `failing_`.
  host::Task<void> Worker(absl::Duration work) {
    while (true) {
      std::optional<NamespacedName> key = co_await queue_.Get();
      if (!key) break;
      taken_.push_back({key->name, loop_.clock().SteadyNow()});
      EXPECT_EQ(running_[key->name]++, 0) << key->name << " runs in two workers";
      co_await loop_.clock().Sleep(work);
      --running_[key->name];
      failing_ ? queue_.AddAfterFailure(*key) : queue_.Forget(*key);
      queue_.Done(*key);
    }
    ++ended_;
  }
  void StartWorkers(int count, absl::Duration work = absl::ZeroDuration()) {
    for (int i = 0; i < count; ++i) loop_.Spawn(Worker(work));
    loop_.Settle();
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& [name, at] : taken_) names.push_back(name);
    return names;
  }
  // When a key was taken, in milliseconds since the start.
  std::vector<int64_t> Times(const std::string& name) const {
    std::vector<int64_t> times;
    for (const auto& [taken, at] : taken_) {
      if (taken == name) times.push_back(absl::ToInt64Milliseconds(at.since_epoch()));
    }
    return times;
  }

  CoreLoop loop_;
  WorkQueue queue_{loop_.clock(), {}};
  bool failing_ = false;
  std::vector<std::pair<std::string, host::SteadyTime>> taken_;
  std::map<std::string, int> running_;
  int ended_ = 0;
};

TEST_F(WorkQueueTest, EqualKeysThatWaitBecomeOne) {
  for (int i = 0; i < 5; ++i) queue_.Add(Key("a"));
  queue_.Add(Key("b"));
  StartWorkers(2);
  EXPECT_THAT(Names(), ElementsAre("a", "b"));
}

// Shows R22.
TEST_F(WorkQueueTest, AKeyIsNeverInTwoWorkersAndRunsOnceMoreWhenAddedMeanwhile) {
  StartWorkers(4, absl::Seconds(1));
  queue_.Add(Key("a"));
  loop_.Advance(absl::Milliseconds(500));
  for (int i = 0; i < 3; ++i) queue_.Add(Key("a"));
  loop_.Advance(absl::Seconds(5));
  EXPECT_THAT(Times("a"), ElementsAre(0, 1000));
}

TEST_F(WorkQueueTest, WorkersTakeDifferentKeysAtOnce) {
  StartWorkers(10, absl::Seconds(1));
  for (int i = 0; i < 10; ++i) queue_.Add(Key(absl::StrCat("k", i)));
  loop_.Settle();
  EXPECT_EQ(taken_.size(), 10u);
}

// Shows R18.
TEST_F(WorkQueueTest, AFailedKeyComesBackAfter100MsDoublingTo16S) {
  failing_ = true;
  StartWorkers(2);
  queue_.Add(Key("a"));
  loop_.Advance(absl::Seconds(60));
  EXPECT_THAT(Times("a"),
              ElementsAre(0, 100, 300, 700, 1500, 3100, 6300, 12700, 25500, 41500, 57500));
}

TEST_F(WorkQueueTest, SuccessStartsTheBackoffAnewAndDropsTheRetryThatWaits) {
  failing_ = true;
  StartWorkers(1);
  queue_.Add(Key("a"));
  loop_.Advance(absl::Milliseconds(310));  // failed at 0, 100, 300
  failing_ = false;
  queue_.Add(Key("a"));
  loop_.Advance(absl::Seconds(30));
  EXPECT_THAT(Times("a"), ElementsAre(0, 100, 300, 310));
  failing_ = true;
  queue_.Add(Key("a"));
  loop_.Advance(absl::Milliseconds(150));
  EXPECT_EQ(Times("a").back() - Times("a")[4], 100);
}

// Shows R20.
TEST_F(WorkQueueTest, FailedKeysTogetherComeBackAtTenASecondAfterABurstOfAHundred) {
  failing_ = true;
  StartWorkers(10);
  for (int i = 0; i < 300; ++i) queue_.Add(Key(absl::StrCat("k", i)));
  loop_.Settle();
  ASSERT_EQ(taken_.size(), 300u);
  loop_.Advance(absl::Milliseconds(110));
  EXPECT_NEAR(static_cast<double>(taken_.size()), 400, 2);
  const size_t after_burst = taken_.size();
  loop_.Advance(absl::Seconds(10));
  EXPECT_NEAR(static_cast<double>(taken_.size() - after_burst), 100, 5);
}

// Shows R20.
TEST_F(WorkQueueTest, NewWorkIsNeverThrottled) {
  failing_ = true;
  StartWorkers(1);
  for (int i = 0; i < 300; ++i) queue_.Add(Key(absl::StrCat("k", i)));
  loop_.Settle();
  failing_ = false;
  for (int i = 0; i < 500; ++i) queue_.Add(Key(absl::StrCat("new", i)));
  const host::SteadyTime now = loop_.clock().SteadyNow();
  loop_.Settle();
  EXPECT_EQ(taken_.size(), 800u);
  EXPECT_EQ(taken_.back().second, now);
}

TEST_F(WorkQueueTest, ADelayedKeyWakesAWorkerInTimeHoweverManyWait) {
  StartWorkers(10);
  queue_.AddAfter(Key("late"), absl::Seconds(30));
  loop_.Settle();
  queue_.AddAfter(Key("soon"), absl::Seconds(1));
  queue_.AddAfter(Key("sooner"), absl::Milliseconds(500));
  loop_.Advance(absl::Seconds(40));
  EXPECT_THAT(Times("sooner"), ElementsAre(500));
  EXPECT_THAT(Times("soon"), ElementsAre(1000));
  EXPECT_THAT(Times("late"), ElementsAre(30000));
}

TEST_F(WorkQueueTest, KeysDueTogetherGoToWorkersTogether) {
  StartWorkers(10, absl::Seconds(1));
  for (int i = 0; i < 10; ++i) queue_.AddAfter(Key(absl::StrCat("k", i)), absl::Seconds(2));
  loop_.Advance(absl::Milliseconds(2001));
  EXPECT_EQ(taken_.size(), 10u);
}

TEST_F(WorkQueueTest, OfSeveralDelaysTheSoonestCounts) {
  StartWorkers(1);
  queue_.AddAfter(Key("a"), absl::Seconds(5));
  queue_.AddAfter(Key("a"), absl::Seconds(2));
  queue_.AddAfter(Key("a"), absl::Seconds(9));
  loop_.Advance(absl::Seconds(20));
  EXPECT_THAT(Times("a"), ElementsAre(2000));
}

TEST_F(WorkQueueTest, AKeyThatIsDueWhileItRunsRunsOnceMore) {
  StartWorkers(3, absl::Seconds(10));
  queue_.Add(Key("a"));
  loop_.Settle();
  queue_.AddAfter(Key("a"), absl::Seconds(1));
  loop_.Advance(absl::Seconds(30));
  EXPECT_THAT(Times("a"), ElementsAre(0, 10000));
}

TEST_F(WorkQueueTest, ShutDownEndsEveryWorkerAndTakesNoMoreWork) {
  StartWorkers(10);
  queue_.AddAfter(Key("a"), absl::Seconds(1));
  queue_.ShutDown();
  queue_.Add(Key("b"));
  queue_.AddAfterFailure(Key("c"));
  loop_.Advance(absl::Seconds(60));
  EXPECT_EQ(ended_, 10);
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(WorkQueueTest, RemembersNothingOfKeysThatSucceeded) {
  failing_ = true;
  StartWorkers(3);
  for (int i = 0; i < 50; ++i) queue_.Add(Key(absl::StrCat("k", i)));
  loop_.Settle();
  EXPECT_EQ(queue_.known_keys(), 100u);  // each waits, with its count of failures
  failing_ = false;
  loop_.Advance(absl::Minutes(1));
  EXPECT_EQ(queue_.known_keys(), 0u);
}

}  // namespace
}  // namespace outrigger::controller::runtime
