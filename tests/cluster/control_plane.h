// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/time/time.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/cluster/pki.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace outrigger::tests {

// A real Kubernetes control plane of one test program: etcd, kube-apiserver (RBAC, aggregation,
// audit log) and kube-controller-manager, on free ports of 127.0.0.1 and in a temp folder. The
// programs come from tests/cluster/build.sh. There is no kubelet: pods are created and stay
// Pending; a test may patch their status.
//
// The controllers run with their own service accounts, so what the HPA controller may read is
// judged by RBAC. One thread at a time, started from the test's main thread (see Process). Ready
// about 6 s after Start(). Flags that surprise are explained where they stand.
class ControlPlane {
 public:
  struct Options {
    bool controller_manager = true;
    absl::Duration hpa_sync_period = absl::Seconds(2);
    std::vector<std::string> api_server_arguments;          // more of its command line
    std::vector<std::string> controller_manager_arguments;  // later flags win
  };

  // Returns when /readyz is ok and, with a controller manager, the namespace default has its
  // service account. NOT_FOUND: a program is missing; DEADLINE_EXCEEDED with the end of the logs.
  static absl::StatusOr<std::unique_ptr<ControlPlane>> Start(Options options);
  static absl::StatusOr<std::unique_ptr<ControlPlane>> Start();
  ~ControlPlane();

  // How to reach it.
  const std::string& url() const { return url_; }  // "https://127.0.0.1:<port>"
  const std::string& ca_file() const { return pki_->ca_file(); }
  const std::string& admin_kubeconfig() const { return admin_kubeconfig_; }  // path
  // admin(), the front proxy's authority and certificate (to act as kube-apiserver towards an
  // aggregated API), and Issue() for certificates that the cluster trusts.
  const Pki& pki() const { return *pki_; }
  // The path of a kubeconfig with a token of that service account (TokenRequest, 24 h). The account
  // must exist.
  absl::StatusOr<std::string> ServiceAccountKubeconfig(absl::string_view namespace_name,
                                                       absl::string_view name);

  // kubectl with the admin kubeconfig, up to 60 s. An exit code other than 0 is a result.
  absl::StatusOr<CommandResult> Kubectl(std::vector<std::string> arguments,
                                        absl::string_view stdin_text = "");
  // The same, where success is wanted: its output, or FAILED_PRECONDITION with command and output.
  absl::StatusOr<std::string> MustKubectl(std::vector<std::string> arguments,
                                          absl::string_view stdin_text = "");
  absl::Status Apply(absl::string_view yaml);  // server-side
  // With a controller manager, waits for its default service account.
  absl::Status CreateNamespace(absl::string_view name);

  // Namespace, CRDs and RBAC of deploy/, without the operator itself. Returns when the CRDs are
  // served.
  absl::Status ApplyDeployFiles();
  // The same with KEDA's own CRDs in place of ours.
  absl::Status ApplyDeployFilesWithKedaCrds();

  // Makes v1beta1.external.metrics.k8s.io point to 127.0.0.1:`port` through the Service
  // outrigger-metrics of the namespace outrigger. `ca` (PEM) signed the certificate that is served
  // there, for kMetricsServerName. Does not wait until the APIService is available.
  absl::Status RegisterExternalMetrics(uint16_t port, absl::string_view ca);
  static constexpr char kMetricsServerName[] = "outrigger-metrics.outrigger.svc";

  // Faults. A started API server has the same port and the same objects.
  absl::Status StopApiServer();
  absl::Status StartApiServer();
  absl::Status StopControllerManager();
  absl::Status StartControllerManager();

  struct Pids {
    pid_t etcd = 0;  // 0: not running
    pid_t api_server = 0;
    pid_t controller_manager = 0;
  };
  Pids pids() const;

  // One JSON event per request and line (level Metadata, stage ResponseComplete and later), written
  // before the client has its answer.
  std::string audit_log() const { return dir_.File("audit.log"); }
  // The end of each log, for messages.
  std::string Logs() const;
  const TempDir& dir() const { return dir_; }

 private:
  explicit ControlPlane(Options options);

  absl::Status StartEtcd();
  absl::Status WaitUntilReady();
  absl::Status WaitForServiceAccount(absl::string_view namespace_name);
  absl::Status ApplyFolders(const std::vector<std::string>& paths);
  std::string WriteKubeconfig(absl::string_view name, absl::string_view user);
  absl::StatusOr<std::unique_ptr<Process>> Launch(std::vector<std::string> argv);

  const Options options_;
  const TempDir dir_;
  std::string url_;
  uint16_t api_server_port_ = 0;
  uint16_t etcd_port_ = 0;
  std::unique_ptr<Pki> pki_;
  std::string admin_kubeconfig_;
  std::string controller_manager_kubeconfig_;
  // In the order of their start; ended the other way round.
  std::unique_ptr<Process> etcd_;
  std::unique_ptr<Process> api_server_;
  std::unique_ptr<Process> controller_manager_;
};

// The control plane with default options that all tests of one program share: started at the first
// call, ended with the program. Tests keep apart by namespaces of their own. Aborts when it does
// not start.
ControlPlane& SharedControlPlane();

}  // namespace outrigger::tests
