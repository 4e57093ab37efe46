// SPDX-License-Identifier: Apache-2.0
// The metrics API behind a real kube-apiserver: aggregation, reviews, the stock HPA controller;
// with the rights of deploy/ and no others.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "host/base/real_clock.h"
#include "operator/adapter/metrics_api.h"
#include "operator/kube/api_config.h"
#include "operator/kube/http_api.h"
#include "tests/cluster/control_plane.h"
#include "tests/operator/adapter/http_client.h"
#include "tests/operator/adapter/scripted_source.h"
#include "tests/operator/adapter/threads.h"
#include "tests/support/wait_for.h"

namespace outrigger::controller::adapter {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using tests::ControlPlane;
using tests::HttpAnswer;
using tests::HttpClient;
using tests::KeyPair;
using tests::SharedControlPlane;
using tests::WaitFor;

constexpr char kMetricPath[] =
    "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/s0-redis-orders"
    "?labelSelector=scaledobject.keda.sh%2Fname%3Dorders";

std::string TextOf(const absl::StatusOr<std::string>& text) {
  return text.ok() ? *text : text.status().ToString();
}

KeyPair Read(const tests::KeyFiles& files) {
  return {.certificate = *tests::ReadFile(files.certificate), .key = *tests::ReadFile(files.key)};
}

class MetricsApiClusterTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(plane_.ApplyDeployFiles().ok());
    ASSERT_TRUE(plane_.CreateNamespace("shop").ok());
    StartApi();
    Serve();
    const absl::Status registered =
        plane_.RegisterExternalMetrics(server_->port(), plane_.pki().authority().certificate());
    ASSERT_TRUE(registered.ok()) << registered;
    WaitUntilAvailable();
  }

  void TearDown() override {
    if (server_ != nullptr) threads_.Run(core_, server_->Stop());
    if (loader_ != nullptr) {
      loader_->Stop();
      loading_.get();
    }
    if (api_ != nullptr) api_->Stop();
  }

  // With the service account of the operator.
  void StartApi() {
    const absl::StatusOr<std::string> kubeconfig =
        plane_.ServiceAccountKubeconfig("outrigger", "outrigger-operator");
    ASSERT_TRUE(kubeconfig.ok()) << kubeconfig.status();
    absl::StatusOr<kube::ApiConfig> config = kube::LoadKubeconfig(*kubeconfig, "");
    ASSERT_TRUE(config.ok()) << config.status();
    api_ = std::make_unique<kube::HttpApi>(clock_, log_, kube::HttpApi::Options{.config = *config});
    loader_ = std::make_unique<RequestHeaderConfigLoader>(clock_, *api_, log_);
    loading_ = boost::asio::co_spawn(core_, loader_->Run(), boost::asio::use_future);
    const absl::Status loaded =
        WaitFor([this] { return loader_->Current() != nullptr; }, absl::Seconds(20),
                "the authentication configuration", [] { return "nothing was read"; });
    ASSERT_TRUE(loaded.ok()) << loaded;
    authorizer_ = std::make_unique<Authorizer>(clock_, *api_, Authorizer::Options());
    metrics_api_ = std::make_unique<MetricsApi>(core_, clock_, *loader_, *authorizer_, source_,
                                                sink_, MetricsApi::Options());
  }

  void Serve() {
    const absl::StatusOr<tests::KeyFiles> serving =
        plane_.pki().Issue("metrics", {.common_name = ControlPlane::kMetricsServerName,
                                       .dns_names = {ControlPlane::kMetricsServerName}});
    ASSERT_TRUE(serving.ok()) << serving.status();
    server_ = std::make_unique<HttpServer>(
        threads_.executor(), clock_, log_,
        [this](std::shared_ptr<const HttpRequest> request) {
          return metrics_api_->Handle(std::move(request));
        },
        HttpServer::Options{.name = "metrics API",
                            .address = "127.0.0.1",
                            .cert_file = serving->certificate,
                            .key_file = serving->key});
    const absl::Status started = server_->Start();
    ASSERT_TRUE(started.ok()) << started;
  }

  void WaitUntilAvailable() {
    std::string seen;
    const absl::Status available = WaitFor(
        [&] {
          seen = TextOf(
              plane_.MustKubectl({"get", "apiservice", "v1beta1.external.metrics.k8s.io", "-o",
                                  "jsonpath={.status.conditions[?(@.type=='Available')]}"}));
          if (!absl::StrContains(seen, R"("status":"True")")) return false;
          // It may still be the word about the server of the test before.
          seen = TextOf(plane_.MustKubectl(
              {"get", "--raw", "/apis/external.metrics.k8s.io/v1beta1"}));
          return absl::StrContains(seen, "externalmetrics");
        },
        absl::Seconds(60), "APIService Available=True", [&] { return seen; });
    ASSERT_TRUE(available.ok()) << available;
  }

  // The path of a kubeconfig with a new token. Each token is an identity of its own: reviews tell
  // tokens apart.
  std::string Login(const std::string& namespace_name, const std::string& account) {
    const absl::StatusOr<std::string> kubeconfig =
        plane_.ServiceAccountKubeconfig(namespace_name, account);
    EXPECT_TRUE(kubeconfig.ok()) << kubeconfig.status();
    return kubeconfig.ok() ? *kubeconfig : "";
  }
  // kubectl get --raw
  std::string GetAs(const std::string& kubeconfig, const std::string& path) {
    const auto result = plane_.Kubectl({"--kubeconfig", kubeconfig, "get", "--raw", path});
    if (!result.ok()) return result.status().ToString();
    return result->ok() ? result->stdout_text : result->Describe();
  }

  HttpAnswer GetDirectly(const KeyPair& identity, absl::string_view headers) {
    absl::StatusOr<std::unique_ptr<HttpClient>> client =
        HttpClient::ConnectTls(server_->port(), identity);
    EXPECT_TRUE(client.ok()) << client.status();
    absl::StatusOr<HttpAnswer> answer = (*client)->Get(kMetricPath, headers);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return *std::move(answer);
  }

  // How many SubjectAccessReviews the operator's account has made so far.
  int Reviews() {
    int count = 0;
    const absl::StatusOr<std::string> log = tests::ReadFile(plane_.audit_log());
    for (absl::string_view line : absl::StrSplit(TextOf(log), '\n')) {
      count += absl::StrContains(line, "subjectaccessreviews") &&
                       absl::StrContains(line, "system:serviceaccount:outrigger:outrigger-operator")
                   ? 1
                   : 0;
    }
    return count;
  }

  ControlPlane& plane_ = SharedControlPlane();
  host::RealClock clock_;
  const host::Logger log_{host::MakeNullSink()};
  tests::Threads threads_;
  const host::Executor core_ = threads_.strand();
  ScriptedSource source_;
  runtime::MetricsSink sink_;
  std::unique_ptr<kube::HttpApi> api_;
  std::unique_ptr<RequestHeaderConfigLoader> loader_;
  std::unique_ptr<Authorizer> authorizer_;
  std::unique_ptr<MetricsApi> metrics_api_;
  std::future<void> loading_;
  std::unique_ptr<HttpServer> server_;
};

