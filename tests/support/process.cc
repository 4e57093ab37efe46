// SPDX-License-Identifier: Apache-2.0
#include "tests/support/process.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <utility>

#include "host/base/status.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wait_for.h"

extern char** environ;

namespace outrigger::tests {
namespace {

// Closes itself. -1: none.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { Close(); }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;

  int get() const { return fd_; }
  void Close() {
    if (fd_ >= 0) close(std::exchange(fd_, -1));
  }

 private:
  int fd_;
};

absl::StatusOr<Descriptor> Open(const std::string& path, int flags) {
  const std::string& name = path.empty() ? "/dev/null" : path;
  Descriptor fd(open(name.c_str(), flags | O_CLOEXEC, 0600));
  if (fd.get() < 0) return absl::InternalError(absl::StrCat(name, ": ", std::strerror(errno)));
  return fd;
}

// Everything that the child needs between fork and exec, made before: the child of a program with
// threads may only call what is async-signal-safe.
struct Launch {
  std::vector<std::string> environment;
  std::vector<char*> argv;
  std::vector<char*> envp;
  std::string cwd;
  int in = -1;
  int out = -1;
  int err = -1;
  int failure = -1;  // exec's errno goes here
  pid_t parent = 0;
};

std::vector<std::string> Environment(const std::map<std::string, std::string>& added) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!added.contains(text.substr(0, text.find('=')))) result.push_back(text);
  }
  for (const auto& [name, value] : added) result.push_back(absl::StrCat(name, "=", value));
  return result;
}

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

[[noreturn]] void BecomeChild(const Launch& launch) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launch.parent) _exit(126);  // the parent was gone before prctl
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL);
  dup2(launch.in, STDIN_FILENO);
  dup2(launch.out, STDOUT_FILENO);
  dup2(launch.err, STDERR_FILENO);
  if (launch.cwd.empty() || chdir(launch.cwd.c_str()) == 0) {
    execvpe(launch.argv[0], launch.argv.data(), launch.envp.data());
  }
  const int error = errno;
  [[maybe_unused]] const ssize_t written = write(launch.failure, &error, sizeof(error));
  _exit(127);
}

int ExitCode(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Process>> Process::Start(Options options) {
  if (options.argv.empty()) return absl::InvalidArgumentError("argv: want a program, got nothing");
  ASSIGN_OR_RETURN(const Descriptor in, Open(options.stdin_file, O_RDONLY));
  const int append = O_WRONLY | O_CREAT | O_APPEND;
  ASSIGN_OR_RETURN(const Descriptor out, Open(options.stdout_file, append));
  ASSIGN_OR_RETURN(const Descriptor err, Open(options.stderr_file, append));
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return absl::InternalError(std::strerror(errno));
  const Descriptor reader(ends[0]);
  Descriptor writer(ends[1]);

  Launch launch;
  launch.environment = Environment(options.env);
  launch.argv = Pointers(options.argv);
  launch.envp = Pointers(launch.environment);
  launch.cwd = options.cwd;
  launch.in = in.get();
  launch.out = out.get();
  launch.err = options.stderr_file.empty() ? out.get() : err.get();
  launch.failure = writer.get();
  launch.parent = getpid();

  const pid_t pid = fork();
  if (pid < 0) return absl::InternalError(absl::StrCat("fork: ", std::strerror(errno)));
  if (pid == 0) BecomeChild(launch);
  const std::string program = options.argv[0];
  std::unique_ptr<Process> process(new Process(std::move(options), pid));
  writer.Close();
  int error = 0;
  if (read(reader.get(), &error, sizeof(error)) == sizeof(error)) {
    return absl::NotFoundError(absl::StrCat(program, ": ", std::strerror(error)));
  }
  return process;
}

Process::~Process() {
  if (exit_code_.has_value()) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

bool Process::Running() {
  if (exit_code_.has_value()) return false;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return true;
  exit_code_ = ExitCode(status);
  return false;
}

void Process::Kill(int signal) {
  if (Running()) kill(pid_, signal);  // not reaped yet, so the pid is still its own
}

absl::StatusOr<int> Process::Wait(absl::Duration timeout) {
  RETURN_IF_ERROR(WaitFor([this] { return !Running(); }, timeout,
                          absl::StrCat("the end of ", absl::StrJoin(options_.argv, " ")),
                          [this] { return absl::StrCat("it runs; output: ", OutputTail()); }));
  return *exit_code_;
}

absl::StatusOr<int> Process::Stop(absl::Duration timeout) {
  Kill(SIGTERM);
  absl::StatusOr<int> code = Wait(timeout);
  if (code.ok()) return code;
  Kill(SIGKILL);
  RETURN_IF_ERROR(Wait(absl::Seconds(10)).status());
  return code;
}

std::string Process::OutputTail() const {
  return absl::StrCat(ReadTail(options_.stdout_file), ReadTail(options_.stderr_file));
}

std::string CommandResult::Describe() const {
  return absl::StrCat("exit ", exit_code, "\nstdout: ", stdout_text, "\nstderr: ", stderr_text);
}

absl::StatusOr<CommandResult> RunCommand(Process::Options options, absl::string_view stdin_text,
                                         absl::Duration timeout) {
  const TempDir dir;
  options.stdin_file = dir.Write("stdin", stdin_text);
  options.stdout_file = dir.Write("stdout", "");
  options.stderr_file = dir.Write("stderr", "");
  ASSIGN_OR_RETURN(const std::unique_ptr<Process> process, Process::Start(std::move(options)));
  CommandResult result;
  ASSIGN_OR_RETURN(result.exit_code, process->Wait(timeout));
  ASSIGN_OR_RETURN(result.stdout_text, ReadFile(dir.File("stdout")));
  ASSIGN_OR_RETURN(result.stderr_text, ReadFile(dir.File("stderr")));
  return result;
}

}  // namespace outrigger::tests
