// SPDX-License-Identifier: Apache-2.0
// The rest of deploy/ on a real kube-apiserver: everything is accepted, and the Pods are made as
// they are meant. There is no kubelet, so they do not run here.
#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <map>
#include <set>

#include "tests/cluster/cache.h"
#include "tests/cluster/deployed.h"
#include "tests/support/wait_for.h"

namespace outrigger::tests {
namespace {

namespace json = boost::json;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

std::string Text(const json::value& value) { return std::string(value.as_string()); }

TEST(DeployTest, EverythingIsAcceptedByTheServer) {
  const auto applied =
      DeployedControlPlane().Kubectl({"apply", "--server-side", "--dry-run=server",
                                      "--validate=strict", "-k", SourcePath("deploy")});
  ASSERT_TRUE(applied.ok()) << applied.status();
  EXPECT_TRUE(applied->ok()) << applied->Describe();
  EXPECT_THAT(
      applied->stdout_text,
      testing::HasSubstr("apiservice.apiregistration.k8s.io/v1beta1.external.metrics.k8s.io "
                         "serverside-applied"));
}

TEST(DeployTest, ServicesPublishAddressesThatAreNotReady) {
  ControlPlane& plane = DeployedControlPlane();
  const auto applied =
      plane.MustKubectl({"apply", "--server-side", "-f", SourcePath("deploy/services.yaml")});
  ASSERT_TRUE(applied.ok()) << applied.status();
  const auto services = KubectlJson(plane, {"get", "services", "-n", "outrigger"});
  ASSERT_TRUE(services.ok()) << services.status();
  std::map<std::string, std::string> ports;
  for (const json::value& service : services->at("items").as_array()) {
    const std::string name = Text(service.at("metadata").at("name"));
    EXPECT_TRUE(service.at("spec").at("publishNotReadyAddresses").as_bool()) << name;
    for (const json::value& port : service.at("spec").at("ports").as_array()) {
      absl::StrAppend(&ports[name], port.at("port").as_int64(), " to ", Text(port.at("targetPort")),
                      ";");
    }
  }
  EXPECT_EQ(ports["outrigger-metrics"], "443 to metrics-api;");
  EXPECT_EQ(ports["outrigger-operator"], "9666 to grpc;8080 to metrics;");
  EXPECT_EQ(ports.size(), 2u);
}

std::set<std::string> Mounts(const json::value& container) {
  std::set<std::string> paths;
  for (const json::value& mount : container.at("volumeMounts").as_array()) {
    paths.insert(Text(mount.at("mountPath")));
  }
  return paths;
}

// The Deployment applied, once its two Pods exist: so the namespace's Pod security lets them in.
class DeployedPodTest : public testing::Test {
 protected:
  void SetUp() override {
    ControlPlane& plane = DeployedControlPlane();
    const auto applied =
        plane.MustKubectl({"apply", "--server-side", "-f", SourcePath("deploy/deployment.yaml")});
    ASSERT_TRUE(applied.ok()) << applied.status();
    std::string last;
    const absl::Status made = WaitFor(
        [&] {
          const auto listed = KubectlJson(plane, {"get", "pods", "-n", "outrigger"});
          last = listed.ok() ? json::serialize(listed->at("items")) : listed.status().ToString();
          if (!listed.ok() || listed->at("items").as_array().size() != 2) return false;
          pod_ = listed->at("items").at(0);
          return true;
        },
        absl::Seconds(60), "two Pods of the operator", [&] { return last; });
    ASSERT_TRUE(made.ok()) << made;
  }

  const json::value& Container(absl::string_view name) const {
    for (const json::value& container : pod_.at("spec").at("containers").as_array()) {
      if (Text(container.at("name")) == name) return container;
    }
    ADD_FAILURE() << "no container " << name;
    return pod_;
  }

  json::value pod_;
};

TEST_F(DeployedPodTest, OnlyTheOperatorHasAToken) {
  constexpr char kToken[] = "/var/run/secrets/kubernetes.io/serviceaccount";
  EXPECT_THAT(Mounts(Container("operator")),
              UnorderedElementsAre(kToken, "/etc/outrigger/tls", "/run/outrigger/plugins/redis"));
  EXPECT_THAT(Mounts(Container("scaler-redis")), ElementsAre("/run/outrigger/plugins/redis"));
}

TEST_F(DeployedPodTest, PluginsHaveUsersOfTheirOwnAndNoReadiness) {
  const json::value& plugin = Container("scaler-redis");
  EXPECT_NE(plugin.at("securityContext").at("runAsUser"),
            Container("operator").at("securityContext").at("runAsUser"));
  EXPECT_TRUE(plugin.as_object().contains("livenessProbe"));
  EXPECT_FALSE(plugin.as_object().contains("readinessProbe"));
  EXPECT_TRUE(Container("operator").as_object().contains("readinessProbe"));
}

// certificates.sh writes into a cluster of its own: an APIService without a server behind it would
// make every kubectl of the other tests wait for discovery.
TEST(CertificatesTest, ScriptMakesACertificateThatTheApiServicesBundleSigned) {
  ControlPlane::Options options;
  options.controller_manager = false;
  const auto plane = ControlPlane::Start(std::move(options));
  ASSERT_TRUE(plane.ok()) << plane.status();
  for (const char* file : {"deploy/namespace.yaml", "deploy/apiservice.yaml"}) {
    ASSERT_TRUE((*plane)->MustKubectl({"apply", "--server-side", "-f", SourcePath(file)}).ok());
  }
  const auto made = RunCommand({.argv = {SourcePath("deploy/certificates.sh")},
                                .env = {{"KUBECTL", KubernetesProgram("kubectl")},
                                        {"KUBECONFIG", (*plane)->admin_kubeconfig()}}},
                               "", absl::Seconds(60));
  ASSERT_TRUE(made.ok()) << made.status();
  ASSERT_TRUE(made->ok()) << made->Describe();

  const auto bundle = (*plane)->MustKubectl({"get", "--raw",
                                             "/apis/apiregistration.k8s.io/v1/apiservices/"
                                             "v1beta1.external.metrics.k8s.io"});
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  const auto secret = (*plane)->MustKubectl(
      {"get", "--raw", "/api/v1/namespaces/outrigger/secrets/outrigger-certs"});
  ASSERT_TRUE(secret.ok()) << secret.status();
  const json::value data = json::parse(*secret).at("data");
  const std::string ca = Text(json::parse(*bundle).at("spec").at("caBundle"));
  EXPECT_EQ(ca, Text(data.at("ca.crt")));

  const TempDir dir;
  std::string text;
  ASSERT_TRUE(absl::Base64Unescape(ca, &text));
  const std::string ca_file = dir.Write("ca.crt", text);
  ASSERT_TRUE(absl::Base64Unescape(Text(data.at("tls.crt")), &text));
  const std::string leaf_file = dir.Write("tls.crt", text);
  const auto verified =
      RunCommand({.argv = {"openssl", "verify", "-purpose", "sslserver", "-verify_hostname",
                           ControlPlane::kMetricsServerName, "-CAfile", ca_file, leaf_file}},
                 "", absl::Seconds(10));
  ASSERT_TRUE(verified.ok()) << verified.status();
  EXPECT_TRUE(verified->ok()) << verified->Describe();
}

}  // namespace
}  // namespace outrigger::tests
