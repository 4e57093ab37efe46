// SPDX-License-Identifier: Apache-2.0
#include "operator/ctl/local_command.h"

#include <absl/strings/str_cat.h>
#include <signal.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/strand.hpp>
#include <boost/json/serialize.hpp>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "host/base/logging.h"
#include "host/base/mutex.h"
#include "host/base/status.h"
#include "operator/ctl/screen.h"
#include "operator/introspection/introspection_server.h"
#include "operator/local/local_operator.h"
#include "operator/local/manifest.h"

namespace outrigger::controller::ctl {
namespace {

namespace asio = boost::asio;

constexpr int kKilled = 128 + SIGINT;  // the exit code that a shell shows for it

// A folder for as long as the command runs.
class WorkFolder {
 public:
  WorkFolder() {
    const char* parent = std::getenv("TMPDIR");
    std::string name = absl::StrCat(parent == nullptr ? "/tmp" : parent, "/outriggerctl-XXXXXX");
    if (mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~WorkFolder() { Remove(); }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;

  const std::string& path() const { return path_; }  // "": it could not be made
  void Remove() const {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }

 private:
  std::string path_;
};

// Log entries that wait to be shown as steps: on a terminal with a table, whatever else wrote there
// would tear it. Thread-safe.
class WaitingLogSink : public host::LogSink {
 public:
  explicit WaitingLogSink(std::shared_ptr<host::LogSink> levels) : levels_(std::move(levels)) {}

  bool Enabled(host::LogLevel level) const override { return levels_->Enabled(level); }
  void Write(host::LogLevel level, absl::string_view message,
             const boost::json::object& fields) override {
    if (!Enabled(level)) return;
    std::string line = absl::StrCat("log: ", message, " ", boost::json::serialize(fields));
    host::MutexLock lock(&mutex_);
    lines_.push_back(std::move(line));
  }
  std::vector<std::string> Take() {
    host::MutexLock lock(&mutex_);
    return std::exchange(lines_, {});
  }

 private:
  const std::shared_ptr<host::LogSink> levels_;  // knows --log-level
  host::Mutex mutex_;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mutex_);
};

std::string OwnFolder() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "." : self.parent_path().string();
}

absl::Status CheckLogDir(const std::string& dir) {
  std::error_code ignored;
  if (dir.empty() || std::filesystem::is_directory(dir, ignored)) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat("--log-dir: want a folder that is there, got \"", dir, "\""));
}

class LocalSession {
 public:
  LocalSession(host::Clock& clock, const LocalFlags& flags)
      : clock_(clock), flags_(flags), strand_(asio::make_strand(io_)), tasks_(clock, strand_) {}

  absl::Status Run() {
    ASSIGN_OR_RETURN(std::vector<local::ManifestObject> objects,
                     local::LoadManifests(flags_.files));
    RETURN_IF_ERROR(CheckLogDir(flags_.log_dir));
    if (folder_.path().empty()) {
      return absl::UnavailableError("TMPDIR: want a folder that can be written to");
    }
    ASSIGN_OR_RETURN(const host::Logger log, MakeLogger());
    ASSIGN_OR_RETURN(operator_, local::LocalOperator::Make(clock_, strand_, log, std::move(objects),
                                                           Options(), Output()));
    ASSIGN_OR_RETURN(server_, StartServer());
    screen_ =
        MakeScreen(clock_, {absl::StrCat("outriggerctl local, gRPC port ", server_->address())});
    if (CanShowTable()) {
      for (const int number : {SIGWINCH, SIGTSTP, SIGCONT}) signals_.add(number);
    }
    WaitForSignal();
    tasks_.Spawn(Live());
    io_.run();  // ends when Live() has
    screen_.reset();
    server_->Stop();
    return result_;
  }

