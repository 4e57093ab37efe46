// SPDX-License-Identifier: Apache-2.0
#include "host/base/task_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "host/base/fake_clock.h"
#include "tests/host/base/coroutine_runner.h"

namespace outrigger::host {
namespace {

using testing::ElementsAre;

class TaskGroupTest : public testing::Test {
 protected:
  Task<void> SleepAndNote(absl::Duration duration, std::string name) {
    trace_.push_back(name + " starts");
    co_await clock_.Sleep(duration);
    trace_.push_back(name + " ends");
  }
  Task<void> JoinAndNote() {
    co_await group_.Join();
    trace_.push_back("joined");
  }
  Task<void> SpawnAndNote() {
    group_.Spawn(SleepAndNote(absl::ZeroDuration(), "task"));
    trace_.push_back("spawned");
    co_return;
  }
  Task<void> SpawnAfterASecond() {
    co_await clock_.Sleep(absl::Seconds(1));
    group_.Spawn(SleepAndNote(absl::Seconds(1), "second"));
  }
  void Advance(absl::Duration duration) {
    clock_.Advance(duration);
    runner_.RunReady();
  }

  FakeClock clock_;
  CoroutineRunner runner_;
  TaskGroup group_{clock_, runner_.executor()};
  std::vector<std::string> trace_;
};

TEST_F(TaskGroupTest, ATaskStartsAtTheNextTurnNotInsideSpawn) {
  runner_.Start(SpawnAndNote());
  EXPECT_THAT(trace_, ElementsAre("spawned", "task starts", "task ends"));
  EXPECT_EQ(group_.running(), 0u);
}

TEST_F(TaskGroupTest, JoinWaitsForAll) {
  group_.Spawn(SleepAndNote(absl::Seconds(2), "slow"));
  group_.Spawn(SleepAndNote(absl::Seconds(1), "quick"));
  runner_.Start(JoinAndNote());
  EXPECT_EQ(group_.running(), 2u);
  Advance(absl::Seconds(1));
  EXPECT_THAT(trace_, ElementsAre("slow starts", "quick starts", "quick ends"));
  Advance(absl::Seconds(1));
  EXPECT_THAT(trace_,
              ElementsAre("slow starts", "quick starts", "quick ends", "slow ends", "joined"));
}

TEST_F(TaskGroupTest, JoinWaitsForWhatIsSpawnedMeanwhile) {
  group_.Spawn(SpawnAfterASecond());
  runner_.Start(JoinAndNote());
  Advance(absl::Seconds(1));
  EXPECT_THAT(trace_, ElementsAre("second starts"));
  Advance(absl::Seconds(1));
  EXPECT_THAT(trace_, ElementsAre("second starts", "second ends", "joined"));
}

TEST_F(TaskGroupTest, JoinOfNothingReturnsAtOnce) {
  runner_.Start(JoinAndNote());
  EXPECT_THAT(trace_, ElementsAre("joined"));
}

TEST_F(TaskGroupTest, AnEarlierEndDoesNotEndALaterJoin) {
  group_.Spawn(SleepAndNote(absl::ZeroDuration(), "first"));
  runner_.RunReady();
  group_.Spawn(SleepAndNote(absl::Seconds(1), "second"));
  runner_.Start(JoinAndNote());
  EXPECT_THAT(trace_, ElementsAre("first starts", "first ends", "second starts"));
  Advance(absl::Seconds(1));
  EXPECT_EQ(trace_.back(), "joined");
}

}  // namespace
}  // namespace outrigger::host
