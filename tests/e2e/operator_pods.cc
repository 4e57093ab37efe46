// SPDX-License-Identifier: Apache-2.0
#include "tests/e2e/operator_pods.h"

#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include "host/base/status.h"
#include "tests/cluster/cache.h"
#include "tests/support/wait_for.h"

namespace outrigger::tests {
namespace {

constexpr char kNode[] = "played";
constexpr char kNamespace[] = "outrigger";
constexpr char kApiService[] = "v1beta1.external.metrics.k8s.io";

std::string RunningAt(const std::string& address) {
  return absl::StrCat(R"({"status": {"phase": "Running", "podIP": ")", address,
                      R"(", "podIPs": [{"ip": ")", address,
                      R"("}], "conditions": [{"type": "Ready", "status": "True"}]}})");
}

std::string BindingOf(const std::string& pod) {
  return absl::StrCat(R"({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": ")", pod,
                      R"("}, "target": {"apiVersion": "v1", "kind": "Node", "name": ")", kNode,
                      R"("}})");
}

}  // namespace

absl::Status OperatorPods::Deploy() {
  RETURN_IF_ERROR(
      plane_.Apply(absl::StrCat("{apiVersion: v1, kind: Node, metadata: {name: ", kNode, "}}")));
  for (const char* file : {"services.yaml", "apiservice.yaml", "deployment.yaml"}) {
    RETURN_IF_ERROR(plane_
                        .MustKubectl({"apply", "--server-side", "-f",
                                      SourcePath(absl::StrCat("deploy/", file))})
                        .status());
  }
  const std::string bundle = absl::Base64Escape(plane_.pki().authority().certificate());
  return plane_
      .MustKubectl({"patch", "apiservice", kApiService, "--type=merge", "-p",
                    absl::StrCat(R"({"spec": {"caBundle": ")", bundle, R"("}})")})
      .status();
}

absl::StatusOr<std::string> OperatorPods::Run(const std::string& address) {
  std::string pod;
  RETURN_IF_ERROR(WaitForOk(
      [&]() -> absl::Status {
        ASSIGN_OR_RETURN(pod, plane_.MustKubectl({"get", "pods", "-n", kNamespace,
                                                  "--field-selector=spec.nodeName=", "-o",
                                                  "jsonpath={.items[0].metadata.name}"}));
        return pod.empty() ? absl::NotFoundError("there is none") : absl::OkStatus();
      },
      absl::Seconds(30), "a Pod without a node"));
  RETURN_IF_ERROR(
      plane_
          .MustKubectl({"create", "--raw",
                        absl::StrCat("/api/v1/namespaces/", kNamespace, "/pods/", pod, "/binding"),
                        "-f", "-"},
                       BindingOf(pod))
          .status());
  RETURN_IF_ERROR(plane_
                      .MustKubectl({"patch", "pod", pod, "-n", kNamespace, "--subresource=status",
                                    "--type=merge", "-p", RunningAt(address)})
                      .status());
  return pod;
}

absl::Status OperatorPods::Delete(const std::string& pod) {
  return plane_.MustKubectl({"delete", "pod", pod, "-n", kNamespace, "--wait=false"}).status();
}

absl::Status OperatorPods::ReportEnd(const std::string& pod) {
  RETURN_IF_ERROR(plane_
                      .MustKubectl({"patch", "pod", pod, "-n", kNamespace, "--subresource=status",
                                    "--type=merge", "-p", R"({"status": {"phase": "Failed"}})"})
                      .status());
  return plane_
      .MustKubectl({"delete", "pod", pod, "-n", kNamespace, "--grace-period=0", "--force",
                    "--wait=false", "--ignore-not-found"})
      .status();
}

absl::StatusOr<std::set<std::string>> OperatorPods::PublishedAddresses() {
  ASSIGN_OR_RETURN(
      const std::string text,
      plane_.MustKubectl({"get", "endpointslices", "-n", kNamespace, "-l",
                          "kubernetes.io/service-name=outrigger-metrics", "-o",
                          "jsonpath={range .items[*].endpoints[*]}{.addresses[0]} {end}"}));
  return std::set<std::string>(absl::StrSplit(text, ' ', absl::SkipEmpty()));
}

}  // namespace outrigger::tests