 private:
  absl::StatusOr<host::Logger> MakeLogger() {
    ASSIGN_OR_RETURN(std::shared_ptr<host::LogSink> sink,
                     host::MakeStderrSink({.level = flags_.log_level, .format = "text"}));
    if (!CanShowTable() || isatty(STDERR_FILENO) != 1) return host::Logger(std::move(sink));
    log_lines_ = std::make_shared<WaitingLogSink>(std::move(sink));
    return host::Logger(log_lines_);
  }

  local::LocalOperator::Options Options() const {
    local::LocalOperator::Options options;
    options.folder = folder_.path();
    options.log_dir = flags_.log_dir.empty() ? folder_.path() : flags_.log_dir;
    options.plugin_bin_dir = flags_.plugin_bin_dir.empty() ? OwnFolder() : flags_.plugin_bin_dir;
    options.plugins = flags_.plugins;
    options.exit_after_idle = flags_.exit_after_idle;
    options.timeout = flags_.timeout;
    return options;
  }

  local::LocalOperator::Output Output() {
    return {.step = [this](const std::string& line) { screen_->AddStep(line); },
            .state = [this](const local::LocalState& state) { Show(state); }};
  }

  void Show(const local::LocalState& state) {
    if (log_lines_ != nullptr) {
      for (const std::string& line : log_lines_->Take()) screen_->AddStep(line);
    }
    screen_->Show(state);
  }

  absl::StatusOr<std::unique_ptr<introspection::IntrospectionServer>> StartServer() {
    absl::StatusOr<std::unique_ptr<introspection::IntrospectionServer>> server =
        introspection::IntrospectionServer::Start(
            {.listen_address = flags_.address}, strand_, clock_,
            [this] { return operator_->ListPlugins(); },
            [this](const std::string& namespace_name, const std::string& name) {
              return operator_->ListObjects(namespace_name, name);
            });
    if (!server.ok()) return host::Annotate(server.status(), "--address");
    return server;
  }

  host::Task<void> Live() {
    result_ = co_await operator_->Run();
    boost::system::error_code ignored;
    signals_.cancel(ignored);
  }

  void WaitForSignal() {
    signals_.async_wait([this](boost::system::error_code error, int number) {
      if (error) return;
      asio::post(strand_, [this, number] { OnSignal(number); });
      WaitForSignal();
    });
  }

  void OnSignal(int number) {
    switch (number) {
      case SIGWINCH:
        screen_->Redraw();
        return;
      case SIGTSTP:
        screen_->Suspend();
        kill(getpid(), SIGSTOP);  // as SIGTSTP would have, had we not taken it
        return;
      case SIGCONT:
        screen_->Resume();
        return;
      default:
        if (stopping_ && number == SIGINT) LeaveNow();
        stopping_ = true;
        screen_->AddStep("stopping: what runs is asked to end; Ctrl-C again kills it");
        screen_->Redraw();  // the terminal has shown ^C; and nothing is drawn of itself any more
        operator_->Stop();
    }
  }

  // For a person who does not want to wait for a worker's grace period, or for whatever hangs: of
  // Run() nothing is waited for, so nothing of ours may be destroyed either.
  [[noreturn]] void LeaveNow() {
    screen_.reset();
    operator_->Kill();
    folder_.Remove();
    std::_Exit(kKilled);
  }

  host::Clock& clock_;
  const LocalFlags& flags_;
  const WorkFolder folder_;
  asio::io_context io_{1};
  const host::Executor strand_;
  asio::signal_set signals_{io_, SIGINT, SIGTERM, SIGHUP};
  host::TaskGroup tasks_;
  std::shared_ptr<WaitingLogSink> log_lines_;  // null: the log goes to stderr
  std::unique_ptr<Screen> screen_;
  std::unique_ptr<local::LocalOperator> operator_;
  std::unique_ptr<introspection::IntrospectionServer> server_;
  bool stopping_ = false;
  absl::Status result_;
};

}  // namespace

absl::Status RunLocal(host::Clock& clock, const LocalFlags& flags) {
  return LocalSession(clock, flags).Run();
}

}  // namespace outrigger::controller::ctl
