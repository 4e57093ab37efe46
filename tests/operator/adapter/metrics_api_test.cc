// SPDX-License-Identifier: Apache-2.0
#include "operator/adapter/metrics_api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <thread>

#include "host/base/real_clock.h"
#include "host/client/scaler_service.h"
#include "tests/operator/adapter/http_client.h"
#include "tests/operator/adapter/review_api.h"
#include "tests/operator/adapter/scripted_source.h"
#include "tests/operator/adapter/threads.h"
#include "tests/support/certificates.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wait_for.h"

namespace outrigger::controller::adapter {
namespace {

namespace json = boost::json;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using tests::CertificateAuthority;
using tests::HttpAnswer;
using tests::HttpClient;
using tests::KeyPair;

constexpr char kMetricPath[] =
    "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/s0-redis-orders"
    "?labelSelector=scaledobject.keda.sh%2Fname%3Dorders";
constexpr char kHpaHeaders[] =
    "X-Remote-User: system:serviceaccount:kube-system:horizontal-pod-autoscaler\r\n"
    "X-Remote-Group: system:serviceaccounts\r\nX-Remote-Group: system:authenticated\r\n";

class CodeCounter : public runtime::MetricsSink {
 public:
  void MetricRead(int http_code, absl::Duration) override {
    host::MutexLock lock(&mutex_);
    codes_.push_back(http_code);
  }
  std::vector<int> codes() const {
    host::MutexLock lock(&mutex_);
    return codes_;
  }

 private:
  mutable host::Mutex mutex_;
  std::vector<int> codes_ ABSL_GUARDED_BY(mutex_);
};

// The metrics API behind its HTTPS server, with the two authorities of a cluster: one for the front
// proxy, one for clients who come directly.
class MetricsApiTest : public testing::Test {
 protected:
  MetricsApiTest()
      : proxy_authority_(*CertificateAuthority::Create("front-proxy-ca")),
        client_authority_(*CertificateAuthority::Create("cluster-ca")),
        stranger_(*CertificateAuthority::Create("stranger-ca")),
        proxy_(*proxy_authority_->Issue({.common_name = "front-proxy-client"})) {
    api_.SetConfigMap(ConfigMap());
    loading_ = boost::asio::co_spawn(core_, loader_.Run(), boost::asio::use_future);
    EXPECT_TRUE(tests::WaitFor([&] { return loader_.Current() != nullptr; }, absl::Seconds(10),
                               "the authentication configuration", [] { return "nothing"; })
                    .ok());
    const KeyPair serving = *stranger_->Issue({.common_name = "outrigger-metrics.outrigger.svc"});
    server_ = std::make_unique<HttpServer>(
        threads_.executor(), clock_, host::Logger(host::MakeNullSink()),
        [this](std::shared_ptr<const HttpRequest> request) {
          return metrics_api_.Handle(std::move(request));
        },
        HttpServer::Options{.name = "metrics API",
                            .address = "127.0.0.1",
                            .cert_file = dir_.Write("tls.crt", serving.certificate),
                            .key_file = dir_.Write("tls.key", serving.key)});
    const absl::Status started = server_->Start();
    EXPECT_TRUE(started.ok()) << started;
  }
  ~MetricsApiTest() override {
    threads_.Run(core_, server_->Stop());
    loader_.Stop();
    loading_.get();
  }

  json::value ConfigMap() const {
    return json::object{{"data",
                         {{"client-ca-file", client_authority_->certificate()},
                          {"requestheader-client-ca-file", proxy_authority_->certificate()},
                          {"requestheader-allowed-names", R"(["front-proxy-client"])"},
                          {"requestheader-username-headers", R"(["X-Remote-User"])"},
                          {"requestheader-uid-headers", R"(["X-Remote-Uid"])"},
                          {"requestheader-group-headers", R"(["X-Remote-Group"])"},
                          {"requestheader-extra-headers-prefix", R"(["X-Remote-Extra-"])"}}}};
  }

