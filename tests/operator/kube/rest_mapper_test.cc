// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/rest_mapper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/operator/kube/memory_cluster.h"

namespace outrigger::controller::kube {
namespace {

using testing::HasSubstr;
using Mapping = absl::StatusOr<RestMapper::Mapping>;

class RestMapperTest : public testing::Test {
 protected:
  Mapping Find(const std::string& group, const std::string& version, const std::string& kind) {
    return cluster_.Await(mapper_.Find(group, version, kind, cluster_.Soon()));
  }
  int Asked() const { return cluster_.faults.Count("get *"); }

  MemoryCluster cluster_;
  RestMapper mapper_{cluster_.clock, cluster_.api};
};

TEST_F(RestMapperTest, FindsPathScopeAndScaleOfAKind) {
  const Mapping deployment = Find("apps", "v1", "Deployment");
  ASSERT_TRUE(deployment.ok()) << deployment.status();
  EXPECT_EQ(deployment->resource, Deployments());
  EXPECT_TRUE(deployment->has_scale);
  const Mapping pod = Find("", "v1", "Pod");
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_EQ(pod->resource, Pods());
  EXPECT_FALSE(pod->has_scale);
  const Mapping service = Find("apiregistration.k8s.io", "v1", "APIService");
  ASSERT_TRUE(service.ok()) << service.status();
  EXPECT_FALSE(service->resource.namespaced);
}

TEST_F(RestMapperTest, SaysWhatIsNotThere) {
  Mapping found = Find("apps", "v1", "Gadget");
  EXPECT_EQ(found.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(found.status().message()), HasSubstr("apps/v1 has no kind Gadget"));
  found = Find("example.com", "v1", "Gadget");
  EXPECT_EQ(found.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(found.status().message()), HasSubstr("does not serve example.com/v1"));
}

TEST_F(RestMapperTest, AsksOnceForAGroupAndAgainForAKindThatMayHaveCome) {
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(Find("apps", "v1", "Deployment").ok());
  ASSERT_TRUE(Find("apps", "v1", "StatefulSet").ok());
  EXPECT_EQ(Asked(), 1);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(Find("apps", "v1", "Gadget").ok());
  EXPECT_EQ(Asked(), 1) << "what was heard a moment ago holds";
  cluster_.RunFor(absl::Seconds(6));
  EXPECT_FALSE(Find("apps", "v1", "Gadget").ok());
  EXPECT_EQ(Asked(), 2);
  cluster_.RunFor(absl::Minutes(11));
  ASSERT_TRUE(Find("apps", "v1", "Deployment").ok());
  EXPECT_EQ(Asked(), 3);
}

TEST_F(RestMapperTest, AsksAgainForAKindThatMayHaveGotAScale) {
  ASSERT_FALSE(Find("", "v1", "Pod")->has_scale);
  EXPECT_EQ(Asked(), 1);
  cluster_.RunFor(absl::Seconds(6));
  ASSERT_FALSE(Find("", "v1", "Pod")->has_scale);
  EXPECT_EQ(Asked(), 2);
}

TEST_F(RestMapperTest, WhatIsKnownOutlastsAnApiServerThatIsAway) {
  ASSERT_TRUE(Find("apps", "v1", "Deployment").ok());
  cluster_.RunFor(absl::Minutes(11));
  cluster_.faults.before_call = [](const MemoryCall&) -> FaultInjector::Fault {
    return {.error = absl::UnavailableError("no API server")};
  };
  EXPECT_TRUE(Find("apps", "v1", "Deployment").ok());
  EXPECT_EQ(Find("apps", "v1", "Gadget").status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Find("", "v1", "Pod").status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace outrigger::controller::kube
