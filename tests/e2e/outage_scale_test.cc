// SPDX-License-Identifier: Apache-2.0
// Many objects beside a plugin in trouble. The limits are ten times those that `make bench` prints,
// so that a busy machine does not fail the test; what they tell apart takes seconds: a timeout, a
// batch's end.
#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include "tests/bench/outage_scene.h"
#include "tests/bench/stage.h"

namespace outrigger::bench {
namespace {

// Shows R22. Shows R24.
TEST(OutageScaleTest, FiveHundredObjectsOfAStoppedPluginCostTheOthersNothing) {
  const absl::StatusOr<StoppedPluginFigures> figures = StopAPlugin();
  ASSERT_TRUE(figures.ok()) << figures.status();
  Say(absl::StrCat("lateness p99 ", figures->lateness_p99_ms, " ms of ", figures->polls,
                   " polls; new object Ready after ", figures->new_object_ready_seconds,
                   " s; reads p99 ", figures->healthy_read_p99_ms, " ms and ",
                   figures->stopped_read_p99_ms, " ms"));
  EXPECT_GE(figures->polls, 250) << "50 objects, every 5 s for half a minute";
  EXPECT_LE(figures->lateness_p99_ms, 2500);
  EXPECT_LE(figures->new_object_ready_seconds, 10);
  EXPECT_LE(figures->healthy_read_p99_ms, 500);
  EXPECT_LE(figures->stopped_read_p99_ms, 500);
}

// Case B081.
TEST(OutageScaleTest, AHungEntryOfABatchHoldsUpNoDecisionOfTheOthers) {
  const absl::StatusOr<HungEntryFigures> figures = HangAnEntry();
  ASSERT_TRUE(figures.ok()) << figures.status();
  Say(absl::StrCat(figures->answers, " answers decided after at most ",
                   figures->until_decided_max_ms, " ms"));
  EXPECT_GT(figures->entries_per_batch, 100) << "in batches of 200, but for a read between them";
  EXPECT_GE(figures->answers, 3 * 199);
  EXPECT_LE(figures->until_decided_max_ms, 1000);
}

}  // namespace
}  // namespace outrigger::bench
