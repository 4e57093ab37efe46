// SPDX-License-Identifier: Apache-2.0
#include "operator/local/plugin_processes.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <memory>

#include "host/base/fake_clock.h"
#include "tests/simulation/seeded_executor.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wait_for.h"

namespace outrigger::controller::local {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

// Real processes, virtual time.
class PluginProcessesTest : public testing::Test {
 protected:
  // Each start of it writes a line into Starts(), then `script` runs.
  void StartPlugin(const std::string& script) {
    plugins_ = std::make_unique<PluginProcesses>(
        clock_,
        std::vector<PluginProcesses::Plugin>{
            {.name = "redis",
             .argv = {"/bin/sh", "-c",
                      absl::StrCat("echo x >>", dir_.File("starts"), "; ", script)}}},
        PluginProcesses::Options(), [this](const std::string& line) { lines_.push_back(line); });
    const absl::Status started = plugins_->Start();
    ASSERT_TRUE(started.ok()) << started;
    boost::asio::co_spawn(executor_.executor(), plugins_->Run(),
                          [this](const std::exception_ptr&) { ended_ = true; });
  }
  ~PluginProcessesTest() override {
    if (plugins_ == nullptr) return;
    plugins_->Stop();
    EXPECT_TRUE(Until([this] { return ended_; }));
  }

  // `step_time` of virtual time for each 20 ms of ours.
  bool Until(const std::function<bool()>& done,
             absl::Duration step_time = absl::Milliseconds(100)) {
    const auto step = [&] {
      executor_.RunFor(step_time);
      return done();
    };
    const absl::Status waited = tests::WaitFor(step, absl::Seconds(20), "the plugin", [this] {
      return absl::StrCat(Starts(), " starts\n", absl::StrJoin(lines_, "\n"));
    });
    EXPECT_TRUE(waited.ok()) << waited;
    return waited.ok();
  }
  size_t Starts() const {
    const auto text = tests::ReadFile(dir_.File("starts"));
    return text.ok() ? static_cast<size_t>(std::count(text->begin(), text->end(), '\n')) : 0;
  }
  // The delay that the last line announces.
  absl::Duration LastDelay() const {
    const std::vector<std::string> words = absl::StrSplit(lines_.back(), ' ');
    return absl::Seconds(std::stod(words[words.size() - 2]));
  }

  const tests::TempDir dir_;
  host::FakeClock clock_;
  simulation::SeededExecutor executor_{clock_, 1};
  std::unique_ptr<PluginProcesses> plugins_;
  std::vector<std::string> lines_;
  bool ended_ = false;
};

TEST_F(PluginProcessesTest, OneThatDiesIsStartedAgainAndItIsSaid) {
  StartPlugin("[ -e $0.up ] || exit 7; exec sleep 600");
  ASSERT_TRUE(Until([this] { return !lines_.empty(); }));
  EXPECT_THAT(lines_[0], MatchesRegex("plugin redis: ended with exit code 7; it is started again "
                                      "in 0\\.[01] s"));
  ASSERT_TRUE(Until([this] { return Starts() >= 2; }));
  EXPECT_GE(plugins_->RestartsOf("redis"), 1);
  EXPECT_EQ(plugins_->RestartsOf("other"), 0);
}

TEST_F(PluginProcessesTest, ASignalIsNamed) {
  StartPlugin("kill -SEGV $$");
  ASSERT_TRUE(Until([this] { return !lines_.empty(); }));
  EXPECT_THAT(lines_[0], HasSubstr("ended with signal 11 (SIGSEGV)"));
}

TEST_F(PluginProcessesTest, TheWaitDoublesToTenSeconds) {
  StartPlugin("exit 1");
  ASSERT_TRUE(Until([this] { return lines_.size() >= 10; }, absl::Seconds(1)));
  EXPECT_LE(LastDelay(), absl::Seconds(10));
  EXPECT_GE(LastDelay(), absl::Seconds(5));
}

TEST_F(PluginProcessesTest, AGoodMinuteIsForgiven) {
  StartPlugin(absl::StrCat("until [ -e ", dir_.File("die"), " ]; do sleep 0.05; done; exit 1"));
  dir_.Write("die", "");
  ASSERT_TRUE(Until([this] { return lines_.size() >= 6; }, absl::Seconds(1)));
  EXPECT_GE(LastDelay(), absl::Seconds(1));
  ASSERT_EQ(unlink(dir_.File("die").c_str()), 0);
  ASSERT_TRUE(Until([&] { return Starts() == lines_.size() + 1; }));
  clock_.Advance(absl::Minutes(1));
  dir_.Write("die", "");
  const size_t told = lines_.size();
  ASSERT_TRUE(Until([&] { return lines_.size() > told; }));
  EXPECT_LE(LastDelay(), absl::Milliseconds(100));
}

TEST_F(PluginProcessesTest, StopDuringTheWaitEndsAtOnce) {
  StartPlugin("exit 1");
  ASSERT_TRUE(Until([this] { return !lines_.empty() && LastDelay() >= absl::Seconds(5); },
                    absl::Seconds(1)));
  const size_t starts = Starts();
  plugins_->Stop();
  executor_.RunFor(absl::Milliseconds(50));
  EXPECT_TRUE(ended_);
  EXPECT_EQ(Starts(), starts);
}

TEST_F(PluginProcessesTest, OneThatIgnoresSigtermIsKilledAfterItsGrace) {
  StartPlugin(
      absl::StrCat("trap '' TERM; echo up >", dir_.File("up"), "; while :; do sleep 0.05; done"));
  ASSERT_TRUE(Until([this] { return tests::ReadFile(dir_.File("up")).ok(); }));
  plugins_->Stop();
  executor_.RunFor(absl::Seconds(5));
  EXPECT_FALSE(ended_) << "it has six seconds";
  executor_.RunFor(absl::Seconds(2));
  EXPECT_TRUE(ended_);
}

TEST_F(PluginProcessesTest, KillWaitsForNoGracePeriod) {
  StartPlugin(
      absl::StrCat("trap '' TERM; echo up >", dir_.File("up"), "; while :; do sleep 0.05; done"));
  ASSERT_TRUE(Until([this] { return tests::ReadFile(dir_.File("up")).ok(); }));
  plugins_->Kill();
  executor_.RunFor(absl::ZeroDuration());
  EXPECT_TRUE(ended_);
  EXPECT_EQ(Starts(), 1u);
  EXPECT_TRUE(lines_.empty()) << lines_[0];
}

TEST_F(PluginProcessesTest, AProgramThatIsNotThereFailsTheStart) {
  PluginProcesses plugins(clock_, {{.name = "redis", .argv = {"/no/such/program"}}}, {},
                          [](auto&) {});
  const absl::Status started = plugins.Start();
  EXPECT_EQ(started.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(started.message()), HasSubstr("plugin redis: /no/such/program"));
}

}  // namespace
}  // namespace outrigger::controller::local
