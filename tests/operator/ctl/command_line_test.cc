// SPDX-License-Identifier: Apache-2.0
#include "operator/ctl/command_line.h"

#include <absl/strings/match.h>
#include <absl/strings/str_split.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace outrigger::controller::ctl {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

absl::StatusOr<Command> Parse(const std::string& line) {
  return ParseCommandLine(absl::StrSplit(line, ' ', absl::SkipEmpty()));
}

TEST(CommandLineTest, LocalTakesFilesPluginsAndDurations) {
  const auto command = Parse(
      "local -f a.yaml -f b.yaml --plugin mine=127.0.0.1:9000 --exit-after-idle 2s --timeout 1m "
      "--address 127.0.0.1:9666");
  ASSERT_TRUE(command.ok()) << command.status();
  const auto& flags = std::get<LocalFlags>(*command);
  EXPECT_THAT(flags.files, ElementsAre("a.yaml", "b.yaml"));
  ASSERT_EQ(flags.plugins.size(), 1u);
  EXPECT_EQ(flags.plugins[0].name, "mine");
  EXPECT_EQ(flags.exit_after_idle, absl::Seconds(2));
  EXPECT_EQ(flags.timeout, absl::Minutes(1));
  EXPECT_EQ(flags.address, "127.0.0.1:9666");
}

TEST(CommandLineTest, ExplainTakesANameWithOrWithoutItsNamespace) {
  const auto both = Parse("explain shop/orders --address 127.0.0.1:1");
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ(std::get<ExplainFlags>(*both).namespace_name, "shop");
  EXPECT_EQ(std::get<ExplainFlags>(*both).name, "orders");
  EXPECT_EQ(std::get<ExplainFlags>(*both).address, "127.0.0.1:1");
  const auto name = Parse("explain orders");
  ASSERT_TRUE(name.ok()) << name.status();
  EXPECT_EQ(std::get<ExplainFlags>(*name).namespace_name, "");
  EXPECT_EQ(std::get<ExplainFlags>(*name).address, kOperatorAddress);
}

TEST(CommandLineTest, PluginListAndVersion) {
  EXPECT_TRUE(std::holds_alternative<PluginListFlags>(*Parse("plugin list")));
  EXPECT_EQ(std::get<PrintText>(*Parse("version")).text, "outriggerctl " OUTRIGGER_VERSION "\n");
}

TEST(CommandLineTest, HelpIsThatOfTheCommandAndHasAnExample) {
  EXPECT_THAT(std::get<PrintText>(*Parse("--help")).text,
              AllOf(HasSubstr("local"), HasSubstr("explain"), HasSubstr("Examples:")));
  EXPECT_THAT(std::get<PrintText>(*Parse("local --help")).text,
              AllOf(HasSubstr("--exit-after-idle"), HasSubstr("DURATION"), HasSubstr("Example"),
                    HasSubstr("outriggerctl local -f ")));
  EXPECT_THAT(std::get<PrintText>(*Parse("explain -h")).text, HasSubstr("port-forward"));
  EXPECT_THAT(std::get<PrintText>(*Parse("plugin list --help")).text, HasSubstr("--address"));
}

struct WrongCase {
  const char* name;
  const char* line;
  const char* message;
};
class WrongCommandLineTest : public testing::TestWithParam<WrongCase> {};

TEST_P(WrongCommandLineTest, IsToldInOneLine) {
  const auto command = Parse(GetParam().line);
  ASSERT_EQ(command.status().code(), absl::StatusCode::kInvalidArgument);
  const std::string message(command.status().message());
  EXPECT_THAT(message, HasSubstr(GetParam().message));
  EXPECT_FALSE(absl::StrContains(message, "\n")) << message;
}

INSTANTIATE_TEST_SUITE_P(
    Lines, WrongCommandLineTest,
    testing::ValuesIn<WrongCase>({
        {"Nothing", "",
         "want one of local, explain, plugin, version, got nothing; for help: "
         "outriggerctl --help"},
        {"Subcommand", "locl -f a", "got \"locl\" (did you mean local?)"},
        {"FarSubcommand", "frobnicate", "got \"frobnicate\"; for help: outriggerctl --help"},
        {"PluginAlone", "plugin", "want one of list, got nothing; for help: outriggerctl plugin"},
        {"Flag", "local -f a --time-out 3s",
         "unknown flag --time-out (did you mean --timeout?); for help: outriggerctl local --help"},
        {"FlagWithValue", "local -f a --bogus=3s", "unknown flag --bogus; for help"},
        {"FlagOfAnother", "explain x --timeout 3s", "unknown flag --timeout; for help"},
        {"GlobalFlag", "--verbose", "unknown flag --verbose"},
        {"NoFile", "local", "-f: want a YAML file, got none"},
        {"NoValue", "local -f", "outriggerctl local --help"},
        {"Duration", "local -f a --exit-after-idle soon",
         "--exit-after-idle: want a duration above 0 such as 3s, got \"soon\""},
        {"ZeroDuration", "local -f a --timeout 0s", "--timeout: want a duration above 0"},
        {"EndlessDuration", "local -f a --timeout inf", "--timeout: want a duration above 0"},
        {"Plugin", "local -f a --plugin mine", "--plugin"},
        {"Name", "explain a/b/c", "want [NAMESPACE/]NAME, got \"a/b/c\""},
        {"EmptyName", "explain a/", "want [NAMESPACE/]NAME, got \"a/\""},
        {"TwoNames", "explain a b", "want nothing more, got \"b\""},
        {"Version", "version now", "want nothing more, got \"now\""},
    }),
    [](const testing::TestParamInfo<WrongCase>& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace outrigger::controller::ctl
