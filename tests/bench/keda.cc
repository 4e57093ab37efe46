// SPDX-License-Identifier: Apache-2.0
// KEDA as a contender: its operator and its metrics adapter, run as its own deployment files run
// them, but as processes of this machine.
#include <absl/strings/str_cat.h>

#include <utility>
#include <vector>

#include "host/base/status.h"
#include "tests/bench/contender.h"
#include "tests/cluster/cache.h"
#include "tests/e2e/operator_process.h"
#include "tests/support/free_port.h"
#include "tests/support/wait_for.h"

namespace outrigger::bench {
namespace {

constexpr absl::Duration kStartTimeout = absl::Seconds(60);
constexpr char kLeads[] = "\nleader_election_master_status{name=\"operator.keda.sh\"} 1";

// A cluster's admin: its own roles would cost the API server as much, and their names are not the
// question.
constexpr char kAccount[] = R"(
apiVersion: v1
kind: Namespace
metadata: {name: keda}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: keda-operator, namespace: keda}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: keda-operator}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: keda-operator, namespace: keda}]
)";

// By default KEDA asks the API server 20 times a second and reconciles 5 objects at once, which
// would be all that its time until Ready shows.
constexpr char kQps[] = "--kube-api-qps=1000";
constexpr char kBurst[] = "--kube-api-burst=2000";
constexpr char kMaxReconciles[] = "20";

std::string Local(uint16_t port) { return absl::StrCat("127.0.0.1:", port); }

class Keda final : public Contender {
 public:
  std::string name() const override { return "KEDA"; }
  Crds crds() const override { return Crds::kKeda; }
  Pids pids() const override {
    return {.controller = operator_->pid(), .companion = adapter_->pid()};
  }
  std::string user() const override { return "system:serviceaccount:keda:keda-operator"; }

  std::string LogTail() const override {
    return absl::StrCat("operator: ", operator_->OutputTail(),
                        "\nadapter: ", adapter_->OutputTail());
  }

  absl::Status Start(Stage& stage) override {
    tests::ControlPlane& plane = stage.plane();
    RETURN_IF_ERROR(plane.Apply(kAccount));
    ASSIGN_OR_RETURN(kubeconfig_, plane.ServiceAccountKubeconfig("keda", "keda-operator"));
    RETURN_IF_ERROR(WriteCertificates(plane));
    RETURN_IF_ERROR(StartOperator());
    RETURN_IF_ERROR(StartAdapter());
    RETURN_IF_ERROR(
        plane.RegisterExternalMetrics(adapter_port_, plane.pki().authority().certificate()));
    return WaitUntilAvailable(plane);
  }

 private:
  // One certificate for all that listens and for the adapter as the operator's client, as its own
  // rotation issues it.
  absl::Status WriteCertificates(const tests::ControlPlane& plane) {
    const tests::CertificateAuthority& authority = plane.pki().authority();
    ASSIGN_OR_RETURN(const tests::KeyPair pair,
                     authority.Issue({.common_name = "keda",
                                      .dns_names = {tests::ControlPlane::kMetricsServerName},
                                      .ips = {"127.0.0.1"}}));
    dir_.Write("certs/ca.crt", authority.certificate());
    dir_.Write("certs/tls.crt", pair.certificate);
    dir_.Write("certs/tls.key", pair.key);
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<tests::Process>> Launch(const std::string& program,
                                                         std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), tests::KedaProgram(program));
    absl::StatusOr<std::unique_ptr<tests::Process>> process =
        tests::Process::Start({.argv = std::move(arguments),
                               .env = {{"KUBECONFIG", kubeconfig_},
                                       {"POD_NAMESPACE", "keda"},
                                       {"KEDA_CLUSTER_OBJECT_NAMESPACE", "keda"},
                                       {"WATCH_NAMESPACE", ""},
                                       {"KEDA_SCALEDOBJECT_CTRL_MAX_RECONCILES", kMaxReconciles}},
                               .stdout_file = dir_.File(program + ".log")});
    return process.ok() ? std::move(process)
                        : host::Annotate(process.status(), "run tests/bench/peer/build_keda.sh");
  }

  absl::Status StartOperator() {
    const uint16_t metrics_port = tests::FreePort();
    metrics_service_port_ = tests::FreePort();
    ASSIGN_OR_RETURN(
        operator_,
        Launch("keda", {"--leader-elect", "--zap-log-level=info", "--zap-encoder=console",
                        "--zap-time-encoding=rfc3339", "--cert-dir=" + dir_.File("certs"), kQps,
                        kBurst, "--metrics-bind-address=" + Local(metrics_port),
                        "--health-probe-bind-address=" + Local(tests::FreePort()),
                        "--metrics-service-bind-address=" + Local(metrics_service_port_)}));
    return WaitUntilLeading(metrics_port);
  }

  absl::Status WaitUntilLeading(uint16_t metrics_port) {
    return host::Annotate(tests::WaitForOk(
                              [&]() -> absl::Status {
                                ASSIGN_OR_RETURN(
                                    const std::string metrics,
                                    tests::OperatorProcess::HttpGet(metrics_port, "/metrics"));
                                if (metrics.find(kLeads) != std::string::npos)
                                  return absl::OkStatus();
                                return absl::UnavailableError("it does not lead");
                              },
                              kStartTimeout, "KEDA's operator leads"),
                          operator_->OutputTail());
  }

  absl::Status StartAdapter() {
    adapter_port_ = tests::FreePort();
    ASSIGN_OR_RETURN(
        adapter_,
        Launch("keda-adapter",
               {absl::StrCat("--secure-port=", adapter_port_), "--bind-address=127.0.0.1",
                "--zap-log-level=error", "--client-ca-file=" + dir_.File("certs/ca.crt"),
                "--tls-cert-file=" + dir_.File("certs/tls.crt"),
                "--tls-private-key-file=" + dir_.File("certs/tls.key"),
                "--cert-dir=" + dir_.File("certs"), kQps, kBurst,
                absl::StrCat("--port=", tests::FreePort()),
                "--metrics-service-address=" + Local(metrics_service_port_),
                // Outside a Pod these three have no default.
                "--lister-kubeconfig=" + kubeconfig_, "--authentication-kubeconfig=" + kubeconfig_,
                "--authorization-kubeconfig=" + kubeconfig_}));
    return absl::OkStatus();
  }

  absl::Status WaitUntilAvailable(tests::ControlPlane& plane) {
    return host::Annotate(plane
                              .MustKubectl({"wait", "--for=condition=Available", "apiservice",
                                            "v1beta1.external.metrics.k8s.io", "--timeout=50s"})
                              .status(),
                          LogTail());
  }

  const tests::TempDir dir_;
  std::string kubeconfig_;
  uint16_t metrics_service_port_ = 0;
  uint16_t adapter_port_ = 0;
  std::unique_ptr<tests::Process> operator_;
  std::unique_ptr<tests::Process> adapter_;
};

}  // namespace

std::unique_ptr<Contender> NewKeda() { return std::make_unique<Keda>(); }

}  // namespace outrigger::bench
