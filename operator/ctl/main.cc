// SPDX-License-Identifier: Apache-2.0
// outriggerctl (also kubectl-outrigger): `local` runs manifests without a cluster, `version` says
// which this is.
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/strand.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <string>
#include <vector>

#include "host/base/logging.h"
#include "host/base/real_clock.h"
#include "operator/local/local_operator.h"
#include "operator/local/manifest.h"

namespace outrigger::controller {
namespace {

struct LocalFlags {
  std::vector<std::string> files;
  std::string plugin_bin_dir;
  std::string exit_after_idle;
  std::string log_level = "error";
};

// A folder for as long as the command runs.
class WorkFolder {
 public:
  WorkFolder() {
    const char* parent = std::getenv("TMPDIR");
    std::string name = absl::StrCat(parent == nullptr ? "/tmp" : parent, "/outriggerctl-XXXXXX");
    if (mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~WorkFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Plain lines, one per change; on a terminal the last of them, redrawn.
class Screen {
 public:
  explicit Screen(host::Clock& clock)
      : clock_(clock), start_(clock.SteadyNow()), live_(isatty(STDOUT_FILENO) == 1) {}

  void Print(const std::string& line) {
    char time[16];
    std::snprintf(time, sizeof(time), "%6.1fs  ",
                  absl::ToDoubleSeconds(clock_.SteadyNow() - start_));
    const std::string stamped = time + line;
    if (!live_) {
      std::puts(stamped.c_str());
      std::fflush(stdout);
      return;
    }
    lines_.push_back(stamped);
    if (lines_.size() > kLines) lines_.pop_front();
    std::fputs("\x1b[H\x1b[2J", stdout);
    for (const std::string& kept : lines_) std::puts(kept.c_str());
    std::fflush(stdout);
  }

 private:
  static constexpr size_t kLines = 20;
  host::Clock& clock_;
  const host::SteadyTime start_;
  const bool live_;
  std::deque<std::string> lines_;
};

std::string OwnFolder() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "." : self.parent_path().string();
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "outriggerctl: %s\n", std::string(status.message()).c_str());
  return 1;
}

int RunLocal(const LocalFlags& flags) {
  absl::StatusOr<std::vector<local::ManifestObject>> objects = local::LoadManifests(flags.files);
  if (!objects.ok()) return Fail(objects.status());
  local::LocalOperator::Options options;
  if (!flags.exit_after_idle.empty() &&
      !absl::ParseDuration(flags.exit_after_idle, &options.exit_after_idle)) {
    return Fail(absl::InvalidArgumentError(absl::StrCat(
        "--exit-after-idle: want a duration such as 3s, got \"", flags.exit_after_idle, "\"")));
  }
  absl::StatusOr<std::shared_ptr<host::LogSink>> sink =
      host::MakeStderrSink({.level = flags.log_level, .format = "text"});
  if (!sink.ok()) return Fail(sink.status());
  const WorkFolder folder;
  if (folder.path().empty()) {
    return Fail(absl::UnavailableError("TMPDIR: want a folder that can be written to"));
  }
  options.folder = folder.path();
  options.plugin_bin_dir = flags.plugin_bin_dir.empty() ? OwnFolder() : flags.plugin_bin_dir;

  host::RealClock clock;
  Screen screen(clock);
  boost::asio::io_context io(1);
  const host::Executor strand = boost::asio::make_strand(io);
  local::LocalOperator local_operator(clock, strand, host::Logger(*sink), *std::move(objects),
                                      std::move(options),
                                      [&screen](const std::string& line) { screen.Print(line); });
  boost::asio::signal_set signals(io, SIGINT, SIGTERM);
  signals.async_wait([&](boost::system::error_code error, int) {
    if (!error) boost::asio::post(strand, [&local_operator] { local_operator.Stop(); });
  });
  absl::Status result;
  auto run = [&]() -> host::Task<void> {
    result = co_await local_operator.Run();
    boost::system::error_code ignored;
    signals.cancel(ignored);
  };
  boost::asio::co_spawn(strand, run(), boost::asio::detached);  // the io_context ends when it has
  io.run();
  return result.ok() ? 0 : Fail(result);
}

int Main(int argc, char** argv) {
  CLI::App app("outriggerctl: Outrigger from the command line");
  app.require_subcommand(1);
  LocalFlags flags;
  CLI::App* local =
      app.add_subcommand("local", "run manifests without a cluster: replicas are local processes");
  local
      ->add_option("-f,--file", flags.files,
                   "YAML file with Deployments, ScaledObjects, …; repeatable")
      ->required();
  local->add_option("--plugin-bin-dir", flags.plugin_bin_dir,
                    "folder of the outrigger-scaler-* programs; default: ours");
  local->add_option("--exit-after-idle", flags.exit_after_idle,
                    "end once all were up and are back at 0 for this long");
  local->add_option("--log-level", flags.log_level, "debug, info, warning or error");
  CLI::App* version = app.add_subcommand("version", "print the version");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  if (version->parsed()) {
    std::puts(OUTRIGGER_VERSION);
    return 0;
  }
  return RunLocal(flags);
}

}  // namespace
}  // namespace outrigger::controller

int main(int argc, char** argv) { return outrigger::controller::Main(argc, argv); }