constexpr char kHpa[] = R"(
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: orders}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: orders}
  minReplicas: 1
  maxReplicas: 10
  metrics:
    - type: External
      external:
        metric:
          name: s0-redis-orders
          selector: {matchLabels: {scaledobject.keda.sh/name: orders}}
        target: {type: AverageValue, averageValue: "5"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: orders}
spec:
  replicas: 1
  selector: {matchLabels: {app: orders}}
  template:
    metadata: {labels: {app: orders}}
    spec: {containers: [{name: worker, image: worker}]}
)";

// Shows R23. Case B153: with the rights of deploy/ only, reads are authorised and answered.
TEST_F(MetricsApiClusterTest, TheHpaControllersAccountReadsThroughTheAggregator) {
  const std::string hpa_controller = Login("kube-system", "horizontal-pod-autoscaler");
  const int before = Reviews();
  for (int i = 0; i < 5; ++i) {
    EXPECT_THAT(GetAs(hpa_controller, kMetricPath),
                HasSubstr(R"("metricName":"s0-redis-orders","metricLabels":null)"));
  }
  EXPECT_LE(Reviews() - before, 2) << "one per user and 10 s";
  EXPECT_GE(Reviews() - before, 1);
}

// Shows R23. Shows R8.
TEST_F(MetricsApiClusterTest, TheStockHpaControllerScalesByWhatItReads) {
  ASSERT_TRUE(plane_.CreateNamespace("hpa").ok());
  const auto created = plane_.MustKubectl({"apply", "-n", "hpa", "-f", "-"}, kHpa);
  ASSERT_TRUE(created.ok()) << created.status();
  std::string seen;
  const absl::Status scaled = WaitFor(
      [&] {
        seen = TextOf(plane_.MustKubectl({"get", "hpa", "orders", "-n", "hpa", "-o",
                                          "jsonpath={.status.desiredReplicas} {.status}"}));
        return absl::StartsWith(seen, "5 ");
      },
      absl::Seconds(60), "ceil(23 / 5) = 5 replicas", [&] { return seen; });
  EXPECT_TRUE(scaled.ok()) << scaled;
  ASSERT_THAT(source_.reads(), Not(IsEmpty()));
  EXPECT_EQ(source_.reads()[0].metric_name, "s0-redis-orders");
  EXPECT_EQ(source_.reads()[0].scaled_object, "orders");
  EXPECT_EQ(source_.reads()[0].namespace_name, "hpa");

  source_.Set(absl::UnavailableError("redis: connection refused"));
  const absl::Status held = WaitFor(
      [&] {
        seen = TextOf(plane_.MustKubectl({"get", "hpa", "orders", "-n", "hpa", "-o",
                                          "jsonpath={.status.desiredReplicas} {.status}"}));
        return absl::StrContains(seen, "FailedGetExternalMetric");
      },
      absl::Seconds(60), "ScalingActive=False", [&] { return seen; });
  EXPECT_TRUE(held.ok()) << held;
  EXPECT_THAT(seen, AllOf(testing::StartsWith("5 "), HasSubstr("redis: connection refused")))
      << "the HPA holds, and says why";
  // It would read on in the tests that follow.
  EXPECT_TRUE(plane_.MustKubectl({"delete", "hpa", "orders", "-n", "hpa"}).ok());
}

