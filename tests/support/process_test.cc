// SPDX-License-Identifier: Apache-2.0
#include "tests/support/process.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/temp_dir.h"
#include "tests/support/wait_for.h"

namespace outrigger::tests {
namespace {

using testing::HasSubstr;

bool Exists(pid_t pid) { return kill(pid, 0) == 0; }

TEST(ProcessTest, RunsWithEnvironmentFolderAndInput) {
  const TempDir dir;
  const absl::StatusOr<CommandResult> result =
      RunCommand({.argv = {"sh", "-c", "pwd; echo $GREETING; cat; echo bad >&2; exit 3"},
                  .env = {{"GREETING", "hello"}},
                  .cwd = dir.path()},
                 "from stdin", absl::Seconds(30));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->exit_code, 3);
  EXPECT_EQ(result->stdout_text, absl::StrCat(dir.path(), "\nhello\nfrom stdin"));
  EXPECT_EQ(result->stderr_text, "bad\n");
}

TEST(ProcessTest, MissingProgramIsNotFound) {
  const absl::Status status = Process::Start({.argv = {"/nonexistent/program"}}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/nonexistent/program"));
}

TEST(ProcessTest, SignalIsAnExitCodeAbove128) {
  auto process = Process::Start({.argv = {"sleep", "1000"}});
  ASSERT_TRUE(process.ok()) << process.status();
  (*process)->Kill(SIGKILL);
  EXPECT_EQ(*(*process)->Wait(absl::Seconds(30)), 128 + SIGKILL);
  EXPECT_FALSE((*process)->Running());
}

TEST(ProcessTest, WaitTellsWhatIsStillRunning) {
  const TempDir dir;
  auto process = Process::Start(
      {.argv = {"sh", "-c", "echo stuck; exec sleep 1000"}, .stdout_file = dir.File("log")});
  ASSERT_TRUE(process.ok()) << process.status();
  ASSERT_TRUE(WaitFor([&] { return (*process)->OutputTail() == "stuck\n"; }, absl::Seconds(30),
                      "the output", [&] { return (*process)->OutputTail(); })
                  .ok());
  const absl::Status status = (*process)->Wait(absl::Milliseconds(1)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), HasSubstr("output: stuck"));
}

TEST(ProcessTest, StopKillsWhoeverIgnoresSigterm) {
  const TempDir dir;
  auto process =
      Process::Start({.argv = {"sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done"},
                      .stdout_file = dir.File("log")});
  ASSERT_TRUE(process.ok()) << process.status();
  ASSERT_TRUE(WaitFor([&] { return (*process)->OutputTail() == "ready\n"; }, absl::Seconds(30),
                      "the trap", [&] { return (*process)->OutputTail(); })
                  .ok());
  EXPECT_EQ((*process)->Stop(absl::Milliseconds(50)).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_FALSE((*process)->Running());
}

TEST(ProcessTest, EndsWithItsHandle) {
  auto process = Process::Start({.argv = {"sleep", "1000"}});
  ASSERT_TRUE(process.ok()) << process.status();
  const pid_t pid = (*process)->pid();
  EXPECT_TRUE(Exists(pid));
  process->reset();
  EXPECT_FALSE(Exists(pid));
}

TEST(ProcessTest, EndsWithItsParent) {
  const TempDir dir;
  const pid_t parent = fork();
  if (parent == 0) {
    auto child = Process::Start({.argv = {"sleep", "1000"}});
    dir.Write("pid", absl::StrCat((*child)->pid()));
    raise(SIGKILL);
  }
  waitpid(parent, nullptr, 0);
  const absl::StatusOr<std::string> text = ReadFile(dir.File("pid"));
  ASSERT_TRUE(text.ok()) << text.status();
  int pid = 0;
  ASSERT_TRUE(absl::SimpleAtoi(*text, &pid));
  // Reparented to init, or to whoever reaps here: a zombie counts as ended.
  EXPECT_TRUE(WaitFor(
                  [&] {
                    const auto stat = ReadFile(absl::StrCat("/proc/", pid, "/stat"));
                    return !stat.ok() || stat->find(") Z") != std::string::npos;
                  },
                  absl::Seconds(30), "the end of the grandchild",
                  [&] { return *ReadFile(absl::StrCat("/proc/", pid, "/stat")); })
                  .ok());
}

}  // namespace
}  // namespace outrigger::tests
