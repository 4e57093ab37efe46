// SPDX-License-Identifier: Apache-2.0
#include "operator/adapter/plain_routes.h"

#include <gtest/gtest.h>

#include "tests/operator/kube/task_runner.h"

namespace outrigger::controller::adapter {
namespace {

HttpResponse Ask(const HttpHandler& handler, const std::string& target,
                 const std::string& method = "GET") {
  auto request = std::make_shared<HttpRequest>();
  request->method = method;
  request->target = target;
  tests::TaskRunner runner;
  return runner.Run(handler(request));
}

struct Case {
  const char* name;
  const char* target;
  absl::Status certificates;
  int want;
  const char* body;
};
class ProbeRoutesTest : public testing::TestWithParam<Case> {};

TEST_P(ProbeRoutesTest, AnswersAsKubernetesServersDo) {
  const HttpHandler handler =
      ProbeRoutes({{"informers", [] { return absl::OkStatus(); }},
                   {"certificates", [] { return GetParam().certificates; }}});
  const HttpResponse response = Ask(handler, GetParam().target);
  EXPECT_EQ(response.code, GetParam().want);
  EXPECT_EQ(response.body, GetParam().body);
}

const absl::Status kExpired = absl::FailedPreconditionError("the certificate has expired");

INSTANTIATE_TEST_SUITE_P(
    Targets, ProbeRoutesTest,
    testing::ValuesIn<Case>({
        {"Ready", "/readyz", absl::OkStatus(), 200, "ok"},
        {"ReadyVerbose", "/readyz?verbose", absl::OkStatus(), 200,
         "[+]informers ok\n[+]certificates ok\nreadyz check passed\n"},
        {"ReadyVerboseWithValue", "/readyz?a=b&verbose=1", absl::OkStatus(), 200,
         "[+]informers ok\n[+]certificates ok\nreadyz check passed\n"},
        {"NotReadySaysWhyUnasked", "/readyz", kExpired, 500,
         "[+]informers ok\n[-]certificates failed: the certificate has expired\n"
         "readyz check failed\n"},
        {"OneGoodCheck", "/readyz/informers", kExpired, 200, "ok"},
        {"OneBadCheck", "/readyz/certificates", kExpired, 500,
         "[-]certificates failed: the certificate has expired\n"},
        {"UnknownCheck", "/readyz/plugins", absl::OkStatus(), 404,
         "the server has no path /readyz/plugins\n"},
        {"AliveThoughNotReady", "/healthz", kExpired, 200, "ok"},
        {"Livez", "/livez", kExpired, 200, "ok"},
        {"AliveVerbose", "/healthz?verbose", absl::OkStatus(), 200,
         "[+]ping ok\nhealthz check passed\n"},
        {"OtherPath", "/metrics", absl::OkStatus(), 404, "the server has no path /metrics\n"},
    }),
    [](const testing::TestParamInfo<Case>& info) { return std::string(info.param.name); });

TEST(PlainRoutesTest, OnlyReadingIsAllowed) {
  EXPECT_EQ(Ask(ProbeRoutes({}), "/healthz", "POST").code, 405);
  EXPECT_EQ(Ask(ProbeRoutes({}), "/readyz", "HEAD").code, 200);
  EXPECT_EQ(Ask(MetricsRoutes([] { return "x"; }), "/metrics", "DELETE").code, 405);
}

TEST(PlainRoutesTest, MetricsAreRenderedAtEachRequest) {
  int renderings = 0;
  const HttpHandler handler = MetricsRoutes([&] { return absl::StrCat("m ", ++renderings, "\n"); });
  const HttpResponse response = Ask(handler, "/metrics?name=x");
  EXPECT_EQ(response.code, 200);
  EXPECT_EQ(response.content_type, "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_EQ(response.body, "m 1\n");
  EXPECT_EQ(Ask(handler, "/metrics").body, "m 2\n");
  EXPECT_EQ(Ask(handler, "/").code, 404);
}

}  // namespace
}  // namespace outrigger::controller::adapter
