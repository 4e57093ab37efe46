// SPDX-License-Identifier: Apache-2.0
#include "operator/local/process_runner.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <memory>
#include <string>
#include <vector>

#include "host/base/fake_clock.h"
#include "tests/simulation/seeded_executor.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wait_for.h"

namespace outrigger::controller::local {
namespace {

// Real processes, virtual time: the runner looks after its children whenever Until() lets 50 ms of
// virtual time pass.
class ProcessRunnerTest : public testing::Test {
 protected:
  void StartRunner() {
    runner_ = std::make_unique<ProcessRunner>(
        clock_, host::Logger(host::MakeNullSink()), api::NamespacedName{"ns", "web"},
        ProcessRunner::Options{
            .log_folder = dir_.path(),
            .print = [this](const std::string& line) { printed_.push_back(line); }},
        [this] { ++changes_; });
    boost::asio::co_spawn(executor_.executor(), runner_->Run(),
                          [this](const std::exception_ptr&) { ended_ = true; });
  }
  ~ProcessRunnerTest() override {
    if (runner_ == nullptr) return;
    runner_->Stop();
    EXPECT_TRUE(Until([this] { return ended_; }));
  }

  // `script` run by sh; $D is the test's folder. $$ must be written twice: it is expanded as in a
  // pod.
  absl::Status Apply(int replicas, const std::string& script, int grace_seconds = 30) {
    const boost::json::value spec = {
        {"replicas", replicas},
        {"template",
         {{"spec",
           {{"terminationGracePeriodSeconds", grace_seconds},
            {"containers",
             {{{"name", "c"},
               {"command", {"sh", "-c", script}},
               {"env", {{{"name", "D"}, {"value", dir_.path()}}}}}}}}}}}};
    return runner_->Apply(spec.as_object());
  }

  bool Until(const std::function<bool()>& done) {
    const auto step = [&] {
      executor_.RunFor(absl::Milliseconds(50));
      return done();
    };
    const absl::Status waited =
        tests::WaitFor(step, absl::Seconds(20), "the replicas", [this] { return Counts(); });
    EXPECT_TRUE(waited.ok()) << waited;
    return waited.ok();
  }
  // "replicas/ready"
  std::string Counts() const {
    const Workload::Counts counts = runner_->counts();
    return absl::StrCat(counts.replicas, "/", counts.ready);
  }
  std::vector<std::string> Lines(const std::string& file) const {
    const auto text = tests::ReadFile(dir_.File(file));
    return text.ok() ? std::vector<std::string>(absl::StrSplit(*text, '\n', absl::SkipEmpty()))
                     : std::vector<std::string>();
  }
  // A zombie that nobody reaps counts as gone.
  static bool Alive(const std::string& pid) {
    const auto stat = tests::ReadFile(absl::StrCat("/proc/", pid, "/stat"));
    return stat.ok() && !absl::StrContains(*stat, ") Z ");
  }

