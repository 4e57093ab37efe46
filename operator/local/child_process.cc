// SPDX-License-Identifier: Apache-2.0
#include "operator/local/child_process.h"

#include <absl/strings/str_cat.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <utility>

extern char** environ;

namespace outrigger::controller::local {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { Close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return fd_; }
  void Close() {
    if (fd_ >= 0) close(std::exchange(fd_, -1));
  }

 private:
  int fd_;
};

// While it lives, this thread takes no signal, and so neither does a child that is forked
// meanwhile: a handler of ours that ran there would write into pipes that it shares with us.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsHeld() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

 private:
  sigset_t before_;
};

// What the child says when it does not come to run the program. Smaller than PIPE_BUF: written and
// read in one piece.
struct Failure {
  enum Step { kWorkingDir, kProgram } step;
  int error;
};

// All that the child needs between fork and exec, where it may only call what is async-signal-safe.
struct Launch {
  std::vector<std::string> environment;
  std::vector<char*> argv;
  std::vector<char*> envp;
  const char* working_dir = nullptr;
  int in = -1;
  int out = -1;
  int failure = -1;  // a Failure goes here
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

void ResetSignals() {
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);  // SIGKILL refuses: fine
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

[[noreturn]] void BecomeChild(const Launch& launch) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launch.parent) _exit(126);  // the parent was gone before prctl
  ResetSignals();
  dup2(launch.in, STDIN_FILENO);
  dup2(launch.out, STDOUT_FILENO);
  dup2(launch.out, STDERR_FILENO);
  // A library of ours may have opened files without O_CLOEXEC; an old kernel leaves it at that.
  close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
  Failure failure{.step = Failure::kWorkingDir};
  if (*launch.working_dir == '\0' || chdir(launch.working_dir) == 0) {
    failure.step = Failure::kProgram;
    execvpe(launch.argv[0], launch.argv.data(), launch.envp.data());
  }
  failure.error = errno;
  [[maybe_unused]] const ssize_t written = write(launch.failure, &failure, sizeof(failure));
  _exit(127);
}

absl::Status SystemError(absl::string_view what) {
  return absl::InternalError(absl::StrCat(what, ": ", std::strerror(errno)));
}

absl::StatusCode CodeOf(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return absl::StatusCode::kNotFound;
    case EACCES:
    case EPERM:
      return absl::StatusCode::kPermissionDenied;
    case ENOEXEC:
      return absl::StatusCode::kFailedPrecondition;
    default:
      return absl::StatusCode::kInternal;
  }
}

// OK when the child runs the program: exec has closed its end of the pipe.
absl::Status AwaitExec(int reader, const ChildProcess::Options& options) {
  Failure failure{};
  ssize_t count = -1;
  while ((count = read(reader, &failure, sizeof(failure))) < 0 && errno == EINTR) {
  }
  if (count != sizeof(failure)) return absl::OkStatus();
  const std::string& what =
      failure.step == Failure::kWorkingDir ? options.working_dir : options.argv[0];
  return absl::Status(CodeOf(failure.error),
                      absl::StrCat(what, ": ", std::strerror(failure.error)));
}

std::string DescribeEnd(const siginfo_t& end) {
  if (end.si_code == CLD_EXITED) return absl::StrCat("exit code ", end.si_status);
  const char* name = sigabbrev_np(end.si_status);
  return name == nullptr ? absl::StrCat("signal ", end.si_status)
                         : absl::StrCat("signal ", end.si_status, " (SIG", name, ")");
}

void Reap(pid_t pid) {
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(const Options& options) {
  if (options.argv.empty()) return absl::InvalidArgumentError("argv: want a program, got nothing");
  const char* output = options.output_file.empty() ? "/dev/null" : options.output_file.c_str();
  const Descriptor in(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const Descriptor out(open(output, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (in.get() < 0 || out.get() < 0) return SystemError(output);
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return SystemError("pipe");
  const Descriptor reader(ends[0]);
  Descriptor writer(ends[1]);

  Launch launch;
  launch.environment = Environment(options.env);
  launch.argv = Pointers(options.argv);
  launch.envp = Pointers(launch.environment);
  launch.working_dir = options.working_dir.c_str();
  launch.in = in.get();
  launch.out = out.get();
  launch.failure = writer.get();
  launch.parent = getpid();

  pid_t pid = -1;
  {
    const SignalsHeld held;
    pid = fork();
    if (pid == 0) BecomeChild(launch);
  }
  if (pid < 0) return SystemError("fork");
  setpgid(pid, pid);  // as the child does: whoever comes first, a signal finds the group
  std::unique_ptr<ChildProcess> child(new ChildProcess(pid));
  writer.Close();
  if (absl::Status status = AwaitExec(reader.get(), options); !status.ok()) return status;
  return child;
}

ChildProcess::~ChildProcess() {
  if (Poll().has_value()) return;
  kill(-pid_, SIGKILL);
  Reap(pid_);
}

const std::optional<std::string>& ChildProcess::Poll() {
  if (end_.has_value()) return end_;
  // Looked at first and reaped last: as long as it is a zombie, its number is nobody else's.
  siginfo_t end{};
  if (waitid(P_PID, static_cast<id_t>(pid_), &end, WEXITED | WNOHANG | WNOWAIT) != 0) {
    if (errno != EINTR) end_ = "lost";  // somebody else reaped it
    return end_;
  }
  if (end.si_pid == 0) return end_;
  kill(-pid_, SIGKILL);  // what it started and left behind
  Reap(pid_);
  end_ = DescribeEnd(end);
  return end_;
}

void ChildProcess::Signal(int signal) {
  if (!Poll().has_value()) kill(-pid_, signal);
}

}  // namespace outrigger::controller::local
