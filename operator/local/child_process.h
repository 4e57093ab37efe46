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
// Only of a child that was killed by the kernel may grandchildren remain. It inherits no file of
// ours but its output, and no signal mask or handler. One thread at a time. Start() waits for exec,
// which is milliseconds; nothing else here blocks, but the destructor until a killed child is gone.
class ChildProcess {
 public:
  struct Options {
    std::vector<std::string> argv;           // argv[0] without a slash is looked up in our PATH
    std::map<std::string, std::string> env;  // added to ours
    std::string working_dir;                 // "": ours
    std::string output_file;                 // stdout and stderr are appended to it; "": /dev/null
  };

  // The message names what could not be had. NOT_FOUND: no such program or folder;
  // PERMISSION_DENIED: it may not be executed or entered; FAILED_PRECONDITION: it cannot be (a file
  // of another format); INVALID_ARGUMENT: no program given; INTERNAL: a file or a process cannot be
  // had.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(const Options& options);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  // How it ended, "exit code 1" or "signal 15 (SIGTERM)"; nothing while it runs. Once it has ended,
  // what it left in its group is killed.
  const std::optional<std::string>& Poll();
  // To the whole group; nothing once it has ended.
  void Signal(int signal);

 private:
  explicit ChildProcess(pid_t pid) : pid_(pid) {}

  const pid_t pid_;
  std::optional<std::string> end_;
};

}  // namespace outrigger::controller::local