TEST_F(MetricsApiClusterTest, AnAccountWithoutTheRoleIsForbidden) {
  const auto made = plane_.MustKubectl({"create", "serviceaccount", "nobody", "-n", "shop"});
  ASSERT_TRUE(made.ok()) << made.status();
  // The API server itself stops it on the way …
  EXPECT_THAT(GetAs(Login("shop", "nobody"), kMetricPath), HasSubstr("Forbidden"));
  // … and so do we, whoever asks us past it.
  const HttpAnswer by_proxy = GetDirectly(Read(plane_.pki().front_proxy()),
                                          "X-Remote-User: system:serviceaccount:shop:nobody\r\n"
                                          "X-Remote-Group: system:authenticated\r\n");
  EXPECT_EQ(by_proxy.code, 403);
  EXPECT_THAT(by_proxy.body,
              HasSubstr(R"(user \"system:serviceaccount:shop:nobody\" may not list resource )"));
  const KeyPair jane = *plane_.pki().authority().Issue({.common_name = "jane"});
  EXPECT_EQ(GetDirectly(jane,
                        "X-Remote-User: system:serviceaccount:kube-system:"
                        "horizontal-pod-autoscaler\r\n")
                .code,
            403);
  EXPECT_EQ(GetDirectly({}, "X-Remote-User: admin\r\nX-Remote-Group: system:masters\r\n").code,
            401);
  EXPECT_THAT(source_.reads(), IsEmpty());
}

TEST_F(MetricsApiClusterTest, ARoleForOneNamespaceIsEnoughThere) {
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"create", "serviceaccount", "reader", "-n", "shop"},
           {"create", "role", "reader", "-n", "shop", "--verb=get,list",
            "--resource=*.external.metrics.k8s.io"},
           {"create", "rolebinding", "reader", "-n", "shop", "--role=reader",
            "--serviceaccount=shop:reader"}}) {
    const auto made = plane_.MustKubectl(command);
    ASSERT_TRUE(made.ok()) << made.status();
  }
  const std::string reader = Login("shop", "reader");
  EXPECT_THAT(GetAs(reader, kMetricPath), HasSubstr(R"("value":"23")"));
  EXPECT_THAT(GetAs(reader,
                    "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/s0-redis-orders"
                    "?labelSelector=scaledobject.keda.sh%2Fname%3Dorders"),
              HasSubstr("Forbidden"));
}

// Case B066: discovery through the aggregator names the one placeholder.
TEST_F(MetricsApiClusterTest, DiscoveryThroughTheAggregatorIsValid) {
  const auto resources =
      plane_.MustKubectl({"api-resources", "--api-group=external.metrics.k8s.io", "--no-headers"});
  ASSERT_TRUE(resources.ok()) << resources.status();
  EXPECT_THAT(*resources, AllOf(HasSubstr("externalmetrics"), HasSubstr("true"),
                                HasSubstr("ExternalMetricValueList")));
  EXPECT_THAT(std::vector<std::string>(absl::StrSplit(*resources, '\n', absl::SkipEmpty())),
              SizeIs(1));
}

}  // namespace
}  // namespace outrigger::controller::adapter
