// SPDX-License-Identifier: Apache-2.0
#include "operator/local/child_process.h"

#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <absl/strings/strip.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/temp_dir.h"
#include "tests/support/wait_for.h"

namespace outrigger::controller::local {
namespace {

using testing::HasSubstr;

class ChildProcessTest : public testing::Test {
 protected:
  // `script` run by sh, which writes into Output().
  std::unique_ptr<ChildProcess> StartShell(const std::string& script) {
    auto child = ChildProcess::Start({.argv = {"sh", "-c", script},
                                      .env = {{"D", dir_.path()}},
                                      .output_file = dir_.File("out")});
    EXPECT_TRUE(child.ok()) << child.status();
    return child.ok() ? *std::move(child) : nullptr;
  }
  std::string Output() const { return tests::ReadTail(dir_.File("out")); }
  std::string End(ChildProcess& child) const {
    const absl::Status waited =
        tests::WaitFor([&] { return child.Poll().has_value(); }, absl::Seconds(20), "its end",
                       [&] { return Output(); });
    EXPECT_TRUE(waited.ok()) << waited;
    return child.Poll().value_or("still runs");
  }
  bool UntilOutput(const std::string& text) const {
    const absl::Status waited = tests::WaitFor([&] { return absl::StrContains(Output(), text); },
                                               absl::Seconds(20), text, [&] { return Output(); });
    EXPECT_TRUE(waited.ok()) << waited;
    return waited.ok();
  }

  const tests::TempDir dir_;
};

TEST_F(ChildProcessTest, TellsExitCodeAndSignalByName) {
  EXPECT_EQ(End(*StartShell("exit 3")), "exit code 3");
  EXPECT_EQ(End(*StartShell("kill -9 $$")), "signal 9 (SIGKILL)");
  const auto child = StartShell("echo up; read never </dev/tty || sleep 600");
  ASSERT_TRUE(UntilOutput("up"));
  EXPECT_FALSE(child->Poll().has_value());
  child->Signal(SIGTERM);
  EXPECT_EQ(End(*child), "signal 15 (SIGTERM)");
}

TEST_F(ChildProcessTest, WhatItLeavesBehindIsKilled) {
  const auto child = StartShell("sleep 600 & echo $! >$D/pid; exit 0");
  EXPECT_EQ(End(*child), "exit code 0");
  const auto pid = tests::ReadFile(dir_.File("pid"));
  ASSERT_TRUE(pid.ok());
  const absl::Status gone = tests::WaitFor(
      [&] {
        const auto stat =
            tests::ReadFile(absl::StrCat("/proc/", pid->substr(0, pid->find('\n')), "/stat"));
        return !stat.ok() || absl::StrContains(*stat, ") Z ");
      },
      absl::Seconds(20), "the grandchild's end", [] { return "it runs"; });
  EXPECT_TRUE(gone.ok()) << gone;
}

// A handler of ours in the child would write into our pipes; a blocked signal would never end it.
TEST_F(ChildProcessTest, StartsWithNoSignalBlockedOrIgnored) {
  sigset_t blocked;
  sigset_t before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const auto handler = signal(SIGHUP, SIG_IGN);
  const auto pipe_handler = signal(SIGPIPE, SIG_IGN);  // outriggerctl ignores it
  const auto child = StartShell("grep -E '^Sig(Blk|Ign)' /proc/self/status");
  signal(SIGHUP, handler);
  signal(SIGPIPE, pipe_handler);
  sigset_t after;
  pthread_sigmask(SIG_SETMASK, &before, &after);
  EXPECT_EQ(sigismember(&after, SIGUSR1), 1) << "Start() puts our own mask back";
  EXPECT_EQ(End(*child), "exit code 0");
  const std::vector<std::string> lines = absl::StrSplit(Output(), '\n');
  ASSERT_GE(lines.size(), 2u) << Output();
  EXPECT_EQ(lines[0], "SigBlk:\t0000000000000000");
  uint64_t ignored = 0;
  ASSERT_TRUE(absl::SimpleHexAtoi(absl::StripPrefix(lines[1], "SigIgn:\t"), &ignored)) << lines[1];
  // Signals 32 and 33 are libc's own: ignored in all that make starts, and no program can undo it.
  constexpr uint64_t kOfLibc = uint64_t{3} << 31;
  EXPECT_EQ(ignored & ~kOfLibc, 0u) << lines[1];
}

TEST_F(ChildProcessTest, InheritsNoFileOfOurs) {
  // Without O_CLOEXEC, as a careless library opens it.
  const int leaked = open(dir_.Write("secret", "x").c_str(), O_RDONLY);
  ASSERT_GE(leaked, 0);
  EXPECT_EQ(End(*StartShell("for f in /proc/self/fd/*; do readlink $f; done; exit 0")),
            "exit code 0");
  close(leaked);
  EXPECT_FALSE(absl::StrContains(Output(), "secret")) << Output();
}

TEST_F(ChildProcessTest, SaysWhatCouldNotBeStarted) {
  const auto code = [](const ChildProcess::Options& options, const std::string& text) {
    const absl::Status status = ChildProcess::Start(options).status();
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
    return status.code();
  };
  EXPECT_EQ(code({}, "want a program, got nothing"), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.argv = {"no-such-program"}}, "no-such-program: No such file"),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(code({.argv = {dir_.Write("text", "x")}}, "text: Permission denied"),
            absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(code({.argv = {"true"}, .working_dir = "/nowhere"}, "/nowhere: No such file"),
            absl::StatusCode::kNotFound)
      << "the folder is named, not the program";
  EXPECT_EQ(code({.argv = {"true"}, .output_file = "/nowhere/out"}, "/nowhere/out"),
            absl::StatusCode::kInternal);
}

TEST_F(ChildProcessTest, TheDestructorLeavesNothing) {
  pid_t pid = 0;
  {
    const auto started = ChildProcess::Start({.argv = {"tail", "-f", "/dev/null"}});
    ASSERT_TRUE(started.ok()) << started.status();
    pid = (*started)->pid();
    EXPECT_TRUE(tests::ReadFile(absl::StrCat("/proc/", pid, "/stat")).ok());
  }
  EXPECT_FALSE(tests::ReadFile(absl::StrCat("/proc/", pid, "/stat")).ok());
}

}  // namespace
}  // namespace outrigger::controller::local
