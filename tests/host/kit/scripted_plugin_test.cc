// SPDX-License-Identifier: Apache-2.0
// The kit as a process, through the scripted scaler; and that the scripted scaler does as it is
// told.
#include "tests/support/scripted/scripted_plugin.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>
#include <limits>

#include "tests/support/plugin/plugin_client.h"
#include "tests/support/wait_for.h"

namespace outrigger::tests {
namespace {

using testing::HasSubstr;

class ScriptedPluginTest : public testing::Test {
 protected:
  void SetUp() override { Start({}); }

  void Start(ScriptedPlugin::Options options) {
    auto plugin = ScriptedPlugin::Start(std::move(options));
    ASSERT_TRUE(plugin.ok()) << plugin.status();
    plugin_ = *std::move(plugin);
    client_ = std::make_unique<PluginClient>(plugin_->plugin().socket_address());
  }

  static scaler::v1::Trigger Scripted(const std::string& script) {
    return MakeTrigger("scripted", {{"script", script}});
  }

  std::unique_ptr<ScriptedPlugin> plugin_;
  std::unique_ptr<PluginClient> client_;
};

TEST_F(ScriptedPluginTest, AnswersWhatWasSetAndCounts) {
  ASSERT_TRUE(plugin_->SetValue("orders", 0.75).ok());
  const auto answer = client_->Metrics(Scripted("orders"));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->values(0).value(), 0.75);  // Case B049: no rounding on the wire.
  EXPECT_TRUE(answer->active());
  scaler::v1::GetMetricsRequest poll;
  *poll.mutable_trigger() = Scripted("orders");
  poll.set_poll(true);
  ASSERT_TRUE(client_->Metrics(poll).ok());
  EXPECT_EQ(plugin_->Calls("orders")->reads(), 2);
  EXPECT_EQ(plugin_->Calls("orders")->polls(), 1);
  EXPECT_EQ(plugin_->Calls("others")->reads(), 0);
}

TEST_F(ScriptedPluginTest, BadValuesGoOutUnchecked) {
  ASSERT_TRUE(plugin_->SetValue("a", std::numeric_limits<double>::quiet_NaN()).ok());
  EXPECT_TRUE(std::isnan(client_->Metrics(Scripted("a"))->values(0).value()));
  ASSERT_TRUE(plugin_->SetValue("a", -3).ok());
  EXPECT_EQ(client_->Metrics(Scripted("a"))->values(0).value(), -3);
  test::v1::Behaviour large;
  large.set_padding_bytes(1 << 20);
  ASSERT_TRUE(plugin_->Set("a", large).ok());
  EXPECT_GT(client_->Metrics(Scripted("a"))->ByteSizeLong(), 1u << 20);
}

TEST_F(ScriptedPluginTest, ErrorsHangsAndViolations) {
  ASSERT_TRUE(plugin_->SetError("a", absl::PermissionDeniedError("no")).ok());
  EXPECT_EQ(client_->Metrics(Scripted("a")).status(), absl::PermissionDeniedError("no"));
  test::v1::Behaviour hang;
  hang.set_hang(true);
  ASSERT_TRUE(plugin_->Set("a", hang).ok());
  EXPECT_EQ(client_->Metrics(Scripted("a"), absl::Milliseconds(300)).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  test::v1::Behaviour refuse;
  refuse.set_violation("another script");
  ASSERT_TRUE(plugin_->Set("a", refuse).ok());
  EXPECT_THAT(
      client_->Specs(Scripted("a")).status().ToString(),
      HasSubstr("INVALID_ARGUMENT: scripted trigger: script: want another script, got \"a\""));
}

// One entry that hangs holds up nobody: the others come before it times out.
TEST_F(ScriptedPluginTest, AHungEntryOfABatchHoldsUpNobody) {
  test::v1::Behaviour hang;
  hang.set_hang(true);
  ASSERT_TRUE(plugin_->Set("hung", hang).ok());
  scaler::v1::BatchGetMetricsRequest request;
  for (int i = 0; i < 200; ++i) {
    auto& entry = *request.add_entries();
    *entry.mutable_request()->mutable_trigger() = Scripted(i == 0 ? "hung" : absl::StrCat("s", i));
    entry.mutable_timeout()->set_seconds(1);
  }
  std::vector<uint32_t> order;
  int late_code = 0;
  const absl::Status ended = client_->Batch(request, absl::Seconds(10), [&](const auto& answer) {
    order.push_back(answer.index());
    if (answer.has_error()) late_code = answer.error().code();
  });
  EXPECT_TRUE(ended.ok()) << ended;
  ASSERT_EQ(order.size(), 200u);
  EXPECT_EQ(order.back(), 0u) << "the hung one comes last";
  EXPECT_EQ(late_code, static_cast<int>(absl::StatusCode::kDeadlineExceeded));
  EXPECT_EQ(plugin_->Calls("")->rounds(), 1) << "the whole batch reached the scaler in one go";
}

TEST_F(ScriptedPluginTest, TooLargeARequestIsRefused) {
  scaler::v1::Trigger trigger = Scripted("a");
  (*trigger.mutable_metadata())["large"] = std::string(2 << 20, 'x');
  EXPECT_EQ(client_->Metrics(trigger).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(ScriptedPluginTest, CanAnnounceTypesOfOthers) {
  Start({.announce = "redis,scripted"});
  const auto described = client_->Describe();
  ASSERT_TRUE(described.ok()) << described.status();
  ASSERT_EQ(described->trigger_types_size(), 2);
  EXPECT_EQ(described->trigger_types(0).name(), "redis");
  EXPECT_EQ(*client_->Health("redis"), "SERVING");
  EXPECT_EQ(plugin_->Calls("")->parses(), 0)
      << "Describe and Check are no question about a trigger";
}

// What a test that says "nothing else came" relies on.
TEST_F(ScriptedPluginTest, CountsEachRpcThatComesAndCannotBeAskedWhenItIsDead) {
  ASSERT_TRUE(client_->Describe().ok());
  ASSERT_TRUE(client_->Health("scripted").ok());
  ASSERT_TRUE(client_->Metrics(Scripted("a")).ok());
  ASSERT_TRUE(client_->Metrics(Scripted("b")).ok());
  auto calls = plugin_->Calls("");
  ASSERT_TRUE(calls.ok()) << calls.status();
  EXPECT_THAT(calls->rpcs(), testing::UnorderedElementsAre(
                                 testing::Pair("/grpc.health.v1.Health/Check", 1),
                                 testing::Pair("/outrigger.scaler.v1.Scaler/Describe", 1),
                                 testing::Pair("/outrigger.scaler.v1.Scaler/GetMetrics", 2)));
  plugin_->plugin().process().Kill(SIGKILL);
  ASSERT_TRUE(plugin_->plugin().process().Wait(absl::Seconds(5)).ok());
  EXPECT_FALSE(plugin_->Calls("").ok());
}

// ---- flags ---------------------------------------------------------------------------------

std::string Binary() {
  return absl::StrCat(std::getenv("OUTRIGGER_BIN_DIR"), "/outrigger-test-scripted");
}

TEST(PluginFlagsTest, WhatCannotBeServedEndsWithOneLineThatSaysWhy) {
  const TempDir dir;
  const std::string file = dir.Write("scaler.sock", "not a socket");
  const std::pair<std::vector<std::string>, const char*> rows[] = {
      {{}, "want --listen-socket PATH, --listen HOST:PORT or both"},
      {{"--listen", "0.0.0.0:0"}, "--listen: want a loopback address, or mutual TLS"},
      {{"--listen-socket", file}, "something else than a socket stands at"},
      {{"--listen", "127.0.0.1:0", "--max-concurrent-calls", "0"}, "want a number > 0, got 0"},
      {{"--listen", "127.0.0.1:0", "--tls-cert-file", file, "--tls-key-file", file,
        "--tls-client-ca-file", file},
       "--tls-cert-file: want a certificate chain (PEM)"},
      {{"--listen", "127.0.0.1:0", "--log-level", "loud"}, "--log-level: want debug, info"},
  };
  for (const auto& [flags, wanted] : rows) {
    Process::Options process;
    process.argv = {Binary()};
    process.argv.insert(process.argv.end(), flags.begin(), flags.end());
    const auto result = RunCommand(std::move(process), "", absl::Seconds(10));
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->exit_code, 1) << wanted;
    EXPECT_THAT(result->stderr_text, HasSubstr(wanted));
  }
}

TEST(PluginFlagsTest, EachFlagIsReadFromTheEnvironmentToo) {
  Process::Options process;
  process.argv = {Binary()};
  process.env = {{"OUTRIGGER_LISTEN", "0.0.0.0:0"}};
  const auto result = RunCommand(std::move(process), "", absl::Seconds(10));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->stderr_text, HasSubstr("--listen: want a loopback address"));
}

TEST(PluginFlagsTest, PrintsTheReferenceOfEachType) {
  Process::Options process;
  process.argv = {Binary(), "--announce", "a,b", "--print-reference"};
  const auto result = RunCommand(std::move(process), "", absl::Seconds(10));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->exit_code, 0);
  EXPECT_THAT(result->stdout_text, HasSubstr("## Trigger type `a`"));
  EXPECT_THAT(result->stdout_text, HasSubstr("## Trigger type `b`"));
  EXPECT_THAT(result->stdout_text, HasSubstr("| `script` | text | `default` | metadata |"));
}

// Case B154.
TEST_F(ScriptedPluginTest, ACrashAtAnyCallLeavesAPluginThatStartsAgain) {
  test::v1::Behaviour crash;
  crash.set_crash(true);
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(plugin_->Set("a", crash).ok());
    EXPECT_EQ(client_->Metrics(Scripted("a")).status().code(), absl::StatusCode::kUnavailable);
    ASSERT_TRUE(plugin_->plugin().process().Wait(absl::Seconds(5)).ok());
    ASSERT_TRUE(plugin_->plugin().Restart().ok()) << plugin_->plugin().Output();
    const absl::Status back = WaitForOk([&] { return client_->Metrics(Scripted("a")).status(); },
                                        absl::Seconds(5), "the plugin answers again");
    ASSERT_TRUE(back.ok()) << back;
  }
}

}  // namespace
}  // namespace outrigger::tests
