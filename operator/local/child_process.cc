// SPDX-License-Identifier: Apache-2.0
#include "operator/local/child_process.h"

#include <absl/strings/str_cat.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
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

// All that the child needs between fork and exec, where it may only call what is async-signal-safe.
struct Launch {
  std::vector<std::string> environment;
  std::vector<char*> argv;
  std::vector<char*> envp;
  const char* working_dir = nullptr;
  int in = -1;
  int out = -1;
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
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launch.parent) _exit(126);  // the parent was gone before prctl
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int ignored : {SIGPIPE, SIGINT, SIGTERM}) signal(ignored, SIG_DFL);
  dup2(launch.in, STDIN_FILENO);
  dup2(launch.out, STDOUT_FILENO);
  dup2(launch.out, STDERR_FILENO);
  if (*launch.working_dir == '\0' || chdir(launch.working_dir) == 0) {
    execvpe(launch.argv[0], launch.argv.data(), launch.envp.data());
  }
  const int error = errno;
  [[maybe_unused]] const ssize_t written = write(launch.failure, &error, sizeof(error));
  _exit(127);
}

absl::Status SystemError(absl::string_view what) {
  return absl::InternalError(absl::StrCat(what, ": ", std::strerror(errno)));
}

std::string DescribeEnd(int status) {
  return WIFSIGNALED(status) ? absl::StrCat("signal ", WTERMSIG(status))
                             : absl::StrCat("exit ", WEXITSTATUS(status));
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

  const pid_t pid = fork();
  if (pid < 0) return SystemError("fork");
  if (pid == 0) BecomeChild(launch);
  setpgid(pid, pid);  // as the child does: whoever comes first, a signal finds the group
  std::unique_ptr<ChildProcess> child(new ChildProcess(pid));
  writer.Close();
  int error = 0;
  if (read(reader.get(), &error, sizeof(error)) == sizeof(error)) {
    return absl::NotFoundError(absl::StrCat(options.argv[0], ": ", std::strerror(error)));
  }
  return child;
}

ChildProcess::~ChildProcess() {
  if (Poll().has_value()) return;
  Signal(SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

const std::optional<std::string>& ChildProcess::Poll() {
  if (end_.has_value()) return end_;
  int status = 0;
  const pid_t reaped = waitpid(pid_, &status, WNOHANG);
  if (reaped == 0 || (reaped < 0 && errno == EINTR)) return end_;
  end_ = reaped == pid_ ? DescribeEnd(status) : "lost";
  kill(-pid_, SIGKILL);  // what it started and left behind
  return end_;
}

void ChildProcess::Signal(int signal) {
  if (!Poll().has_value()) kill(-pid_, signal);
}

}  // namespace outrigger::controller::local
