// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/time/time.h>
#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace outrigger::tests {

// A child process that never outlives the test: killed and reaped at destruction, killed by the
// kernel when the thread that started it ends (so start it from the test's main thread).
//
// One thread at a time. Nothing here blocks but Wait(), Stop() and the destructor.
class Process {
 public:
  struct Options {
    std::vector<std::string> argv;           // argv[0] without a slash is looked up in PATH
    std::map<std::string, std::string> env;  // added to the environment of the test
    std::string cwd;                         // "": the test's
    std::string stdin_file;                  // "": /dev/null
    std::string stdout_file;                 // appended to; "": /dev/null
    std::string stderr_file;                 // appended to; "": goes where stdout goes
  };

  // NOT_FOUND when the program cannot be executed, INTERNAL when a file or the process cannot be
  // had.
  static absl::StatusOr<std::unique_ptr<Process>> Start(Options options);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  bool Running();
  // Sends `signal`; does nothing once the process has ended.
  void Kill(int signal);
  // The exit code, or 128 + signal. DEADLINE_EXCEEDED while it still runs after `timeout`, with the
  // end of its output.
  absl::StatusOr<int> Wait(absl::Duration timeout);
  // SIGTERM, then Wait(); after `timeout` it is killed and the error of Wait() returned.
  absl::StatusOr<int> Stop(absl::Duration timeout = absl::Seconds(10));

  // The end of what it wrote, for messages.
  std::string OutputTail() const;

 private:
  Process(Options options, pid_t pid) : options_(std::move(options)), pid_(pid) {}

  const Options options_;
  const pid_t pid_;
  std::optional<int> exit_code_;  // once reaped
};

struct CommandResult {
  int exit_code = 0;
  std::string stdout_text;
  std::string stderr_text;

  bool ok() const { return exit_code == 0; }
  // "exit 1\nstdout: …\nstderr: …".
  std::string Describe() const;
};

// Runs a program to its end. `options` without files; `stdin_text` is its input. An exit code other
// than 0 is a result, not an error. DEADLINE_EXCEEDED: it was killed.
absl::StatusOr<CommandResult> RunCommand(Process::Options options, absl::string_view stdin_text,
                                         absl::Duration timeout);

}  // namespace outrigger::tests
