// SPDX-License-Identifier: Apache-2.0
#include "host/client/plugin_bindings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace outrigger::host {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

TEST(BindTypesTest, ABoundTypeGoesToItsPluginOnlyWhoeverElseAnnouncesIt) {
  const Bindings bindings =
      BindTypes(DefaultPluginTypes(), {{"aaa", {"redis"}}, {"redis", {"redis"}}});
  EXPECT_THAT(bindings.plugin_of_type, ElementsAre(Pair("redis", "redis")));
  EXPECT_THAT(bindings.ignored_of_plugin, ElementsAre(Pair("aaa", ElementsAre("redis"))));
}

TEST(BindTypesTest, ABoundTypeIsServedByNobodyWhileItsPluginIsAway) {
  const Bindings bindings = BindTypes(DefaultPluginTypes(), {{"aaa", {"redis"}}});
  EXPECT_THAT(bindings.plugin_of_type, IsEmpty());
  EXPECT_THAT(bindings.ignored_of_plugin, ElementsAre(Pair("aaa", ElementsAre("redis"))));
}

TEST(BindTypesTest, OfTwoUnboundPluginsTheFirstByNameServes) {
  const Bindings bindings = BindTypes({}, {{"zebra", {"depth", "stripes"}}, {"ant", {"depth"}}});
  EXPECT_THAT(bindings.plugin_of_type,
              UnorderedElementsAre(Pair("depth", "ant"), Pair("stripes", "zebra")));
  EXPECT_THAT(bindings.ignored_of_plugin, ElementsAre(Pair("zebra", ElementsAre("depth"))));
}

TEST(BindTypesTest, ABoundPluginServesItsTypesOnly) {
  const Bindings bindings = BindTypes({{"redis", {"redis"}}}, {{"redis", {"redis", "depth"}}});
  EXPECT_THAT(bindings.plugin_of_type, ElementsAre(Pair("redis", "redis")));
  EXPECT_THAT(bindings.ignored_of_plugin, ElementsAre(Pair("redis", ElementsAre("depth"))));
}

TEST(ParsePluginTypesTest, AFlagReplacesTheDefaultsOfItsPluginAndTakesItsTypes) {
  const auto types = ParsePluginTypes({"mine=redis,depth", "kafka=kafka"});
  ASSERT_TRUE(types.ok()) << types.status();
  EXPECT_THAT(types->at("mine"), ElementsAre("depth", "redis"));
  EXPECT_THAT(types->at("kafka"), ElementsAre("kafka"));
  EXPECT_EQ(types->at("redis").count("redis"), 0);
  EXPECT_EQ(types->at("redis").count("redis-streams"), 1);
  EXPECT_THAT(types->at("core"), ElementsAre("cron", "metrics-api"));
}

struct Case {
  const char* name;
  std::vector<std::string> flags;
  const char* message;
};
class BadPluginTypesTest : public testing::TestWithParam<Case> {};

TEST_P(BadPluginTypesTest, IsRefusedWithWhatWasWanted) {
  const absl::Status status = ParsePluginTypes(GetParam().flags).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Inputs, BadPluginTypesTest,
    testing::ValuesIn<Case>({
        {"NoEquals", {"redis"}, "want NAME=TYPE[,TYPE], got \"redis\""},
        {"NoName", {"=redis"}, "want NAME=TYPE[,TYPE]"},
        {"EmptyType", {"mine=redis,"}, "want NAME=TYPE[,TYPE]"},
        {"TwoPlugins", {"a=redis", "b=redis"}, "type redis for one plugin only (a has it already)"},
    }),
    [](const testing::TestParamInfo<Case>& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace outrigger::host
