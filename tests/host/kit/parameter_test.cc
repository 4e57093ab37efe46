// SPDX-License-Identifier: Apache-2.0
// Source of the rules: spec/authentication.md section 7.
#include "host/kit/parameter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace outrigger::host::kit {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Map = std::map<std::string, std::string>;

constexpr Source kM = Source::kMetadata;
constexpr Source kE = Source::kEnvironment;
constexpr Source kA = Source::kAuthentication;

TriggerSchema SchemaOf(std::vector<ParameterSpec> parameters) {
  TriggerSchema schema;
  schema.type = "test";
  schema.description = "For tests.";
  schema.parameters = std::move(parameters);
  return schema;
}

struct Result {
  Parameters parameters;
  std::string violations;
};

Result Parse(std::vector<ParameterSpec> specs, const Map& metadata, const Map& environment = {},
             const Map& authentication = {}) {
  scaler::v1::Trigger trigger;
  trigger.mutable_metadata()->insert(metadata.begin(), metadata.end());
  trigger.mutable_environment()->insert(environment.begin(), environment.end());
  trigger.mutable_authentication()->insert(authentication.begin(), authentication.end());
  Violations violations;
  Parameters parameters = ParseParameters(SchemaOf(std::move(specs)), trigger, violations);
  return {std::move(parameters), violations.ToString()};
}

TEST(ParameterTest, SourcesGoInTheOrderOfTheParameter) {
  const std::vector<ParameterSpec> mea = {{.name = "p", .sources = {kM, kE, kA}}};
  const std::vector<ParameterSpec> mae = {{.name = "p", .sources = {kM, kA, kE}}};
  EXPECT_EQ(Parse(mea, {{"p", "m"}}, {{"p", "e"}}, {{"p", "a"}}).parameters.String("p"), "m");
  EXPECT_EQ(Parse(mea, {}, {{"p", "e"}}, {{"p", "a"}}).parameters.String("p"), "e");
  EXPECT_EQ(Parse(mae, {}, {{"p", "e"}}, {{"p", "a"}}).parameters.String("p"), "a");
  EXPECT_EQ(Parse({{.name = "p"}}, {}, {{"p", "e"}}, {{"p", "a"}}).parameters.Has("p"), false)
      << "a source that is not named is not looked at";
}

TEST(ParameterTest, WithinASourceTheNameGoesBeforeItsAliases) {
  const std::vector<ParameterSpec> specs = {
      {.name = "host", .aliases = {"hosts", "server"}, .sources = {kM, kA}}};
  EXPECT_EQ(Parse(specs, {{"hosts", "2"}, {"host", "1"}}).parameters.String("host"), "1");
  EXPECT_EQ(Parse(specs, {{"server", "3"}, {"hosts", "2"}}).parameters.String("host"), "2");
  EXPECT_EQ(Parse(specs, {{"server", "3"}}, {}, {{"host", "4"}}).parameters.String("host"), "3");
}

TEST(ParameterTest, WhatIsEmptyAfterTrimmingIsNotThere) {
  const Result result =
      Parse({{.name = "p", .sources = {kM, kA}}}, {{"p", " \t "}}, {}, {{"p", "  a b "}});
  EXPECT_EQ(result.parameters.String("p"), "a b");
  EXPECT_EQ(result.parameters.SourceOf("p"), kA);
}

TEST(ParameterTest, ADefaultCountsAsPresentButHasNoSource) {
  const Result result = Parse(
      {{.name = "p", .type = ParameterType::kInteger, .required = true, .default_value = "5"}}, {});
  EXPECT_EQ(result.violations, "");
  EXPECT_TRUE(result.parameters.Has("p"));
  EXPECT_EQ(result.parameters.SourceOf("p"), std::nullopt);
  EXPECT_EQ(result.parameters.Integer("p"), 5);
}

TEST(ParameterTest, AMissingOneNamesItsAliasesAndPlaces) {
  EXPECT_EQ(
      Parse({{.name = "host", .aliases = {"hosts"}, .required = true, .sources = {kM, kA, kE}}}, {})
          .violations,
      "host,hosts: want a value in metadata, authentication, environment, got nothing");
}

TEST(ParameterTest, AMissingOneNamesTheVariableThatGaveNothing) {
  EXPECT_EQ(Parse({{.name = "host", .aliases = {"hosts"}, .required = true, .sources = {kM, kE}}},
                  {{"hostsFromEnv", "HOSTS"}})
                .violations,
            "host,hosts: want a value in metadata, environment, got nothing (hostsFromEnv: "
            "\"HOSTS\" is missing or empty in the target's container)");
  EXPECT_EQ(Parse({{.name = "token", .required = true, .secret = true, .sources = {kE}}},
                  {{"tokenFromEnv", "canary"}})
                .violations,
            "token: want a value in environment, got nothing (tokenFromEnv: its variable is missing "
            "or empty in the target's container)");
  EXPECT_EQ(Parse({{.name = "host", .required = true}}, {{"hostFromEnv", "HOST"}}).violations,
            "host: want a value in metadata, got nothing")
      << "the environment is no source of it";
}