  std::unique_ptr<HttpClient> Connect(const KeyPair& identity) {
    absl::StatusOr<std::unique_ptr<HttpClient>> client =
        HttpClient::ConnectTls(server_->port(), identity);
    EXPECT_TRUE(client.ok()) << client.status();
    return *std::move(client);
  }

  HttpAnswer Get(const KeyPair& identity, absl::string_view target,
                 absl::string_view headers = "") {
    absl::StatusOr<HttpAnswer> answer = Connect(identity)->Get(target, headers);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? *std::move(answer) : HttpAnswer();
  }
  // As the aggregator asks for the HPA controller.
  HttpAnswer GetAsHpa(absl::string_view target) { return Get(proxy_, target, kHpaHeaders); }

  // Every error is a metav1.Status that says the same as its HTTP code.
  static std::string MessageOf(const HttpAnswer& answer, absl::string_view reason) {
    EXPECT_EQ(answer.headers.at("content-type"), "application/json");
    const json::value status = json::parse(answer.body);
    EXPECT_EQ(status.at("kind"), "Status");
    EXPECT_EQ(status.at("apiVersion"), "v1");
    EXPECT_EQ(status.at("status"), "Failure");
    EXPECT_EQ(status.at("code"), answer.code);
    EXPECT_EQ(std::string(status.at("reason").get_string()), reason);
    return std::string(status.at("message").get_string());
  }