  const tests::TempDir dir_;
  host::FakeClock clock_;
  simulation::SeededExecutor executor_{clock_, 1};
  std::unique_ptr<ProcessRunner> runner_;
  int changes_ = 0;
  std::vector<std::string> printed_;
  bool ended_ = false;
};

constexpr char kForever[] = "echo $$$$ >> $D/pids; exec tail -f /dev/null";

TEST_F(ProcessRunnerTest, FollowsReplicasUpAndDown) {
  StartRunner();
  ASSERT_TRUE(Apply(3, kForever).ok());
  ASSERT_TRUE(Until([&] { return Counts() == "3/3" && Lines("pids").size() == 3; }));
  for (const std::string& pid : Lines("pids")) EXPECT_TRUE(Alive(pid)) << pid;
  ASSERT_TRUE(Apply(1, kForever).ok());
  ASSERT_TRUE(Until([&] { return Counts() == "1/1"; }));
  ASSERT_TRUE(Apply(0, kForever).ok());
  ASSERT_TRUE(Until([&] { return Counts() == "0/0"; }));
  for (const std::string& pid : Lines("pids")) EXPECT_FALSE(Alive(pid)) << pid;
  EXPECT_EQ(Lines("pids").size(), 3u);
  EXPECT_GE(changes_, 3);
}

TEST_F(ProcessRunnerTest, EachReplicaHasItsHostNameAndItsLog) {
  StartRunner();
  ASSERT_TRUE(Apply(2, "echo I am $HOSTNAME; exec tail -f /dev/null").ok());
  ASSERT_TRUE(Until(
      [&] { return Lines("ns.web-0.log").size() == 1 && Lines("ns.web-1.log").size() == 1; }));
  EXPECT_EQ(Lines("ns.web-1.log")[0], "I am web-1");
}

TEST_F(ProcessRunnerTest, CrashedReplicasAreStartedAgainWithBackoff) {
  StartRunner();
  ASSERT_TRUE(Apply(1, "echo x >> $D/starts; exit 3").ok());
  ASSERT_TRUE(Until([&] { return Lines("starts").size() == 1 && Counts() == "0/0"; }));
  executor_.RunFor(absl::Milliseconds(900));
  EXPECT_EQ(Counts(), "0/0");
  ASSERT_TRUE(Until([&] { return Lines("starts").size() == 2 && Counts() == "0/0"; }));
  executor_.RunFor(absl::Milliseconds(1'800));
  EXPECT_EQ(Lines("starts").size(), 2u);
  ASSERT_TRUE(Until([&] { return Lines("starts").size() == 3; }));
  ASSERT_GE(printed_.size(), 2u);
  EXPECT_EQ(printed_[1],
            "ns/web: replica 0 ended by itself with exit code 3; it is started again in 2s");
}

TEST_F(ProcessRunnerTest, WhoIgnoresSigtermIsKilledAfterTheGracePeriod) {
  StartRunner();
  ASSERT_TRUE(
      Apply(1, "trap '' TERM; echo $$$$ > $D/pids; while :; do tail -f /dev/null; done", 5).ok());
  ASSERT_TRUE(Until([&] { return Lines("pids").size() == 1; }));
  ASSERT_TRUE(Apply(0, kForever).ok());
  executor_.RunFor(absl::Milliseconds(4'900));
  EXPECT_EQ(Counts(), "1/0");
  EXPECT_TRUE(Alive(Lines("pids")[0]));
  ASSERT_TRUE(Until([&] { return Counts() == "0/0"; }));
  EXPECT_FALSE(Alive(Lines("pids")[0]));
}

TEST_F(ProcessRunnerTest, KillWaitsForNoGracePeriod) {
  StartRunner();
  ASSERT_TRUE(
      Apply(2, "trap '' TERM; echo $$$$ >> $D/pids; while :; do tail -f /dev/null; done").ok());
  ASSERT_TRUE(Until([&] { return Lines("pids").size() == 2; }));
  runner_->Kill();
  EXPECT_EQ(Counts(), "0/0");
  for (const std::string& pid : Lines("pids")) EXPECT_FALSE(Alive(pid)) << pid;
  executor_.RunFor(absl::ZeroDuration());
  EXPECT_TRUE(ended_);
}

TEST_F(ProcessRunnerTest, AReplicaThatEndsBeforeOneBehindItIsNotLookedAtAllTheTime) {
  const std::string script =
      "[ $HOSTNAME = web-2 ] && trap '' TERM; echo x >> $D/up; while :; do tail -f /dev/null; done";
  StartRunner();
  ASSERT_TRUE(Apply(3, script, 5).ok());
  ASSERT_TRUE(Until([&] { return Lines("up").size() == 3; }));
  ASSERT_TRUE(Apply(1, script, 5).ok());
  ASSERT_TRUE(Until([&] { return Counts() == "2/1"; }));
  const uint64_t before = executor_.turns();
  executor_.RunFor(absl::Seconds(2));
  EXPECT_EQ(Counts(), "2/1");
  EXPECT_LE(executor_.turns() - before, 100u) << "40 looks are due";
}

TEST_F(ProcessRunnerTest, WhatAReplicaStartedGoesWithIt) {
  StartRunner();
  ASSERT_TRUE(Apply(1, "tail -f /dev/null & echo $! > $D/child; wait").ok());
  ASSERT_TRUE(Until([&] { return Lines("child").size() == 1; }));
  const std::string child = Lines("child")[0];
  EXPECT_TRUE(Alive(child));
  ASSERT_TRUE(Apply(0, kForever).ok());
  ASSERT_TRUE(Until([&] { return Counts() == "0/0" && !Alive(child); }));
}

TEST_F(ProcessRunnerTest, AChangedTemplateReplacesTheReplicas) {
  StartRunner();
  ASSERT_TRUE(Apply(1, "echo one > $D/version; exec tail -f /dev/null").ok());
  ASSERT_TRUE(Until([&] { return Lines("version") == std::vector<std::string>{"one"}; }));
  ASSERT_TRUE(Apply(1, "echo two > $D/version; exec tail -f /dev/null").ok());
  ASSERT_TRUE(Until(
      [&] { return Lines("version") == std::vector<std::string>{"two"} && Counts() == "1/1"; }));
}

TEST_F(ProcessRunnerTest, ASpecThatCannotRunLeavesWhatRuns) {
  StartRunner();
  ASSERT_TRUE(Apply(1, kForever).ok());
  ASSERT_TRUE(Until([&] { return Counts() == "1/1"; }));
  const absl::Status refused = runner_->Apply(
      boost::json::parse(R"({"replicas":4,"template":{"spec":{"containers":[]}}})").as_object());
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  executor_.RunFor(absl::Seconds(1));
  EXPECT_EQ(Counts(), "1/1");
}

}  // namespace
}  // namespace outrigger::controller::local
