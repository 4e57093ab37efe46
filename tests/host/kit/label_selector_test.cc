// SPDX-License-Identifier: Apache-2.0
#include "host/kit/label_selector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace outrigger::host::kit {
namespace {

struct Case {
  const char* selector;
  bool matches;  // {app: web, tier: front, empty: ""}
};

TEST(LabelSelectorTest, Matches) {
  google::protobuf::Map<std::string, std::string> labels;
  labels["app"] = "web";
  labels["tier"] = "front";
  labels["empty"] = "";
  const Case rows[] = {
      {"", true},
      {"app", true},
      {"!app", false},
      {"zone", false},
      {"!zone", true},
      {"app=web", true},
      {"app == web", true},
      {"app=db", false},
      {"app!=db", true},
      {"zone!=x", true},
      {"app in (db, web)", true},
      {"app in (db)", false},
      {"app notin (db,cache)", true},
      {"app notin (web)", false},
      {"zone notin (web)", true},
      {"app=web,tier in (front,back),!zone", true},
      {"app=web,tier=back", false},
      {"empty=", true},
  };
  for (const Case& row : rows) {
    const auto selector = LabelSelector::Parse(row.selector);
    ASSERT_TRUE(selector.ok()) << row.selector << ": " << selector.status();
    EXPECT_EQ(selector->Matches(labels), row.matches) << row.selector;
  }
}

TEST(LabelSelectorTest, WhatCannotBeReadIsNamed) {
  for (const char* bad : {",", "a,", "=b", "a=b c", "a in b", "a in (b", "a>1", "!a=b", "a in"}) {
    const absl::Status status = LabelSelector::Parse(bad).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("selector: want a, !a")) << bad;
  }
}

}  // namespace
}  // namespace outrigger::host::kit
