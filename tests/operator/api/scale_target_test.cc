// SPDX-License-Identifier: Apache-2.0
#include "operator/api/scale_target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace outrigger::controller::api {
namespace {

struct Case {
  const char* name;
  const char* api_version;
  const char* kind;
  const char* text;
  const char* resource;
  const char* printed_api_version;
  bool builtin;
};
class ResolveTargetTest : public testing::TestWithParam<Case> {};

TEST_P(ResolveTargetTest, AppliesTheDefaults) {
  const absl::StatusOr<GroupVersionKindResource> target = ResolveTarget(
      {.name = "web", .api_version = GetParam().api_version, .kind = GetParam().kind});
  ASSERT_TRUE(target.ok()) << target.status();
  EXPECT_EQ(ScaleTargetKindText(*target), GetParam().text);
  EXPECT_EQ(target->resource, GetParam().resource);
  EXPECT_EQ(ApiVersionOf(*target), GetParam().printed_api_version);
  EXPECT_EQ(IsBuiltinTarget(*target), GetParam().builtin);
}

INSTANTIATE_TEST_SUITE_P(
    Refs, ResolveTargetTest,
    testing::ValuesIn<Case>({
        {"Default", "", "", "apps/v1.Deployment", "deployments", "apps/v1", true},
        {"StatefulSet", "apps/v1", "StatefulSet", "apps/v1.StatefulSet", "statefulsets", "apps/v1",
         true},
        {"KindOnly", "", "StatefulSet", "apps/v1.StatefulSet", "statefulsets", "apps/v1", true},
        {"ReplicaSet", "", "ReplicaSet", "apps/v1.ReplicaSet", "replicasets", "apps/v1", true},
        {"CoreGroup", "v1", "Pod", "/v1.Pod", "", "v1", false},
        {"Custom", "argoproj.io/v1alpha1", "Rollout", "argoproj.io/v1alpha1.Rollout", "",
         "argoproj.io/v1alpha1", false},
        {"OtherDeployment", "x.io/v1", "Deployment", "x.io/v1.Deployment", "deployments", "x.io/v1",
         false},
    }),
    [](const testing::TestParamInfo<Case>& info) { return std::string(info.param.name); });

TEST(ResolveTargetTest, RefusesAnApiVersionThatIsNone) {
  for (const char* text : {"/", "a/", "/v1", "a/b/c"}) {
    const absl::Status status = ResolveTarget({.name = "web", .api_version = text}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()),
                testing::HasSubstr("spec.scaleTargetRef.apiVersion: want"));
  }
}

}  // namespace
}  // namespace outrigger::controller::api
