// SPDX-License-Identifier: Apache-2.0
#include "tests/e2e/operator_process.h"

#include <absl/strings/str_cat.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <utility>

#include "host/base/status.h"
#include "tests/support/free_port.h"
#include "tests/support/wait_for.h"

namespace outrigger::tests {

std::string OurProgram(absl::string_view name) {
  const char* dir = std::getenv("OUTRIGGER_BIN_DIR");
  return absl::StrCat(dir == nullptr ? "build/dev/bin" : dir, "/", name);
}

PluginDir::PluginDir() { chmod(dir_.path().c_str(), 0700); }

std::string PluginDir::Socket(absl::string_view plugin) const {
  const std::string folder = absl::StrCat(dir_.path(), "/", plugin);
  std::filesystem::create_directories(folder);
  chmod(folder.c_str(), 0700);
  return absl::StrCat(folder, "/scaler.sock");
}

absl::StatusOr<std::unique_ptr<Process>> StartPlugin(const PluginDir& dir,
                                                     const std::string& plugin,
                                                     const std::string& program,
                                                     std::vector<std::string> arguments) {
  Process::Options options;
  options.argv = {OurProgram(program), "--listen-socket", dir.Socket(plugin)};
  options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
  options.stdout_file = absl::StrCat(dir.path(), "/", plugin, "/plugin.log");
  return Process::Start(std::move(options));
}

absl::StatusOr<std::string> OperatorProcess::HttpGet(uint16_t port, const std::string& path,
                                                     const std::string& address) {
  ASSIGN_OR_RETURN(const CommandResult result,
                   RunCommand({.argv = {"curl", "-sS", "-m", "5", "-w", "\n%{http_code}",
                                        absl::StrCat("http://", address, ":", port, path)}},
                              "", absl::Seconds(10)));
  const size_t cut = result.stdout_text.rfind('\n');
  if (!result.ok() || cut == std::string::npos) return absl::UnavailableError(result.Describe());
  std::string body = result.stdout_text.substr(0, cut);
  const std::string code = result.stdout_text.substr(cut + 1);
  if (code != "200") return absl::FailedPreconditionError(absl::StrCat("HTTP ", code, ": ", body));
  return body;
}

absl::Status OperatorProcess::WaitUntilReady(absl::Duration timeout) {
  absl::Status last;
  const absl::Status waited = WaitFor(
      [&] {
        last = HttpGet(health_port_, "/readyz?verbose", address_).status();
        return last.ok() || !process_->Running();
      },
      timeout, "the operator is ready", [&] { return host::Describe(last); });
  if (last.ok()) return last;
  return absl::UnavailableError(
      absl::StrCat("the operator is not ready: ", host::Describe(waited.ok() ? last : waited), "\n",
                   process_->OutputTail()));
}

bool OperatorProcess::Leads() const {
  const absl::StatusOr<std::string> metrics = HttpGet(metrics_port_, "/metrics", address_);
  return metrics.ok() && metrics->find("\noutrigger_leader 1") != std::string::npos;
}

std::string OperatorProcess::Log() const { return ReadTail(dir_.File("operator.log")); }

absl::StatusOr<std::unique_ptr<OperatorProcess>> OperatorProcess::Start(Options options) {
  auto started = std::make_unique<OperatorProcess>();
  ASSIGN_OR_RETURN(const std::string kubeconfig,
                   options.plane.ServiceAccountKubeconfig("outrigger", "outrigger-operator"));
  ASSIGN_OR_RETURN(
      const KeyFiles serving,
      options.plane.pki().Issue(absl::StrCat("serving-", options.name),
                                {.dns_names = {ControlPlane::kMetricsServerName, "localhost"}}));
  started->address_ = options.address;
  started->metrics_api_port_ =
      options.metrics_api_port != 0 ? options.metrics_api_port : FreePort();
  started->metrics_port_ = FreePort();
  started->health_port_ = FreePort();
  started->grpc_port_ = FreePort();
  Process::Options process;
  process.argv = {OurProgram("outrigger-operator"),
                  "--kubeconfig=" + kubeconfig,
                  "--plugin-dir=" + options.plugin_dir,
                  "--bind-address=" + options.address,
                  "--identity=" + options.name,
                  "--tls-cert-file=" + serving.certificate,
                  "--tls-key-file=" + serving.key,
                  "--hpa-sync-period=2s",
                  absl::StrCat("--metrics-api-port=", started->metrics_api_port_),
                  absl::StrCat("--metrics-port=", started->metrics_port_),
                  absl::StrCat("--health-port=", started->health_port_),
                  absl::StrCat("--grpc-address=127.0.0.1:", started->grpc_port_)};
  process.argv.insert(process.argv.end(), options.arguments.begin(), options.arguments.end());
  process.env = options.env;
  process.stdout_file = started->dir_.File("operator.log");
  ASSIGN_OR_RETURN(started->process_, Process::Start(std::move(process)));
  if (options.wait_until_ready) RETURN_IF_ERROR(started->WaitUntilReady());
  return started;
}

}  // namespace outrigger::tests
