// SPDX-License-Identifier: Apache-2.0
// outriggerctl (also kubectl-outrigger): reads the command line and runs the command.
#include <absl/strings/str_split.h>
#include <grpc/support/log.h>
#include <signal.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "host/base/real_clock.h"
#include "host/base/status.h"
#include "operator/ctl/command_line.h"
#include "operator/ctl/explain.h"
#include "operator/ctl/local_command.h"
#include "operator/ctl/remote.h"
#include "operator/ctl/table.h"

namespace outrigger::controller::ctl {
namespace {

constexpr int kFailed = 1;
constexpr int kUsage = 2;

// Runs each kind of command. OK, or what to say on stderr.
struct Runner {
  host::Clock& clock;

  absl::Status operator()(const PrintText& command) const { return Print(command.text); }
  absl::Status operator()(const LocalFlags& flags) const { return RunLocal(clock, flags); }
  absl::Status operator()(const ExplainFlags& flags) const {
    ASSIGN_OR_RETURN(const auto response,
                     ListObjects(clock, flags.address, flags.namespace_name, flags.name));
    return Print(ExplainObjects(response, clock.WallNow()));
  }
  absl::Status operator()(const PluginListFlags& flags) const {
    ASSIGN_OR_RETURN(const auto response, ListPlugins(clock, flags.address));
    return Print(DescribePlugins(response, clock.WallNow()));
  }

  static absl::Status Print(const std::string& text) {
    std::fputs(text.c_str(), stdout);
    return absl::OkStatus();
  }
};

int Fail(const absl::Status& status, int exit_code) {
  const std::string message(status.message());
  for (const absl::string_view line : absl::StrSplit(message, '\n')) {
    // A name in a manifest moves no cursor and ends no line.
    std::fprintf(stderr, "outriggerctl: %s\n", FitColumns(std::string(line), INT32_MAX).c_str());
  }
  return exit_code;
}

int Main(int argc, char** argv) {
  gpr_set_log_function([](gpr_log_func_args*) {});  // our errors say what gRPC's lines say
  signal(SIGPIPE, SIG_IGN);  // who writes for a reader that has gone gets an error: see screen.cc
  const absl::StatusOr<Command> command = ParseCommandLine({argv + 1, argv + argc});
  if (!command.ok()) return Fail(command.status(), kUsage);
  host::RealClock clock;
  const absl::Status result = std::visit(Runner{clock}, *command);
  return result.ok() ? 0 : Fail(result, kFailed);
}

}  // namespace
}  // namespace outrigger::controller::ctl

int main(int argc, char** argv) { return outrigger::controller::ctl::Main(argc, argv); }
