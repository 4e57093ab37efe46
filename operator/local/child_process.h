// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace outrigger::controller::local {

// A child process in a process group of its own: a replica or a plugin of the embedded mode.
//
// It never outlives us: the kernel kills it when the thread that started it ends (so start it from
// a thread that lives as long as it should), and the destructor kills its whole group and reaps it.
// Only of a child that was killed by the kernel may grandchildren remain. One thread at a time.
// Start() waits for exec, which is milliseconds; nothing else here blocks, but the destructor until
// a killed child is gone.
class ChildProcess {
 public:
  struct Options {
    std::vector<std::string> argv;           // argv[0] without a slash is looked up in PATH
    std::map<std::string, std::string> env;  // added to ours
    std::string working_dir;                 // "": ours
    std::string output_file;                 // stdout and stderr are appended to it; "": /dev/null
  };

  // NOT_FOUND when the program cannot be executed, INVALID_ARGUMENT without one, INTERNAL when a
  // file or a process cannot be had.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(const Options& options);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  // How it ended, "exit 1" or "signal 15"; nothing while it runs. Reaps it.
  const std::optional<std::string>& Poll();
  // To the whole group; nothing once it has ended.
  void Signal(int signal);

 private:
  explicit ChildProcess(pid_t pid) : pid_(pid) {}

  const pid_t pid_;
  std::optional<std::string> end_;
};

}  // namespace outrigger::controller::local