// A8: all violations at once.
TEST(ParameterTest, EveryViolationIsNamedAtOnce) {
  const std::vector<ParameterSpec> specs = {
      {.name = "count", .type = ParameterType::kInteger},
      {.name = "rate", .type = ParameterType::kNumber},
      {.name = "flag", .type = ParameterType::kBoolean},
      {.name = "wait", .type = ParameterType::kDuration},
      {.name = "mode", .enum_values = {"a", "b"}},
      {.name = "name", .required = true},
      {.name = "old", .removed = "use name"},
  };
  EXPECT_EQ(
      Parse(specs, {{"count", "05"},
                    {"rate", ".5"},
                    {"flag", "yes"},
                    {"wait", "-1s"},
                    {"mode", "A"},
                    {"old", "x"}})
          .violations,
      "count: want an integer, got \"05\"; rate: want a number, got \".5\"; flag: want true or "
      "false, got \"yes\"; wait: want a duration such as 1m30s, or milliseconds, not negative, "
      "got \"-1s\"; mode: want one of a, b, got \"A\"; name: want a value in metadata, got "
      "nothing; old: want nothing: use name, got \"x\"");
}

TEST(ParameterTest, EachItemOfAnEnumIsChecked) {
  const std::vector<ParameterSpec> specs = {{.name = "modes",
                                             .type = ParameterType::kStringList,
                                             .enum_values = {"a", "b", "c"},
                                             .exclusive_values = {"a", "b"}}};
  EXPECT_THAT(Parse(specs, {{"modes", " a , c"}}).parameters.List("modes"), ElementsAre("a", "c"));
  EXPECT_THAT(Parse(specs, {{"modes", "a,x"}}).violations, HasSubstr("want one of a, b, c"));
  EXPECT_THAT(Parse(specs, {{"modes", "a,b"}}).violations, HasSubstr("want at most one of a, b"));
  EXPECT_THAT(Parse(specs, {{"modes", "a,a"}}).violations, HasSubstr("want at most one of a, b"))
      << "a repeated member counts twice";
}

TEST(ParameterTest, ASecretIsNeverInAViolation) {
  const Result result =
      Parse({{.name = "token", .type = ParameterType::kInteger, .secret = true, .sources = {kA}}},
            {}, {}, {{"token", "canary"}});
  EXPECT_EQ(result.violations, "token: want an integer, got a value that is not shown");
}

TEST(ParameterTest, GotIsEscapedAndCut) {
  const std::string violations = Parse({{.name = "count", .type = ParameterType::kInteger}},
                                       {{"count", std::string(5000, 'x') + "\n"}})
                                     .violations;
  EXPECT_LT(violations.size(), 150u);
  EXPECT_THAT(Parse({{.name = "count", .type = ParameterType::kInteger}}, {{"count", "a\nb\x01"}})
                  .violations,
              HasSubstr(R"("a\nb\001")"));
}

TEST(ParameterTest, DescribeTellsTheWholeTable) {
  const scaler::v1::TriggerType type = DescribeSchema(SchemaOf({{.name = "password",
                                                                 .aliases = {"pw"},
                                                                 .required = true,
                                                                 .default_value = "",
                                                                 .enum_values = {"x"},
                                                                 .secret = true,
                                                                 .connection = true,
                                                                 .sources = {kM, kE, kA},
                                                                 .description = "Of the user."}}));
  ASSERT_EQ(type.parameters_size(), 1);
  const scaler::v1::Parameter& parameter = type.parameters(0);
  EXPECT_EQ(parameter.name(), "password");
  EXPECT_EQ(parameter.aliases(0), "pw");
  EXPECT_TRUE(parameter.required() && parameter.secret() && parameter.connection());
  EXPECT_TRUE(parameter.has_default_value()) << "an empty default is not an absent one";
  EXPECT_EQ(parameter.type(), scaler::v1::Parameter::STRING);
  EXPECT_EQ(parameter.sources_size(), 3);
  EXPECT_EQ(parameter.sources(2), scaler::v1::Parameter::AUTHENTICATION);
}

TEST(ParameterTest, TheReferenceIsAMarkdownTable) {
  EXPECT_EQ(
      PrintReference(SchemaOf({{.name = "port",
                                .aliases = {"ports"},
                                .type = ParameterType::kInteger,
                                .default_value = "1",
                                .enum_values = {"1", "2"},
                                .sources = {kM, kE},
                                .description = "A | B."}})),
      "## Trigger type `test`\n\nFor tests.\n\n"
      "| parameter | type | default | where, first found wins | meaning |\n"
      "| --- | --- | --- | --- | --- |\n"
      "| `port` (`ports`) | integer | `1` | metadata, `portFromEnv` | A \\| B. One of `1`, `2`. "
      "|\n");
}

}  // namespace
}  // namespace outrigger::host::kit