  const tests::TempDir dir_;
  const std::unique_ptr<CertificateAuthority> proxy_authority_;
  const std::unique_ptr<CertificateAuthority> client_authority_;
  const std::unique_ptr<CertificateAuthority> stranger_;
  const KeyPair proxy_;
  host::RealClock clock_;
  tests::Threads threads_;
  const host::Executor core_ = threads_.strand();
  ReviewApi api_;
  ScriptedSource source_;
  CodeCounter counter_;
  RequestHeaderConfigLoader loader_{clock_, api_, host::Logger(host::MakeNullSink())};
  Authorizer authorizer_{clock_, api_, {}};
  MetricsApi metrics_api_{core_, clock_, loader_, authorizer_, source_, counter_, {}};
  std::future<void> loading_;
  std::unique_ptr<HttpServer> server_;
};

// Shows R23.
TEST_F(MetricsApiTest, TheFrontProxyReadsAValueForTheHpaController) {
  const HttpAnswer answer = GetAsHpa(kMetricPath);
  EXPECT_EQ(answer.code, 200) << answer.body;
  EXPECT_EQ(answer.headers.at("content-type"), "application/json");
  const json::value list = json::parse(answer.body);
  EXPECT_EQ(list.at("kind"), "ExternalMetricValueList");
  EXPECT_EQ(list.at("apiVersion"), "external.metrics.k8s.io/v1beta1");
  ASSERT_EQ(list.at("items").as_array().size(), 1u);
  EXPECT_EQ(list.at("items").at(0).at("metricName"), "s0-redis-orders");
  EXPECT_EQ(list.at("items").at(0).at("value"), "23");
  EXPECT_TRUE(list.at("items").at(0).as_object().contains("timestamp"));
  ASSERT_THAT(source_.reads(), SizeIs(1));
  EXPECT_EQ(source_.reads()[0].namespace_name, "shop");
  EXPECT_EQ(source_.reads()[0].scaled_object, "orders");
  EXPECT_EQ(source_.reads()[0].metric_name, "s0-redis-orders");
  EXPECT_THAT(
      api_.reviews(),
      ElementsAre(AllOf(
          HasSubstr(R"("user":"system:serviceaccount:kube-system:horizontal-pod-autoscaler")"),
          HasSubstr(R"("groups":["system:serviceaccounts","system:authenticated"])"))));
  EXPECT_THAT(counter_.codes(), ElementsAre(200));
}

TEST_F(MetricsApiTest, TheProxysUserIsPassedOnWhole) {
  EXPECT_EQ(Get(proxy_, kMetricPath,
                "x-remote-user: \r\nX-REMOTE-USER: jane\r\nX-Remote-User: ignored\r\n"
                "X-Remote-Uid: u-1\r\nX-Remote-Group: dev\r\n"
                "X-Remote-Extra-Example.Com%2fScope: a\r\nX-Remote-Extra-Example.com%2FScope: b\r\n"
                "X-Remote-Extra-Bad%zz: c\r\n")
                .code,
            200);
  EXPECT_THAT(
      api_.reviews(),
      ElementsAre(HasSubstr(R"({"user":"jane","uid":"u-1","groups":["dev","system:authenticated"],)"
                            R"("extra":{"bad%zz":["c"],"example.com/scope":["a","b"]})")));
}

TEST_F(MetricsApiTest, ACertificateOfTheClusterSpeaksForItself) {
  const KeyPair jane =
      *client_authority_->Issue({.common_name = "jane", .organizations = {"dev", "ops"}});
  // Headers mean nothing without the proxy's certificate.
  const HttpAnswer answer =
      Get(jane, kMetricPath, "X-Remote-User: admin\r\nX-Remote-Group: system:masters\r\n");
  EXPECT_EQ(answer.code, 200) << answer.body;
  EXPECT_THAT(api_.reviews(),
              ElementsAre(HasSubstr(
                  R"({"user":"jane","groups":["dev","ops","system:authenticated"],"resource)")));
}

TEST_F(MetricsApiTest, WhoMayNotIsForbiddenAndNothingIsRead) {
  api_.SetJudge([](const json::value&) { return false; });
  const HttpAnswer answer = GetAsHpa(kMetricPath);
  EXPECT_EQ(answer.code, 403);
  EXPECT_EQ(MessageOf(answer, "Forbidden"),
            "user \"system:serviceaccount:kube-system:horizontal-pod-autoscaler\" may not list "
            "resource \"s0-redis-orders\" in API group \"external.metrics.k8s.io\" in the "
            "namespace \"shop\"");
  EXPECT_THAT(source_.reads(), IsEmpty());
}

// Case B153: a right that we lack is told as such, never as the user's.
TEST_F(MetricsApiTest, ARightThatWeLackIsNotTheUsersFault) {
  api_.SetJudge([](const json::value&) {
    return absl::PermissionDeniedError("outrigger-operator cannot create subjectaccessreviews");
  });
  const HttpAnswer answer = GetAsHpa(kMetricPath);
  EXPECT_EQ(answer.code, 500);
  EXPECT_THAT(MessageOf(answer, "InternalError"), HasSubstr("create subjectaccessreviews"));
  EXPECT_THAT(source_.reads(), IsEmpty());
}

TEST_F(MetricsApiTest, AnUnreachableApiServerIsServiceUnavailable) {
  api_.SetJudge([](const json::value&) { return absl::UnavailableError("connection refused"); });
  const HttpAnswer answer = GetAsHpa(kMetricPath);
  EXPECT_EQ(answer.code, 503);
  EXPECT_EQ(answer.headers.at("connection"), "close");
  EXPECT_THAT(source_.reads(), IsEmpty());
}

// Who is nobody: each with its 401, its message, no review and no read.
TEST_F(MetricsApiTest, NobodyIsUnauthorized) {
  struct Stranger {
    KeyPair identity;
    const char* headers;
    const char* message;
  };
  const char* forged =
      "X-Remote-User: admin\r\nX-Remote-Group: system:masters\r\nX-Remote-Uid: 1\r\n";
  const std::vector<Stranger> strangers = {
      {{}, "", "want a client certificate, got none"},
      {{}, forged, "want a client certificate, got none"},
      {{},
       "Authorization: Bearer secret-token\r\n",
       "bearer tokens are not supported; come through the API server, or with a client "
       "certificate"},
      {*stranger_->Issue({.common_name = "front-proxy-client"}), forged,
       "the client certificate of \"front-proxy-client\" is not signed by a CA of this cluster, or "
       "not in force"},
      {*proxy_authority_->IssueValid({.common_name = "front-proxy-client"}, -7200, -3600), forged,
       "the client certificate of \"front-proxy-client\" is not signed by a CA of this cluster, or "
       "not in force"},
      {*proxy_authority_->IssueValid({.common_name = "front-proxy-client"}, 3600, 7200), forged,
       "the client certificate of \"front-proxy-client\" is not signed by a CA of this cluster, or "
       "not in force"},
      {*client_authority_->IssueValid({.common_name = "jane"}, -7200, -3600), "",
       "the client certificate of \"jane\" is not signed by a CA of this cluster, or not in force"},
      {*proxy_authority_->Issue({.common_name = "kubelet"}), forged,
       "a front proxy named \"kubelet\" is not allowed (requestheader-allowed-names)"},
      {*client_authority_->Issue({.common_name = ""}), forged,
       "the client certificate of \"\" is not signed by a CA of this cluster, or not in force"},
      {proxy_, "", "the front proxy names no user: want a header X-Remote-User"},
      {proxy_, "X-Remote-Group: system:masters\r\n",
       "the front proxy names no user: want a header X-Remote-User"},
  };
  for (const Stranger& stranger : strangers) {
    SCOPED_TRACE(absl::StrCat(stranger.message, " / ", stranger.headers));
    const HttpAnswer answer = Get(stranger.identity, kMetricPath, stranger.headers);
    EXPECT_EQ(answer.code, 401);
    EXPECT_EQ(MessageOf(answer, "Unauthorized"), stranger.message);
    EXPECT_THAT(answer.body, Not(HasSubstr("secret-token")));
    EXPECT_EQ(Get(stranger.identity, "/apis", stranger.headers).code, 401);
  }
  EXPECT_THAT(api_.reviews(), IsEmpty());
  EXPECT_THAT(source_.reads(), IsEmpty());
}

TEST_F(MetricsApiTest, HealthNeedsNoIdentity) {
  for (const char* path : {"/healthz", "/readyz", "/livez"}) EXPECT_EQ(Get({}, path).body, "ok");
}

struct Wrong {
  const char* name;
  const char* request;
  int code;
  const char* reason;
  const char* message;
};
class WrongRequestTest : public MetricsApiTest, public testing::WithParamInterface<Wrong> {};

TEST_P(WrongRequestTest, IsAStatusThatSaysWhatWasWanted) {
  const std::unique_ptr<HttpClient> client = Connect(proxy_);
  ASSERT_TRUE(
      client->Send(absl::StrCat(GetParam().request, " HTTP/1.1\r\n", kHpaHeaders, "\r\n")).ok());
  const absl::StatusOr<HttpAnswer> answer = client->Receive();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->code, GetParam().code);
  EXPECT_THAT(MessageOf(*answer, GetParam().reason), HasSubstr(GetParam().message));
  EXPECT_THAT(source_.reads(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    Requests, WrongRequestTest,
    testing::ValuesIn<Wrong>({
        {"Path", "GET /api/v1/pods", 404, "NotFound", "the server has no path /api/v1/pods"},
        {"PathOfAnotherVersion", "GET /apis/external.metrics.k8s.io/v1/namespaces/a/b", 404,
         "NotFound", "the server has no path"},
        {"MetricOfNoNamespace", "GET /apis/external.metrics.k8s.io/v1beta1/namespaces/shop", 404,
         "NotFound", "{namespace}/{metric}"},
        {"NoSelector", "GET /apis/external.metrics.k8s.io/v1beta1/namespaces/shop/s0-redis-orders",
         400, "BadRequest",
         "labelSelector: want scaledobject.keda.sh/name=<name of a ScaledObject>, got \"\""},
        {"SetBasedSelector",
         "GET /apis/external.metrics.k8s.io/v1beta1/namespaces/shop/s0-redis-orders"
         "?labelSelector=scaledobject.keda.sh%2Fname%20in%20(a)",
         400, "BadRequest", "labelSelector"},
        {"Post",
         "POST /apis/external.metrics.k8s.io/v1beta1/namespaces/shop/s0-redis-orders"
         "?labelSelector=scaledobject.keda.sh%2Fname%3Dorders",
         405, "MethodNotAllowed", "want GET, got POST"},
        {"DeleteWithoutSelector",
         "DELETE /apis/external.metrics.k8s.io/v1beta1/namespaces/shop/s0-redis-orders", 405,
         "MethodNotAllowed", "want GET, got DELETE"},
    }),
    [](const testing::TestParamInfo<Wrong>& info) { return std::string(info.param.name); });

// Case B066: discovery names one placeholder and nothing that changes.
TEST_F(MetricsApiTest, DiscoveryNamesOnePlaceholder) {
  EXPECT_EQ(GetAsHpa("/apis/external.metrics.k8s.io/v1beta1").body,
            R"({"kind":"APIResourceList","apiVersion":"v1",)"
            R"("groupVersion":"external.metrics.k8s.io/v1beta1","resources":[)"
            R"({"name":"externalmetrics","singularName":"","namespaced":true,)"
            R"("kind":"ExternalMetricValueList","verbs":["get"]}]})");
  EXPECT_EQ(GetAsHpa("/apis/external.metrics.k8s.io").body,
            R"({"kind":"APIGroup","apiVersion":"v1","name":"external.metrics.k8s.io",)"
            R"("versions":[{"groupVersion":"external.metrics.k8s.io/v1beta1",)"
            R"("version":"v1beta1"}],"preferredVersion":{"groupVersion":)"
            R"("external.metrics.k8s.io/v1beta1","version":"v1beta1"}})");
  EXPECT_EQ(GetAsHpa("/apis").body,
            R"({"kind":"APIGroupList","apiVersion":"v1","groups":[)"
            R"({"kind":"APIGroup","apiVersion":"v1","name":"external.metrics.k8s.io",)"
            R"("versions":[{"groupVersion":"external.metrics.k8s.io/v1beta1",)"
            R"("version":"v1beta1"}],"preferredVersion":{"groupVersion":)"
            R"("external.metrics.k8s.io/v1beta1","version":"v1beta1"}}]})");
  EXPECT_THAT(GetAsHpa("/version").body, HasSubstr("\"gitVersion\""));
  EXPECT_EQ(GetAsHpa("/openapi/v3").body, R"({"paths":{}})");
  EXPECT_THAT(GetAsHpa("/openapi/v2").body, HasSubstr(R"("swagger":"2.0")"));
  EXPECT_THAT(api_.reviews(), IsEmpty()) << "discovery is for everybody who is known";
  EXPECT_THAT(counter_.codes(), IsEmpty());
}

absl::Status Unreachable() {
  absl::Status status = absl::UnavailableError("plugin redis: not connected since 10:00:00");
  host::MarkPluginUnreachable(status);
  return status;
}

struct ReadFailure {
  const char* name;
  absl::Status status;
  int code;
  const char* reason;
};
class ReadFailureTest : public MetricsApiTest, public testing::WithParamInterface<ReadFailure> {};

TEST_P(ReadFailureTest, HasACodeOfItsOwnAndNeverAValue) {
  EXPECT_EQ(HttpCodeOfRead(GetParam().status), GetParam().code);
  source_.Set(GetParam().status);
  const HttpAnswer answer = GetAsHpa(kMetricPath);
  EXPECT_EQ(answer.code, GetParam().code);
  EXPECT_EQ(MessageOf(answer, GetParam().reason), GetParam().status.message());
  EXPECT_EQ(answer.headers.contains("connection"), answer.code == 503)
      << "503 sends the aggregator to another replica";
  EXPECT_EQ(answer.headers.contains("location"), false);
  EXPECT_THAT(counter_.codes(), ElementsAre(GetParam().code));
}

INSTANTIATE_TEST_SUITE_P(
    Failures, ReadFailureTest,
    testing::ValuesIn<ReadFailure>({
        {"NoSuchMetric",
         polling::NoSuchMetricError("ScaledObject shop/orders has no metric \"s0-x\""), 404,
         "NotFound"},
        {"NotSynced", polling::NotSyncedError(), 503, "ServiceUnavailable"},
        {"PluginUnreachable", Unreachable(), 503, "ServiceUnavailable"},
        {"Deadline", absl::DeadlineExceededError("plugin redis: no answer in 3s"), 504, "Timeout"},
        // What the scaler itself says, whatever its code, is its own error.
        {"ScalersNotFound", absl::NotFoundError("plugin redis: no such stream"), 500,
         "InternalError"},
        {"ScalersPrecondition", absl::FailedPreconditionError("replica is not synced"), 500,
         "InternalError"},
        {"ScalersUnavailable", absl::UnavailableError("redis: connection refused"), 500,
         "InternalError"},
        {"ScalersUnauthenticated", absl::UnauthenticatedError("AUTH was refused"), 500,
         "InternalError"},
        {"ScalersPermission", absl::PermissionDeniedError("NOPERM"), 500, "InternalError"},
        {"Misconfigured", absl::InvalidArgumentError("listLength: want a number > 0"), 500,
         "InternalError"},
    }),
    [](const testing::TestParamInfo<ReadFailure>& info) { return std::string(info.param.name); });

TEST_F(MetricsApiTest, ManyReadsOnManyConnectionsAreOneReview) {
  std::atomic<int> good = 0;
  {
    std::vector<std::jthread> clients;
    for (int i = 0; i < 16; ++i) {
      clients.emplace_back([&] {
        const std::unique_ptr<HttpClient> client = Connect(proxy_);
        for (int j = 0; j < 25; ++j) {
          const absl::StatusOr<HttpAnswer> answer = client->Get(kMetricPath, kHpaHeaders);
          if (answer.ok() && answer->code == 200) ++good;
        }
      });
    }
  }
  EXPECT_EQ(good, 16 * 25);
  EXPECT_THAT(api_.reviews(), SizeIs(1));
  EXPECT_THAT(counter_.codes(), AllOf(SizeIs(16 * 25), Each(200)));
}

struct Printed {
  const char* name;
  double value;
  const char* want;
};
class PrintValueTest : public testing::TestWithParam<Printed> {};

TEST_P(PrintValueTest, IsAQuantityOfAtMostThreeDecimals) {
  std::vector<polling::MetricReading> readings(1);
  readings[0].value = GetParam().value;
  EXPECT_THAT(PrintMetricList(readings),
              HasSubstr(absl::StrCat("\"value\":\"", GetParam().want, "\"")));
}

INSTANTIATE_TEST_SUITE_P(Values, PrintValueTest,
                         testing::ValuesIn<Printed>({{"Zero", 0, "0"},
                                                     {"Small", 15, "15"},
                                                     {"Thousand", 1000, "1k"},
                                                     {"Fraction", 22.5, "22500m"},
                                                     {"Tenths", 0.1, "100m"},
                                                     {"Large", 9e15, "9P"},
                                                     {"Million", 2500000, "2500k"}}),
                         [](const testing::TestParamInfo<Printed>& info) {
                           return std::string(info.param.name);
                         });

TEST(PrintMetricListTest, IsExactlyWhatKubernetesExpects) {
  std::vector<polling::MetricReading> readings(2);
  readings[0] = {.metric_name = "s0-redis-orders",
                 .labels = {},
                 .value = 12.346,
                 .measured_at = absl::FromUnixMillis(1'700'000'000'900)};
  readings[1] = {.metric_name = "s0-redis-orders",
                 .labels = {{"queue", "b\"c"}},
                 .value = 3,
                 .measured_at = absl::FromUnixSeconds(1'700'000'001),
                 .window = absl::Minutes(1)};
  EXPECT_EQ(PrintMetricList(readings),
            R"({"kind":"ExternalMetricValueList","apiVersion":"external.metrics.k8s.io/v1beta1",)"
            R"("metadata":{},"items":[{"metricName":"s0-redis-orders","metricLabels":null,)"
            R"("timestamp":"2023-11-14T22:13:20Z","value":"12346m"},)"
            R"({"metricName":"s0-redis-orders","metricLabels":{"queue":"b\"c"},)"
            R"("timestamp":"2023-11-14T22:13:21Z","window":60,"value":"3"}]})");
  EXPECT_THAT(PrintMetricList({}), HasSubstr("\"items\":[]"));
}

}  // namespace
}  // namespace outrigger::controller::adapter
