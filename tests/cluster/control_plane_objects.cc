// SPDX-License-Identifier: Apache-2.0
// The part of ControlPlane that puts objects into the cluster.
#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>

#include "host/base/status.h"
#include "tests/cluster/cache.h"
#include "tests/cluster/control_plane.h"

namespace outrigger::tests {
namespace {

constexpr char kNamespaceFile[] = "deploy/namespace.yaml";
constexpr char kCrdFolder[] = "deploy/crds";
constexpr char kRbacFolder[] = "deploy/rbac";

std::string NamespaceYaml(absl::string_view name) {
  return absl::StrCat("{apiVersion: v1, kind: Namespace, metadata: {name: ", name, "}}");
}

// An ExternalName Service is how the aggregator, without --enable-aggregator-routing, is led to a
// process on this machine; it dials the port that the APIService names.
std::string ExternalMetricsYaml(uint16_t port, absl::string_view ca) {
  return absl::StrCat(R"(
apiVersion: v1
kind: Service
metadata: {name: outrigger-metrics, namespace: outrigger}
spec: {type: ExternalName, externalName: localhost, ports: [{port: )",
                      port, R"(}]}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.external.metrics.k8s.io}
spec:
  group: external.metrics.k8s.io
  version: v1beta1
  groupPriorityMinimum: 100
  versionPriority: 100
  caBundle: )",
                      absl::Base64Escape(ca), R"(
  service: {name: outrigger-metrics, namespace: outrigger, port: )",
                      port, "}\n");
}

}  // namespace

absl::Status ControlPlane::Apply(absl::string_view yaml) {
  return MustKubectl({"apply", "--server-side", "--force-conflicts", "-f", "-"}, yaml).status();
}

absl::Status ControlPlane::CreateNamespace(absl::string_view name) {
  RETURN_IF_ERROR(Apply(NamespaceYaml(name)));
  return options_.controller_manager ? WaitForServiceAccount(name) : absl::OkStatus();
}

absl::Status ControlPlane::ApplyFolders(const std::vector<std::string>& paths) {
  RETURN_IF_ERROR(
      MustKubectl({"apply", "--server-side", "-f", SourcePath(kNamespaceFile)}).status());
  for (const std::string& path : paths) {
    // A folder with a kustomization.yaml is applied with -k: with -f that file were an object too.
    const bool is_ours = path.starts_with(SourcePath("deploy/"));
    RETURN_IF_ERROR(
        MustKubectl({"apply", "--server-side", "--force-conflicts", is_ours ? "-k" : "-f", path})
            .status());
  }
  return MustKubectl({"wait", "--for=condition=Established", "crd", "--all", "--timeout=50s"})
      .status();
}

absl::Status ControlPlane::ApplyDeployFiles() {
  return ApplyFolders({SourcePath(kCrdFolder), SourcePath(kRbacFolder)});
}

absl::Status ControlPlane::ApplyDeployFilesWithKedaCrds() {
  return ApplyFolders({KedaCrdFolder(), SourcePath(kRbacFolder)});
}

absl::Status ControlPlane::RegisterExternalMetrics(uint16_t port, absl::string_view ca) {
  RETURN_IF_ERROR(Apply(NamespaceYaml("outrigger")));
  return Apply(ExternalMetricsYaml(port, ca));
}

}  // namespace outrigger::tests
