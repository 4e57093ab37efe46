// SPDX-License-Identifier: Apache-2.0
#include "tests/cluster/control_plane.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/strip.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "host/base/status.h"
#include "tests/cluster/cache.h"
#include "tests/support/free_port.h"
#include "tests/support/wait_for.h"

namespace outrigger::tests {
namespace {

constexpr absl::Duration kReadyTimeout = absl::Seconds(120);  // ready in 6 s on an idle machine
constexpr absl::Duration kStopTimeout = absl::Seconds(20);
constexpr absl::Duration kKubectlTimeout = absl::Seconds(60);

// Every request, once, when it is answered.
constexpr char kAuditPolicy[] =
    "apiVersion: audit.k8s.io/v1\n"
    "kind: Policy\n"
    "omitStages: [RequestReceived]\n"
    "rules: [{level: Metadata}]\n";

void Append(std::vector<std::string>& list, const std::vector<std::string>& more) {
  list.insert(list.end(), more.begin(), more.end());
}

std::string ClusterEntry(absl::string_view url, absl::string_view ca_file) {
  return absl::StrCat(
      "apiVersion: v1\nkind: Config\ncurrent-context: test\n"
      "contexts: [{name: test, context: {cluster: test, user: test}}]\n"
      "clusters: [{name: test, cluster: {server: '",
      url, "', certificate-authority: '", ca_file, "'}}]\n");
}

std::string CertificateUser(const KeyFiles& files) {
  return absl::StrCat("users: [{name: test, user: {client-certificate: '", files.certificate,
                      "', client-key: '", files.key, "'}}]\n");
}

std::string TokenUser(absl::string_view token) {
  return absl::StrCat("users: [{name: test, user: {token: '", token, "'}}]\n");
}

pid_t PidOf(const std::unique_ptr<Process>& process) {
  return process != nullptr && process->Running() ? process->pid() : 0;
}

absl::Status StopProcess(std::unique_ptr<Process>& process) {
  if (process == nullptr) return absl::OkStatus();
  process->Kill(SIGCONT);  // a stopped process would not hear SIGTERM
  const absl::Status stopped = process->Stop(kStopTimeout).status();
  process.reset();
  return stopped;
}

}  // namespace

ControlPlane::ControlPlane(Options options)
    : options_(std::move(options)), api_server_port_(FreePort()), etcd_port_(FreePort()) {
  url_ = absl::StrCat("https://127.0.0.1:", api_server_port_);
}

ControlPlane::~ControlPlane() {
  // Whoever would complain about a server that is gone is ended before it.
  controller_manager_.reset();
  api_server_.reset();
  etcd_.reset();
}

absl::StatusOr<std::unique_ptr<ControlPlane>> ControlPlane::Start() { return Start(Options{}); }

absl::StatusOr<std::unique_ptr<ControlPlane>> ControlPlane::Start(Options options) {
  std::unique_ptr<ControlPlane> plane(new ControlPlane(std::move(options)));
  ASSIGN_OR_RETURN(plane->pki_, Pki::Create(plane->dir_));
  plane->admin_kubeconfig_ = plane->WriteKubeconfig("admin", CertificateUser(plane->pki_->admin()));
  plane->controller_manager_kubeconfig_ = plane->WriteKubeconfig(
      "controller-manager", CertificateUser(plane->pki_->controller_manager()));
  plane->dir_.Write("audit-policy.yaml", kAuditPolicy);
  RETURN_IF_ERROR(plane->StartEtcd());
  RETURN_IF_ERROR(plane->StartApiServer());
  if (plane->options_.controller_manager) {
    RETURN_IF_ERROR(plane->StartControllerManager());
    RETURN_IF_ERROR(plane->WaitForServiceAccount("default"));
  }
  return plane;
}

absl::StatusOr<std::unique_ptr<Process>> ControlPlane::Launch(std::vector<std::string> argv) {
  const std::string program = argv.front().substr(argv.front().rfind('/') + 1);
  absl::StatusOr<std::unique_ptr<Process>> process =
      Process::Start({.argv = std::move(argv), .stdout_file = dir_.File(program + ".log")});
  if (!process.ok()) {
    return host::Annotate(process.status(), "run tests/cluster/build.sh, install etcd-server");
  }
  return process;
}

absl::Status ControlPlane::StartEtcd() {
  const std::string url = absl::StrCat("http://127.0.0.1:", etcd_port_);
  const std::string peer = absl::StrCat("http://127.0.0.1:", FreePort());
  ASSIGN_OR_RETURN(etcd_, Launch({"etcd", "--data-dir", dir_.File("etcd"), "--unsafe-no-fsync",
                                  "--listen-client-urls", url, "--advertise-client-urls", url,
                                  "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                                  "--initial-cluster", absl::StrCat("default=", peer),
                                  "--logger=zap", "--log-level=warn"}));
  return absl::OkStatus();
}

absl::Status ControlPlane::StartApiServer() {
  std::vector<std::string> argv = {
      KubernetesProgram("kube-apiserver"),
      absl::StrCat("--etcd-servers=http://127.0.0.1:", etcd_port_),
      "--bind-address=127.0.0.1",
      absl::StrCat("--secure-port=", api_server_port_),
      "--service-cluster-ip-range=10.0.0.0/24",
      // Loopback addresses are refused as endpoints of the Service kubernetes.
      "--endpoint-reconciler-type=none",
      "--authorization-mode=RBAC",
      absl::StrCat("--client-ca-file=", pki_->ca_file()),
      absl::StrCat("--tls-cert-file=", pki_->api_server().certificate),
      absl::StrCat("--tls-private-key-file=", pki_->api_server().key),
      "--service-account-issuer=https://kubernetes.default.svc",
      absl::StrCat("--service-account-key-file=", pki_->service_account_public_key_file()),
      absl::StrCat("--service-account-signing-key-file=", pki_->service_account_key_file()),
      // The aggregation layer: what an adapter reads from extension-apiserver-authentication.
      absl::StrCat("--requestheader-client-ca-file=", pki_->front_proxy_ca_file()),
      absl::StrCat("--requestheader-allowed-names=", Pki::kFrontProxyName),
      "--requestheader-username-headers=X-Remote-User",
      "--requestheader-group-headers=X-Remote-Group",
      "--requestheader-extra-headers-prefix=X-Remote-Extra-",
      absl::StrCat("--proxy-client-cert-file=", pki_->front_proxy().certificate),
      absl::StrCat("--proxy-client-key-file=", pki_->front_proxy().key),
      // Without the batching mode a line is there before the client has its answer.
      absl::StrCat("--audit-log-path=", audit_log()),
      absl::StrCat("--audit-policy-file=", dir_.File("audit-policy.yaml")),
      "--audit-log-mode=blocking-strict",
  };
  Append(argv, options_.api_server_arguments);
  ASSIGN_OR_RETURN(api_server_, Launch(std::move(argv)));
  return WaitUntilReady();
}

absl::Status ControlPlane::StartControllerManager() {
  std::vector<std::string> argv = {
      KubernetesProgram("kube-controller-manager"),
      absl::StrCat("--kubeconfig=", controller_manager_kubeconfig_),
      absl::StrCat("--authentication-kubeconfig=", controller_manager_kubeconfig_),
      absl::StrCat("--authorization-kubeconfig=", controller_manager_kubeconfig_),
      "--bind-address=127.0.0.1",
      absl::StrCat("--secure-port=", FreePort()),
      absl::StrCat("--cert-dir=", dir_.File("controller-manager")),
      "--leader-elect=false",
      "--controllers=*,-nodeipam,-nodelifecycle,-persistentvolume-binder,-attachdetach",
      // Each controller with its own rights: with an admin certificate the HPA's access to our
      // metrics would prove nothing.
      "--use-service-account-credentials=true",
      absl::StrCat("--service-account-private-key-file=", pki_->service_account_key_file()),
      absl::StrCat("--root-ca-file=", pki_->ca_file()),
      absl::StrCat("--horizontal-pod-autoscaler-sync-period=",
                   absl::FormatDuration(options_.hpa_sync_period)),
      "--kube-api-qps=200",
      "--kube-api-burst=400",
  };
  Append(argv, options_.controller_manager_arguments);
  ASSIGN_OR_RETURN(controller_manager_, Launch(std::move(argv)));
  return absl::OkStatus();
}

absl::Status ControlPlane::WaitUntilReady() {
  bool ended = false;
  const absl::Status ready = WaitForOk(
      [&] {
        ended = !api_server_->Running() || !etcd_->Running();
        return ended ? absl::OkStatus() : MustKubectl({"get", "--raw", "/readyz"}).status();
      },
      kReadyTimeout, "kube-apiserver to be ready");
  if (ended) return absl::FailedPreconditionError(absl::StrCat("it ended at its start\n", Logs()));
  return host::Annotate(ready, Logs());
}

absl::Status ControlPlane::WaitForServiceAccount(absl::string_view namespace_name) {
  return host::Annotate(WaitForOk(
                            [&] {
                              return MustKubectl({"get", "serviceaccount", "default", "-n",
                                                  std::string(namespace_name)})
                                  .status();
                            },
                            kReadyTimeout, "the default service account"),
                        Logs());
}

absl::Status ControlPlane::StopApiServer() { return StopProcess(api_server_); }

absl::Status ControlPlane::StopControllerManager() { return StopProcess(controller_manager_); }

ControlPlane::Pids ControlPlane::pids() const {
  return {.etcd = PidOf(etcd_),
          .api_server = PidOf(api_server_),
          .controller_manager = PidOf(controller_manager_)};
}

std::string ControlPlane::Logs() const {
  std::string text;
  for (const char* name : {"etcd", "kube-apiserver", "kube-controller-manager"}) {
    absl::StrAppend(&text, name, ".log: ", ReadTail(dir_.File(absl::StrCat(name, ".log"))), "\n");
  }
  return text;
}

std::string ControlPlane::WriteKubeconfig(absl::string_view name, absl::string_view user) {
  return dir_.Write(absl::StrCat("kubeconfig-", name),
                    absl::StrCat(ClusterEntry(url_, pki_->ca_file()), user));
}

absl::StatusOr<std::string> ControlPlane::ServiceAccountKubeconfig(absl::string_view namespace_name,
                                                                   absl::string_view name) {
  ASSIGN_OR_RETURN(const std::string token,
                   MustKubectl({"create", "token", std::string(name), "-n",
                                std::string(namespace_name), "--duration=24h"}));
  return WriteKubeconfig(absl::StrCat(namespace_name, "-", name),
                         TokenUser(absl::StripSuffix(token, "\n")));
}

absl::StatusOr<CommandResult> ControlPlane::Kubectl(std::vector<std::string> arguments,
                                                    absl::string_view stdin_text) {
  arguments.insert(arguments.begin(), KubernetesProgram("kubectl"));
  // HOME: where it caches what the server serves.
  return RunCommand({.argv = std::move(arguments),
                     .env = {{"KUBECONFIG", admin_kubeconfig_}, {"HOME", dir_.path()}}},
                    stdin_text, kKubectlTimeout);
}

absl::StatusOr<std::string> ControlPlane::MustKubectl(std::vector<std::string> arguments,
                                                      absl::string_view stdin_text) {
  const std::string command = absl::StrJoin(arguments, " ");
  ASSIGN_OR_RETURN(CommandResult result, Kubectl(std::move(arguments), stdin_text));
  if (result.ok()) return std::move(result.stdout_text);
  return absl::FailedPreconditionError(absl::StrCat("kubectl ", command, ": ", result.Describe()));
}

ControlPlane& SharedControlPlane() {
  static const std::unique_ptr<ControlPlane> plane = [] {
    absl::StatusOr<std::unique_ptr<ControlPlane>> started = ControlPlane::Start();
    if (!started.ok()) {
      std::fprintf(stderr, "%s\n", host::Describe(started.status()).c_str());
      std::abort();
    }
    return *std::move(started);
  }();
  return *plane;
}

}  // namespace outrigger::tests
