// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "host/base/logging.h"
#include "host/base/real_clock.h"
#include "host/client/grpc_channel.h"
#include "host/client/plugin_directory.h"
#include "host/client/scaler_client.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wait_for.h"

namespace outrigger::host {

namespace asio = boost::asio;

// A PluginDirectory over a temp folder and a ScalerClient, on a strand with a thread of its own.
// The test's thread starts processes and waits for what OnStrand() and Await() return.
class PluginProcessTest : public testing::Test {
 protected:
  template <typename Function>
  auto OnStrand(Function function) {
    return asio::post(io_, asio::use_future(std::move(function))).get();
  }

  PluginProcessTest() : guard_(io_.get_executor()), thread_([this] { io_.run(); }) {
    auto sink = MakeStderrSink({.level = "warning", .format = "text"});
    sink_ = *sink;
  }
  ~PluginProcessTest() override {
    if (directory_ != nullptr) Await(directory_->Stop());
    OnStrand([this] {
      client_.reset();
      directory_.reset();
    });
    guard_.reset();
    thread_.join();
  }

  void Connect(PluginDirectory::Options options = {}, PluginDirectory::Hooks hooks = {}) {
    options.plugin_dir = dir_.path();
    OnStrand([&] {
      directory_ = std::make_unique<PluginDirectory>(
          io_.get_executor(), clock_, Logger(sink_), 1,
          MakeGrpcConnector(clock_, io_.get_executor(), channel_options_), std::move(options),
          std::move(hooks));
      client_ = std::make_unique<ScalerClient>(*directory_, ScalerClient::Options());
      EXPECT_TRUE(directory_->Start().ok());
    });
  }

  template <typename T>
  T Await(Task<T> task) {
    return asio::co_spawn(io_, std::move(task), asio::use_future).get();
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

  RealClock clock_;
  GrpcChannelOptions channel_options_;
  tests::TempDir dir_;
  tests::TempDir logs_;
  std::shared_ptr<LogSink> sink_;
  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> guard_;
  std::unique_ptr<PluginDirectory> directory_;
  std::unique_ptr<ScalerClient> client_;
  std::thread thread_;
};

}  // namespace outrigger::host
