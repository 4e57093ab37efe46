// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace outrigger::tests {

// A plugin of ours as a process, on the socket <temp>/<name>/scaler.sock and on a free port of
// 127.0.0.1. `binary` is a target of this build; name it in BINARIES of the test.
class PluginProcess {
 public:
  struct Options {
    std::string binary;              // e.g. "outrigger-scaler-redis"
    std::string name = "plugin";     // of its folder
    std::vector<std::string> flags;  // more of them
    std::string folder;              // in which the plugin's folder is made; "": one of its own
    bool tcp = true;
  };

  // Returns when it serves. Its output is in the error otherwise.
  static absl::StatusOr<std::unique_ptr<PluginProcess>> Start(Options options);

  std::string socket() const;          // path
  std::string socket_address() const;  // "unix:" and the path
  const std::string& tcp_address() const { return tcp_address_; }
  std::string folder() const;  // that holds the plugin's folder (--plugin-dir)
  Process& process() { return *process_; }
  // Everything that it printed so far.
  std::string Output() const;
  // Starts it again (its folder and flags stay) after it has ended or was killed.
  absl::Status Restart();

 private:
  explicit PluginProcess(Options options) : options_(std::move(options)) {}
  absl::Status Launch();

  const Options options_;
  const TempDir temp_;
  std::unique_ptr<Process> process_;
  std::string tcp_address_;
};

}  // namespace outrigger::tests
