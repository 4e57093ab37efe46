// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <memory>
#include <string>

#include "tests/support/plugin/plugin_process.h"
#include "tests/support/scripted/script.pb.h"

namespace outrigger::tests {

// The scripted scaler as a process whose answers and faults a test sets. Name
// outrigger-test-scripted in BINARIES of the test.
//
//   auto plugin = ScriptedPlugin::Start({.folder = plugin_dir});
//   (*plugin)->SetValue("orders", 12);           // for triggers with metadata script: orders
//   (*plugin)->SetError("orders", absl::UnavailableError("down"));
//   EXPECT_EQ((*plugin)->Calls("orders")->polls(), 1);
//
// One thread at a time. A plugin that was killed or stopped cannot be told or asked anything, and
// that is an error.
class ScriptedPlugin {
 public:
  struct Options {
    std::string name = "scripted";      // of its folder under `folder`
    std::string folder;                 // --plugin-dir of the operator; "": one of its own
    std::string announce = "scripted";  // trigger types, comma separated
  };

  static absl::StatusOr<std::unique_ptr<ScriptedPlugin>> Start(Options options);
  ~ScriptedPlugin();

  absl::Status Set(const std::string& script, const test::v1::Behaviour& behaviour);
  absl::Status SetValue(const std::string& script, double value);
  absl::Status SetError(const std::string& script, const absl::Status& error);
  // What it was asked so far; "" for all scripts together.
  absl::StatusOr<test::v1::CallsResponse> Calls(const std::string& script);

  // For signals, its output, its socket, Restart() (which forgets all scripts).
  PluginProcess& plugin() { return *plugin_; }

 private:
  struct Stub;
  explicit ScriptedPlugin(std::unique_ptr<PluginProcess> plugin);

  const std::unique_ptr<PluginProcess> plugin_;
  const std::unique_ptr<Stub> stub_;
};

}  // namespace outrigger::tests
