// SPDX-License-Identifier: Apache-2.0
#include "operator/adapter/metric_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace outrigger::controller::adapter {
namespace {

using testing::HasSubstr;

constexpr char kRead[] = "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/s0-redis-orders";

struct Good {
  const char* name;
  std::string target;
  const char* metric;
  const char* scaled_object;
  const char* selector;
};

class ParseMetricReadTest : public testing::TestWithParam<Good> {};

TEST_P(ParseMetricReadTest, NamesTheMetricAndItsScaledObject) {
  const absl::StatusOr<MetricRequest> request = ParseMetricRequest(GetParam().target);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->route, Route::kMetric);
  EXPECT_EQ(request->read.namespace_name, "shop");
  EXPECT_EQ(request->read.metric_name, GetParam().metric);
  EXPECT_EQ(request->read.scaled_object, GetParam().scaled_object);
  EXPECT_EQ(request->read.selector, GetParam().selector);
}

INSTANTIATE_TEST_SUITE_P(
    Targets, ParseMetricReadTest,
    testing::ValuesIn<Good>({
        {"AsTheHpaControllerAsks",
         absl::StrCat(kRead, "?labelSelector=scaledobject.keda.sh%2Fname%3Dorders"),
         "s0-redis-orders", "orders", ""},
        {"Unencoded", absl::StrCat(kRead, "?labelSelector=scaledobject.keda.sh/name=orders"),
         "s0-redis-orders", "orders", ""},
        {"MoreLabels",
         absl::StrCat(kRead, "?labelSelector=b%3D2%2Cscaledobject.keda.sh%2Fname%3Dorders%2Ca%3D1"),
         "s0-redis-orders", "orders", "a=1,b=2"},
        {"OtherParameters",
         absl::StrCat(kRead, "?timeout=5s&labelSelector=scaledobject.keda.sh/name=orders&x"),
         "s0-redis-orders", "orders", ""},
        {"FirstSelectorCounts",
         absl::StrCat(kRead, "?labelSelector=scaledobject.keda.sh/name=orders&labelSelector=a=b"),
         "s0-redis-orders", "orders", ""},
        {"EncodedMetricName",
         "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/s0%2Dq+1?labelSelector="
         "scaledobject.keda.sh/name=orders",
         "s0-q+1", "orders", ""},
        {"TrailingSlash", absl::StrCat(kRead, "/?labelSelector=scaledobject.keda.sh/name=orders"),
         "s0-redis-orders", "orders", ""},
    }),
    [](const testing::TestParamInfo<Good>& info) { return std::string(info.param.name); });

struct Bad {
  const char* name;
  std::string target;
  absl::StatusCode want;
  const char* message;
};

class ParseBadMetricRequestTest : public testing::TestWithParam<Bad> {};

TEST_P(ParseBadMetricRequestTest, SaysWhatWasWantedAndWhatCame) {
  const absl::Status status = ParseMetricRequest(GetParam().target).status();
  EXPECT_EQ(status.code(), GetParam().want) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().message));
}

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kNotFound = absl::StatusCode::kNotFound;

INSTANTIATE_TEST_SUITE_P(
    Targets, ParseBadMetricRequestTest,
    testing::ValuesIn<Bad>({
        {"Empty", "", kNotFound, "the server has no path"},
        {"OtherPath", "/metrics", kNotFound, "the server has no path /metrics"},
        {"OtherVersion", "/apis/external.metrics.k8s.io/v1/namespaces/shop/m", kNotFound,
         "the server has no path"},
        {"ControlCharacters", "/a\x01\n", kNotFound, "/a\\x01"},
        {"NoMetric", "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop", kNotFound,
         "want /apis/external.metrics.k8s.io/v1beta1/namespaces/{namespace}/{metric}, got "
         "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop"},
        {"EmptyNamespace", "/apis/external.metrics.k8s.io/v1beta1/namespaces//m", kNotFound,
         "{namespace}/{metric}"},
        {"TooManySegments", absl::StrCat(kRead, "/scale"), kNotFound, "{namespace}/{metric}"},
        {"NoSelector", kRead, kInvalid, "labelSelector: want scaledobject.keda.sh/name="},
        {"EmptyName", absl::StrCat(kRead, "?labelSelector=scaledobject.keda.sh/name="), kInvalid,
         "labelSelector: want scaledobject.keda.sh/name="},
        {"OtherLabelOnly", absl::StrCat(kRead, "?labelSelector=app%3Dweb"), kInvalid,
         "got \"app=web\""},
        {"SetBased", absl::StrCat(kRead, "?labelSelector=scaledobject.keda.sh%2Fname%20in%20(a)"),
         kInvalid, "labelSelector"},
        {"NotEqual", absl::StrCat(kRead, "?labelSelector=scaledobject.keda.sh/name!=a"), kInvalid,
         "labelSelector"},
        {"BrokenEncoding", absl::StrCat(kRead, "?labelSelector=a%3"), kInvalid,
         "labelSelector: want two hex digits after '%', got \"%3\""},
        {"BrokenEncodingInPath",
         "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/m%zz?labelSelector=a=b", kInvalid,
         "got \"%zz\""},
        {"TooLong", absl::StrCat(kRead, "?labelSelector=", std::string(9000, 'a')), kInvalid,
         "want a request target of at most 8192 bytes, got 90"},
    }),
    [](const testing::TestParamInfo<Bad>& info) { return std::string(info.param.name); });

TEST(ParseMetricRequestTest, KnowsThePathsOfDiscoveryAndHealth) {
  const std::pair<const char*, Route> paths[] = {
      {"/apis", Route::kApis},
      {"/apis/external.metrics.k8s.io", Route::kGroup},
      {"/apis/external.metrics.k8s.io/v1beta1", Route::kVersion},
      {"/apis/external.metrics.k8s.io/v1beta1/", Route::kVersion},
      {"/version", Route::kServerVersion},
      {"/openapi/v2?timeout=32s", Route::kOpenApiV2},
      {"/openapi/v3", Route::kOpenApiV3},
      {"/healthz", Route::kHealth},
      {"/readyz?verbose", Route::kHealth},
      {"/livez", Route::kHealth}};
  for (const auto& [path, route] : paths) {
    const absl::StatusOr<MetricRequest> request = ParseMetricRequest(path);
    ASSERT_TRUE(request.ok()) << path << ": " << request.status();
    EXPECT_EQ(request->route, route) << path;
  }
}

}  // namespace
}  // namespace outrigger::controller::adapter
