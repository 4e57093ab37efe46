// SPDX-License-Identifier: Apache-2.0
#include "operator/local/plugin_plan.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "tests/support/temp_dir.h"

namespace outrigger::controller::local {
namespace {

namespace json = boost::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class PluginPlanTest : public testing::Test {
 protected:
  PluginPlanTest() {
    const std::string program = dir_.Write("outrigger-scaler-redis", "");
    chmod(program.c_str(), 0700);
  }

  static ManifestObject Object(const std::vector<std::string>& types) {
    json::array triggers;
    for (const std::string& type : types) triggers.push_back(json::object{{"type", type}});
    return {.resource = kube::ScaledObjects(),
            .object =
                json::object{{"metadata", json::object{{"name", "a"}}},
                             {"spec", json::object{{"scaleTargetRef", json::object{{"name", "a"}}},
                                                   {"triggers", triggers}}}},
            .source = "a.yaml, document 1, ScaledObject default/a"};
  }
  absl::StatusOr<std::vector<PluginProcesses::Plugin>> Plan(const std::vector<std::string>& types) {
    options_.bin_dir = dir_.path();
    return PlanPlugins({Object(types), {.resource = kube::Secrets()}}, options_);
  }

  const tests::TempDir dir_;
  PluginPlanOptions options_{.plugin_dir = "/run/p", .log_dir = "/run/l"};
};

TEST_F(PluginPlanTest, APluginIsStartedOnceForAllItsTypes) {
  const auto plugins = Plan({"redis", "redis", "cpu"});
  ASSERT_TRUE(plugins.ok()) << plugins.status();
  ASSERT_EQ(plugins->size(), 1u);
  EXPECT_EQ((*plugins)[0].name, "redis");
  EXPECT_THAT((*plugins)[0].argv, ElementsAre(dir_.File("outrigger-scaler-redis"),
                                              "--listen-socket", "/run/p/redis/scaler.sock"));
  EXPECT_EQ((*plugins)[0].output_file, "/run/l/redis.log");
}

TEST_F(PluginPlanTest, WhatNobodyServesIsNamedWithItsTrigger) {
  const auto plugins = Plan({"redis", "kafka", "frobnicate"});
  EXPECT_EQ(plugins.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(
      std::string(plugins.status().message()),
      AllOf(HasSubstr(absl::StrCat("a.yaml, document 1, ScaledObject default/a: "
                                   "spec.triggers[1].type: \"kafka\" wants the program of plugin "
                                   "kafka, ",
                                   dir_.File("outrigger-scaler-kafka"))),
            HasSubstr("\na.yaml, document 1, ScaledObject default/a: spec.triggers[2].type: want a "
                      "type that a plugin serves (apache-kafka, "),
            HasSubstr("got \"frobnicate\"")));
}

TEST_F(PluginPlanTest, APluginOfTheUsersReplacesOursOrServesTheRest) {
  options_.given = {{.name = "redis", .target = "127.0.0.1:9000", .host = "127.0.0.1"}};
  EXPECT_THAT(Plan({"redis"}).value(), IsEmpty());
  EXPECT_FALSE(Plan({"frobnicate"}).ok()) << "ours serve their own types only";
  options_.given = {{.name = "mine", .target = "127.0.0.1:9000", .host = "127.0.0.1"}};
  EXPECT_THAT(Plan({"frobnicate"}).value(), IsEmpty());
}

}  // namespace
}  // namespace outrigger::controller::local
