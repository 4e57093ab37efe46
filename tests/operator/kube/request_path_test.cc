// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/request_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace outrigger::controller::kube {
namespace {

TEST(RequestPathTest, NamesObjectsAndCollections) {
  EXPECT_EQ(*RequestPath(Pods(), "ns", "", ""), "/api/v1/namespaces/ns/pods");
  EXPECT_EQ(*RequestPath(Pods(), "", "", ""), "/api/v1/pods");
  EXPECT_EQ(*RequestPath(Deployments(), "ns", "web", "scale"),
            "/apis/apps/v1/namespaces/ns/deployments/web/scale");
  EXPECT_EQ(*RequestPath(ApiServices(), "", "v1beta1.external.metrics.k8s.io", ""),
            "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.external.metrics.k8s.io");
}

TEST(RequestPathTest, EncodesWhatIsNoPlainName) {
  EXPECT_EQ(*RequestPath(Pods(), "ns", "system:a b", ""),
            "/api/v1/namespaces/ns/pods/system%3Aa%20b");
}

// A name comes from a custom resource: it must not reach another object.
TEST(RequestPathTest, RefusesNamesThatLeaveTheirSegment) {
  for (const char* name : {"..", ".", "a/b", "../secrets/x", "a%2fb", "a?watch=1", "a#b"}) {
    EXPECT_EQ(RequestPath(Secrets(), "ns", name, "").status().code(),
              absl::StatusCode::kInvalidArgument)
        << name;
    EXPECT_EQ(RequestPath(Secrets(), name, "x", "").status().code(),
              absl::StatusCode::kInvalidArgument)
        << name;
  }
  EXPECT_THAT(std::string(RequestPath(Secrets(), "ns", "a/b", "").status().message()),
              testing::HasSubstr("name: want a name without \"/\""));
}

// So do group and version, in spec.scaleTargetRef.apiVersion.
TEST(RequestPathTest, RefusesAGroupOrVersionThatLeavesItsSegment) {
  for (const char* part : {"..", "a/b", "a%2fb", "v1?watch=1", "v1#b"}) {
    EXPECT_EQ(RequestPath({part, "v1", "gadgets"}, "ns", "x", "").status().code(),
              absl::StatusCode::kInvalidArgument)
        << part;
    EXPECT_EQ(GroupVersionPath("apps", part).status().code(), absl::StatusCode::kInvalidArgument)
        << part;
  }
  EXPECT_EQ(*GroupVersionPath("apps", "v1"), "/apis/apps/v1");
  EXPECT_EQ(*GroupVersionPath("", "v1"), "/api/v1");
}

TEST(QueryStringTest, SkipsEmptyValuesAndEncodes) {
  EXPECT_EQ(QueryString({}), "");
  EXPECT_EQ(QueryString({{"a", ""}}), "");
  EXPECT_EQ(QueryString({{"a", "1"}, {"b", ""}, {"labelSelector", "x in (a,b),y=z&c"}}),
            "?a=1&labelSelector=x%20in%20%28a%2Cb%29%2Cy%3Dz%26c");
}

}  // namespace
}  // namespace outrigger::controller::kube
