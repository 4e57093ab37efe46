// SPDX-License-Identifier: Apache-2.0
#include "operator/local/container_command.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <string>

namespace outrigger::controller::local {
namespace {

absl::StatusOr<ContainerCommand> Parse(const std::string& pod) {
  return ParseContainerCommand(
      boost::json::parse(absl::StrCat(R"({"template":{"spec":)", pod, "}}")).as_object());
}

TEST(ContainerCommandTest, ReadsCommandArgsEnvFolderAndGrace) {
  const auto command = Parse(R"json({"terminationGracePeriodSeconds":5,"containers":[{"name":"c",
      "image":"ignored","workingDir":"/tmp",
      "command":["worker","--queue=$(QUEUE)"],"args":["$(MISSING)","$$(QUEUE)"],
      "env":[{"name":"HOST","value":"h"},{"name":"QUEUE","value":"$(HOST)/q"}]}]})json");
  ASSERT_TRUE(command.ok()) << command.status();
  EXPECT_THAT(command->argv,
              testing::ElementsAre("worker", "--queue=h/q", "$(MISSING)", "$(QUEUE)"));
  EXPECT_THAT(command->env,
              testing::ElementsAre(testing::Pair("HOST", "h"), testing::Pair("QUEUE", "h/q")));
  EXPECT_EQ(command->working_dir, "/tmp");
  EXPECT_EQ(command->grace, absl::Seconds(5));
}

struct Case {
  const char* name;
  const char* pod;
  absl::StatusCode want;
  const char* message;
};
class ContainerCommandFaultTest : public testing::TestWithParam<Case> {};

TEST_P(ContainerCommandFaultTest, NamesTheField) {
  const absl::Status status = Parse(GetParam().pod).status();
  EXPECT_EQ(status.code(), GetParam().want);
  EXPECT_THAT(std::string(status.message()), testing::StartsWith(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Pods, ContainerCommandFaultTest,
    testing::ValuesIn<Case>({
        {"NoContainer", R"({})", absl::StatusCode::kInvalidArgument,
         "spec.template.spec.containers: want one container, got none"},
        {"NoCommand", R"({"containers":[{"image":"i"}]})", absl::StatusCode::kInvalidArgument,
         "spec.template.spec.containers[0].command: want the command"},
        {"TwoContainers", R"({"containers":[{},{}]})", absl::StatusCode::kUnimplemented,
         "spec.template.spec.containers[1]: a local process cannot have this"},
        {"InitContainers", R"({"initContainers":[],"containers":[{}]})",
         absl::StatusCode::kUnimplemented, "spec.template.spec.initContainers"},
        {"EnvFromASecret",
         R"({"containers":[{"command":["a"],"env":[{"name":"A","valueFrom":{}}]}]})",
         absl::StatusCode::kUnimplemented, "spec.template.spec.containers[0].env[0].valueFrom"},
        {"EnvFrom", R"({"containers":[{"command":["a"],"envFrom":[]}]})",
         absl::StatusCode::kUnimplemented, "spec.template.spec.containers[0].envFrom"},
        {"CommandIsText", R"({"containers":[{"command":"a b"}]})",
         absl::StatusCode::kInvalidArgument, "spec.template.spec.containers[0].command"},
    }),
    [](const testing::TestParamInfo<Case>& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace outrigger::controller::local
