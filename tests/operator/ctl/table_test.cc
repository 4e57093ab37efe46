// SPDX-License-Identifier: Apache-2.0
#include "operator/ctl/table.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace outrigger::controller::ctl {
namespace {

using testing::HasSubstr;

local::LocalState Busy() {
  local::LocalState state{.now = absl::FromUnixSeconds(1000)};
  state.objects.push_back({.name = "default/worker",
                           .target = "worker",
                           .active = "True",
                           .running = 4,
                           .replicas = 5,
                           .triggers = {{.metric = "s0-redis-orders", .value = 25, .target = 5}},
                           .outcome = "active: min to max is the HPA's work -> stay at 5",
                           .hpa_message = "New size: 5; reason: external metric s0-redis-orders "
                                          "above target",
                           .hpa_replicas = 5,
                           .since = absl::FromUnixSeconds(988)});
  state.objects.push_back({.name = "shop/mailer",
                           .target = "mailer",
                           .active = "False",
                           .triggers = {{.metric = "s0-redis-mail", .value = 0, .target = 10},
                                        {.metric = "s1-redis-late", .target = 2, .failed = true}},
                           .outcome = "inactive at 0 -> stay at 0",
                           .since = absl::FromUnixSeconds(700)});
  state.plugins.push_back(
      {.name = "redis", .state = "ready", .since = absl::FromUnixSeconds(980), .restarts = 1});
  return state;
}

const std::vector<std::string>& Steps() {
  static const auto* const kSteps = new std::vector<std::string>{
      "   0.3s  default/worker: 0 replicas at the start",
      "   3.3s  default/worker: 0 -> 1 replicas  (operator: replicas 0, min 0, max 10; active at "
      "0: activate -> scale to 1)",
      "   4.1s  default/worker: 1 -> 5 replicas  (HPA: New size: 5)"};
  return *kSteps;
}

std::string Render(const local::LocalState& state, TableSize size) {
  return absl::StrCat("\n", absl::StrJoin(RenderTable("title", state, Steps(), size), "\n"), "\n");
}

TEST(TableTest, EightyColumnsHaveTheReasonBelowItsRow) {
  EXPECT_EQ(Render(Busy(), {.width = 80, .height = 24}), R"(
title

SCALEDOBJECT    TARGET  ACTIVE  REPLICAS  VALUE/TARGET  SINCE  LAST DECISION
default/worker  worker  yes     4→5       25/5          12s
  HPA to 5: external metric s0-redis-orders above target
shop/mailer     mailer  no      0→0       0/10 ?!/2     5m
  inactive at 0 -> stay at 0

PLUGIN  STATE  SINCE  RESTARTS
redis   ready  20s    1

   0.3s  default/worker: 0 replicas at the start
   3.3s  default/worker: 0 -> 1 replicas  (operator: replicas 0, min 0, max 10;…
   4.1s  default/worker: 1 -> 5 replicas  (HPA: New size: 5)
)");
}

TEST(TableTest, AWideTerminalHasTheReasonInItsRow) {
  EXPECT_EQ(Render(Busy(), {.width = 130, .height = 24}), R"(
title

SCALEDOBJECT    TARGET  ACTIVE  REPLICAS  VALUE/TARGET  SINCE  LAST DECISION
default/worker  worker  yes     4→5       25/5          12s    HPA to 5: external metric s0-redis-orders above target
shop/mailer     mailer  no      0→0       0/10 ?!/2     5m     inactive at 0 -> stay at 0

PLUGIN  STATE  SINCE  RESTARTS
redis   ready  20s    1

   0.3s  default/worker: 0 replicas at the start
   3.3s  default/worker: 0 -> 1 replicas  (operator: replicas 0, min 0, max 10; active at 0: activate -> scale to 1)
   4.1s  default/worker: 1 -> 5 replicas  (HPA: New size: 5)
)");
}

TEST(TableTest, WhatIsNotReadyAndAPluginThatIsAwaySayWhy) {
  local::LocalState state = Busy();
  state.objects.pop_back();
  state.objects[0].not_ready = "TriggerError: 1 trigger does not work";
  state.objects[0].active = "Unknown";
  state.plugins[0].state = "unavailable";
  state.plugins[0].reason = "connection refused";
  EXPECT_EQ(Render(state, {.width = 80, .height = 24}), R"(
title

SCALEDOBJECT    TARGET  ACTIVE   REPLICAS  VALUE/TARGET  SINCE  LAST DECISION
default/worker  worker  unknown  4→5       25/5          12s
  not ready: TriggerError: 1 trigger does not work

PLUGIN  STATE        SINCE  RESTARTS  REASON
redis   unavailable  20s    1         connection refused

   0.3s  default/worker: 0 replicas at the start
   3.3s  default/worker: 0 -> 1 replicas  (operator: replicas 0, min 0, max 10;…
   4.1s  default/worker: 1 -> 5 replicas  (HPA: New size: 5)
)");
}

TEST(TableTest, ACountDownIsTheOperatorsThoughTheHpaMovedLast) {
  local::LocalState state = Busy();
  state.objects[0].active = "False";
  state.objects[0].outcome = "inactive, cooling down for another 4s -> stay at 5";
  EXPECT_THAT(Render(state, {.width = 80, .height = 24}),
              HasSubstr("\n  inactive, cooling down for another 4s -> stay at 5\n"));
}

TEST(TableTest, WhatDoesNotFitInHeightIsCountedAndTheLastStepsStay) {
  local::LocalState state = Busy();
  while (state.objects.size() < 30) state.objects.push_back(state.objects.back());
  const std::string shown = Render(state, {.width = 80, .height = 16});
  EXPECT_THAT(shown, HasSubstr("more lines\n"));
  EXPECT_THAT(shown, HasSubstr("PLUGIN  STATE"));
  EXPECT_THAT(shown, HasSubstr("4.1s  default/worker: 1 -> 5"));
}

TEST(TableTest, NothingIsWiderOrHigherThanTheTerminal) {
  local::LocalState state = Busy();
  state.objects[0].name = absl::StrCat("default/", std::string(300, 'n'));
  state.objects[0].not_ready = absl::StrCat("Error: ", std::string(500, 'e'));
  state.plugins[0].reason = std::string(300, 'r');
  for (int width = 1; width <= 200; ++width) {
    for (const int height : {1, 2, 5, 10, 24}) {
      const std::vector<std::string> lines =
          RenderTable(std::string(300, 't'), state, Steps(), {.width = width, .height = height});
      ASSERT_LE(lines.size(), static_cast<size_t>(height)) << width;
      for (const std::string& line : lines) {
        // Every character here is one column; those beyond ASCII have three bytes.
        const auto beyond = std::count_if(line.begin(), line.end(), [](char c) {
          return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
        });
        ASSERT_LE(static_cast<int>(line.size()) - static_cast<int>(beyond), width) << line;
      }
    }
  }
}

TEST(TableTest, AnEmptyRunHasHeadersOnly) {
  EXPECT_THAT(Render({}, {.width = 80, .height = 24}), HasSubstr("SCALEDOBJECT"));
}

struct FitCase {
  const char* name;
  const char* text;
  int width;
  const char* want;
};
class FitColumnsTest : public testing::TestWithParam<FitCase> {};

TEST_P(FitColumnsTest, CutsAtTheEdgeOfACharacter) {
  EXPECT_EQ(FitColumns(GetParam().text, GetParam().width), GetParam().want);
}

INSTANTIATE_TEST_SUITE_P(Texts, FitColumnsTest,
                         testing::ValuesIn<FitCase>({
                             {"Fits", "abc", 3, "abc"},
                             {"IsCut", "abcd", 3, "ab…"},
                             {"One", "abcd", 1, "…"},
                             {"None", "abcd", 0, ""},
                             {"ArrowIsOne", "4→5", 3, "4→5"},
                             {"WideIsTwo", "日本", 3, "日…"},
                             {"WideDoesNotFit", "日本", 2, "…"},
                             {"EscapeMovesNothing", "a\x1b[2Jb\n", 20, "a?[2Jb?"},
                             {"ControlBeyondAscii",
                              "a\xc2\x9b"
                              "2Jb",
                              20, "a??2Jb"},
                             {"BrokenUtf8", "a\xe2\x82z", 20, "a??z"},
                             {"CutUtf8", "a\xe2\x82", 20, "a??"},
                         }),
                         [](const testing::TestParamInfo<FitCase>& info) {
                           return std::string(info.param.name);
                         });

}  // namespace
}  // namespace outrigger::controller::ctl
