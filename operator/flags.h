// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <cstdint>
#include <string>
#include <vector>

namespace outrigger::controller {

// The command line of outrigger-operator. Each flag is also read from the environment, as
// OUTRIGGER_ and the flag's name in capitals with '_' for '-'; the command line wins. Names as in
// design.md section 9.
struct Flags {
  std::string plugin_dir = "/run/outrigger/plugins";
  std::vector<std::string> plugins;       // NAME=ADDRESS
  std::vector<std::string> plugin_types;  // NAME=TYPE[,TYPE]
  std::string plugin_ca_file;             // of remote plugins (mutual TLS)
  std::string plugin_cert_file;
  std::string plugin_key_file;
  absl::Duration scaler_timeout = absl::Seconds(3);
  absl::Duration metric_freshness = absl::Seconds(5);
  int max_concurrent_reconciles = 10;
  bool leader_elect = true;
  std::vector<std::string> roles = {"controller", "metrics"};
  std::vector<std::string> watch_namespaces;
  std::string kubeconfig;
  std::string tls_cert_file;
  std::string tls_key_file;
  bool take_over = false;
  absl::Duration hpa_sync_period = absl::Seconds(15);
  std::string log_level = "info";
  std::string log_format = "json";
  std::string own_namespace =
      "outrigger";       // --namespace; of the Lease, the Services and cluster-wide Secrets
  std::string identity;  // --identity; "" = host name and a random part
  std::string pod_name;  // --pod-name; "" = not in a Pod, or one that needs no serving label
  std::string bind_address = "0.0.0.0";
  uint16_t metrics_api_port = 6443;
  uint16_t metrics_port = 8080;
  uint16_t health_port = 8081;
  std::string grpc_address = "127.0.0.1:9666";
  absl::Duration shutdown_grace = absl::Seconds(3);

  bool HasRole(const std::string& role) const;
};

// INVALID_ARGUMENT: the flag, what was wanted and what came. CANCELLED: --help or --version; the
// message is what to print.
absl::StatusOr<Flags> ParseFlags(int argc, char** argv);

}  // namespace outrigger::controller
