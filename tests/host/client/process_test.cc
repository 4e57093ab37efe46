// SPDX-License-Identifier: Apache-2.0
//
// PluginDirectory and ScalerClient against real processes over real sockets.
#include "tests/support/process.h"

#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>
#include <absl/strings/strip.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <thread>

#include "host/base/logging.h"
#include "host/base/real_clock.h"
#include "host/client/grpc_channel.h"
#include "host/client/plugin_directory.h"
#include "host/client/scaler_client.h"
#include "tests/support/free_port.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wait_for.h"

namespace outrigger::host {
namespace {

namespace asio = boost::asio;
using testing::HasSubstr;
using tests::Process;

TriggerPtr MakeTrigger(const std::string& type, const std::string& say) {
  scaler::v1::Trigger trigger;
  trigger.set_type(type);
  (*trigger.mutable_metadata())["say"] = say;
  SetFingerprint(trigger, false, "key");
  return std::make_shared<const scaler::v1::Trigger>(std::move(trigger));
}

// The faulty scaler as a process, and what it was asked.
class Scaler {
 public:
  Scaler(std::string address, std::string log, std::string types, std::string mode = "batch")
      : address_(std::move(address)),
        log_(std::move(log)),
        types_(std::move(types)),
        mode_(std::move(mode)) {}

  void Start() {
    const std::string socket = std::string(absl::StripPrefix(address_, "unix:"));
    if (socket != address_) {
      std::filesystem::create_directories(std::filesystem::path(socket).parent_path());
      ::unlink(socket.c_str());
    }
    const char* bin = std::getenv("OUTRIGGER_BIN_DIR");
    ASSERT_NE(bin, nullptr);
    auto started = Process::Start({.argv = {absl::StrCat(bin, "/outrigger-test-faulty-scaler"),
                                            address_, log_, types_, mode_}});
    ASSERT_TRUE(started.ok()) << started.status();
    process_ = *std::move(started);
  }
  void Kill() {
    process_->Kill(SIGKILL);
    ASSERT_TRUE(process_->Wait(absl::Seconds(10)).ok());
  }
  Process& process() { return *process_; }

  std::vector<std::string> Lines() const {
    const auto text = tests::ReadFile(log_);
    if (!text.ok()) return {};
    return absl::StrSplit(*text, '\n', absl::SkipEmpty());
  }
  // How often an RPC was called.
  int Calls(absl::string_view rpc) const {
    int calls = 0;
    for (const std::string& line : Lines()) {
      if (absl::StartsWith(line, absl::StrCat(rpc, " "))) ++calls;
    }
    return calls;
  }

 private:
  const std::string address_;
  const std::string log_;
  const std::string types_;
  const std::string mode_;
  std::unique_ptr<Process> process_;
};

class ScalerProcessTest : public testing::Test {
 protected:
  template <typename Function>
  auto OnStrand(Function function) {
    return asio::post(io_, asio::use_future(std::move(function))).get();
  }

  ScalerProcessTest() : guard_(io_.get_executor()), thread_([this] { io_.run(); }) {
    auto sink = MakeStderrSink({.level = "warning", .format = "text"});
    sink_ = *sink;
  }
  ~ScalerProcessTest() override {
    if (directory_ != nullptr) Await(directory_->Stop());
    OnStrand([this] {
      client_.reset();
      directory_.reset();
    });
    guard_.reset();
    thread_.join();
  }

  void Connect(PluginDirectory::Options options = {}) {
    options.plugin_dir = dir_.path();
    OnStrand([&] {
      directory_ = std::make_unique<PluginDirectory>(
          io_.get_executor(), clock_, Logger(sink_), 1,
          MakeGrpcConnector(clock_, io_.get_executor(), {}), std::move(options));
      client_ = std::make_unique<ScalerClient>(*directory_, ScalerClient::Options());
      EXPECT_TRUE(directory_->Start().ok());
    });
  }

  template <typename T>
  T Await(Task<T> task) {
    return asio::co_spawn(io_, std::move(task), asio::use_future).get();
  }
  std::string FolderAddress(const std::string& name) const {
    return absl::StrCat("unix:", dir_.path(), "/", name, "/scaler.sock");
  }
  Scaler FolderScaler(const std::string& name, const std::string& types,
                      const std::string& mode = "batch") {
    return Scaler(FolderAddress(name), logs_.File(name), types, mode);
  }

  PluginStatus StatusOf(const std::string& plugin) {
    return OnStrand([&] {
      for (PluginStatus& status : directory_->Plugins()) {
        if (status.name == plugin) return status;
      }
      return PluginStatus{.state = PluginState::kRefused, .reason = "not known"};
    });
  }
  absl::Status WaitForState(const std::string& plugin, PluginState state,
                            absl::Duration timeout = absl::Seconds(20)) {
    PluginStatus last;
    return tests::WaitFor(
        [&] {
          last = StatusOf(plugin);
          return last.state == state;
        },
        timeout, absl::StrCat("plugin ", plugin, " in state ", static_cast<int>(state)),
        [&] { return absl::StrCat("state ", static_cast<int>(last.state), ", ", last.reason); });
  }

  absl::StatusOr<MetricsAnswer> Get(const std::string& type, const std::string& say,
                                    absl::Duration timeout = absl::Seconds(3)) {
    return Await(client_->GetMetrics(MakeTrigger(type, say), {.metric_name = "depth", .poll = true},
                                     Deadline::After(clock_, timeout)));
  }

  RealClock clock_;
  tests::TempDir dir_;
  tests::TempDir logs_;
  std::shared_ptr<LogSink> sink_;
  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> guard_;
  std::unique_ptr<PluginDirectory> directory_;
  std::unique_ptr<ScalerClient> client_;
  std::thread thread_;
};

// Shows R1. The operator reads specs and values of a scaler in another process.
TEST_F(ScalerProcessTest, AsksAPluginThatStartsAfterTheOperator) {
  Connect();
  EXPECT_TRUE(IsPluginUnreachable(Get("depth", "5").status()));
  Scaler scaler = FolderScaler("depth", "depth");
  scaler.Start();
  ASSERT_TRUE(WaitForState("depth", PluginState::kReady).ok());

  const auto specs = Await(client_->GetMetricSpecForScaling(
      MakeTrigger("depth", "5"), Deadline::After(clock_, absl::Seconds(3))));
  ASSERT_TRUE(specs.ok()) << specs.status();
  EXPECT_EQ(specs->at(0).name(), "depth");
  const auto answer = Get("depth", "42.5");
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->values.at(0).value(), 42.5);
  EXPECT_TRUE(answer->active);
  EXPECT_EQ(StatusOf("depth").version, "1.2.3");
}

}  // namespace
}  // namespace outrigger::host
