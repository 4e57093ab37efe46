// SPDX-License-Identifier: Apache-2.0
#include "operator/flags.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_replace.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "host/base/status.h"

namespace outrigger::controller {
namespace {

constexpr absl::string_view kRoles[] = {"controller", "metrics"};

// Adds a flag that the environment may give too.
template <typename T>
CLI::Option* Add(CLI::App& app, const std::string& name, T& value, const std::string& help) {
  const std::string variable =
      "OUTRIGGER_" + absl::AsciiStrToUpper(absl::StrReplaceAll(name, {{"-", "_"}}));
  return app.add_option("--" + name, value, help)->envname(variable)->capture_default_str();
}

struct DurationText {
  std::string name;
  std::string text;
  absl::Duration* out;
  absl::Duration least;
};

absl::Status ParseDurations(const std::vector<DurationText>& durations) {
  for (const DurationText& duration : durations) {
    if (!absl::ParseDuration(duration.text, duration.out) || *duration.out < duration.least) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--", duration.name, ": want a duration of at least ",
          absl::FormatDuration(duration.least), " such as 3s, got \"", duration.text, "\""));
    }
  }
  return absl::OkStatus();
}

absl::Status Check(const Flags& flags) {
  for (const std::string& role : flags.roles) {
    if (std::find(std::begin(kRoles), std::end(kRoles), role) == std::end(kRoles)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--roles: want any of ", absl::StrJoin(kRoles, ", "), ", got \"", role, "\""));
    }
  }
  if (flags.max_concurrent_reconciles < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--max-concurrent-reconciles: want a number > 0, got ", flags.max_concurrent_reconciles));
  }
  if (flags.tls_cert_file.empty() != flags.tls_key_file.empty()) {
    return absl::InvalidArgumentError("--tls-cert-file and --tls-key-file: want both, got one");
  }
  if (flags.HasRole("metrics") && flags.tls_cert_file.empty()) {
    return absl::InvalidArgumentError(
        "--tls-cert-file: want the serving certificate of the metrics API (it is not issued by the "
        "operator yet), got "
        "nothing");
  }
  return absl::OkStatus();
}

}  // namespace

bool Flags::HasRole(const std::string& role) const {
  return std::find(roles.begin(), roles.end(), role) != roles.end();
}

absl::StatusOr<Flags> ParseFlags(int argc, char** argv) {
  Flags flags;
  CLI::App app(
      "outrigger-operator: event-driven autoscaling for Kubernetes, with scalers outside the "
      "operator");
  app.set_version_flag("--version", std::string(OUTRIGGER_VERSION));
  std::string scaler_timeout = "3s";
  std::string metric_freshness = "5s";
  std::string hpa_sync_period = "15s";
  std::string shutdown_grace = "3s";
  Add(app, "plugin-dir", flags.plugin_dir,
      "folder with one folder per plugin, each with its scaler.sock");
  Add(app, "plugin", flags.plugins,
      "NAME=ADDRESS of a plugin elsewhere: unix:/path or host:port; repeatable");
  Add(app, "plugin-types", flags.plugin_types,
      "NAME=TYPE[,TYPE]: trigger types that only this plugin serves; repeatable")
      ->delimiter(';');
  Add(app, "plugin-ca-file", flags.plugin_ca_file, "CA of remote plugins, PEM");
  Add(app, "plugin-cert-file", flags.plugin_cert_file,
      "our certificate towards remote plugins, PEM");
  Add(app, "plugin-key-file", flags.plugin_key_file, "its key, PEM");
  Add(app, "scaler-timeout", scaler_timeout, "longest wait for one answer of a scaler");
  Add(app, "metric-freshness", metric_freshness, "how old a value may be when the HPA reads it");
  Add(app, "max-concurrent-reconciles", flags.max_concurrent_reconciles,
      "objects that are reconciled at once");
  Add(app, "leader-elect", flags.leader_elect,
      "act only while holding the Lease outrigger-operator");
  Add(app, "roles", flags.roles, "parts to run: controller, metrics")->delimiter(',');
  Add(app, "watch-namespaces", flags.watch_namespaces, "namespaces to watch; none: all")
      ->delimiter(',');
  Add(app, "kubeconfig", flags.kubeconfig, "kubeconfig file; none: the Pod's service account");
  Add(app, "tls-cert-file", flags.tls_cert_file,
      "serving certificate of the metrics API, PEM; read again when it changes");
  Add(app, "tls-key-file", flags.tls_key_file, "its key, PEM");
  app.add_flag("--take-over", flags.take_over,
               "act although the metrics APIService belongs to another adapter")
      ->envname("OUTRIGGER_TAKE_OVER");
  Add(app, "hpa-sync-period", hpa_sync_period,
      "--horizontal-pod-autoscaler-sync-period of the cluster");
  Add(app, "log-level", flags.log_level, "debug, info, warning or error");
  Add(app, "log-format", flags.log_format, "json or text");
  Add(app, "namespace", flags.own_namespace, "our own namespace");
  Add(app, "identity", flags.identity, "our name in the Lease; none: made from the host name");
  Add(app, "pod-name", flags.pod_name,
      "our own Pod, labelled outrigger.dev/serving=true while it answers metric reads; none: no "
      "label");
  Add(app, "bind-address", flags.bind_address,
      "IP address of the metrics API, /metrics and the health checks");
  Add(app, "metrics-api-port", flags.metrics_api_port, "port of the metrics API (HTTPS)");
  Add(app, "metrics-port", flags.metrics_port, "port of /metrics");
  Add(app, "health-port", flags.health_port, "port of /healthz and /readyz");
  Add(app, "grpc-address", flags.grpc_address, "address of the operator's own gRPC port; loopback");
  Add(app, "shutdown-grace", shutdown_grace,
      "how long metric reads are still served after SIGTERM");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success&) {
    // --version and --help leave their text to exit().
    std::ostringstream text;
    const bool version = app.get_version_ptr() != nullptr && app.get_version_ptr()->count() > 0;
    text << (version ? absl::StrCat(OUTRIGGER_VERSION, "\n") : app.help());
    return absl::CancelledError(text.str());
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(error.what());
  }
  RETURN_IF_ERROR(ParseDurations(
      {{"scaler-timeout", scaler_timeout, &flags.scaler_timeout, absl::Milliseconds(10)},
       {"metric-freshness", metric_freshness, &flags.metric_freshness, absl::ZeroDuration()},
       {"hpa-sync-period", hpa_sync_period, &flags.hpa_sync_period, absl::Seconds(1)},
       {"shutdown-grace", shutdown_grace, &flags.shutdown_grace, absl::ZeroDuration()}}));
  RETURN_IF_ERROR(Check(flags));
  return flags;
}

}  // namespace outrigger::controller
