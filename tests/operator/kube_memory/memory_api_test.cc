// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/memory_api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/operator/kube_memory/memory_fixture.h"

namespace outrigger::controller::kube {
namespace {

using testing::HasSubstr;

constexpr char kScaledObject[] = R"({"apiVersion":"keda.sh/v1alpha1","kind":"ScaledObject",
  "metadata":{"name":"so"},"spec":{"scaleTargetRef":{"name":"web"},"triggers":[]}})";
constexpr char kDeployment[] = R"({"apiVersion":"apps/v1","kind":"Deployment",
  "metadata":{"name":"web","labels":{"team":"a"}},
  "spec":{"selector":{"matchLabels":{"app":"web"},
                      "matchExpressions":[{"key":"tier","operator":"In","values":["y","x"]}]}}})";
constexpr char kConfigMap[] =
    R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"k":"v"}})";

TEST(MemoryApiTest, CreateFillsInWhatTheServerOwns) {
  MemoryFixture fixture;
  const auto created = fixture.Create(ScaledObjects(), kScaledObject);
  ASSERT_TRUE(created.ok()) << created.status();
  EXPECT_EQ(At(*created, "/metadata/namespace"), "ns");
  EXPECT_EQ(At(*created, "/metadata/generation"), "1");
  EXPECT_EQ(At(*created, "/metadata/creationTimestamp"), "2023-11-14T22:13:20Z");
  EXPECT_NE(At(*created, "/metadata/uid"), "");
  EXPECT_EQ(At(*created, "/metadata/resourceVersion"),
            absl::StrCat(fixture.api.resource_version()));
  EXPECT_EQ(*fixture.Get(ScaledObjects(), "so"), *created);
}

TEST(MemoryApiTest, GenerateNameMakesDifferentNames) {
  MemoryFixture fixture;
  const char* object = R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"a-"}})";
  const auto first = fixture.Create(ConfigMaps(), object);
  const auto second = fixture.Create(ConfigMaps(), object);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_THAT(At(*first, "/metadata/name"), testing::MatchesRegex("a-[b-z2-9]{5}"));
  EXPECT_NE(At(*first, "/metadata/name"), At(*second, "/metadata/name"));
}

TEST(MemoryApiTest, OldResourceVersionConflictsInTheServersWords) {
  MemoryFixture fixture;
  const auto created = fixture.Create(Deployments(), kDeployment);
  ASSERT_TRUE(fixture.Patch(Deployments(), "web", R"({"spec":{"replicas":3}})").ok());
  const auto updated = fixture.Update(Deployments(), "web", *created);
  EXPECT_EQ(CodeAndReason(updated.status()), "409 Conflict");
  EXPECT_EQ(updated.status().message(),
            "Operation cannot be fulfilled on deployments.apps \"web\": the object has been "
            "modified; please apply your changes to the latest version and try again");
}

TEST(MemoryApiTest, PatchWithAnotherUidOrVersionIsRefused) {
  MemoryFixture fixture;
  ASSERT_TRUE(fixture.Create(ScaledObjects(), kScaledObject).ok());
  const auto uid = fixture.Patch(ScaledObjects(), "so", R"({"metadata":{"uid":"other"}})");
  EXPECT_EQ(CodeAndReason(uid.status()), "422 Invalid");
  const auto version =
      fixture.Patch(ScaledObjects(), "so", R"({"metadata":{"resourceVersion":"1"}})");
  EXPECT_EQ(CodeAndReason(version.status()), "409 Conflict");
}

TEST(MemoryApiTest, WritesThatChangeNothingKeepTheVersion) {
  MemoryFixture fixture;
  const auto created = fixture.Create(Deployments(), kDeployment);
  const int64_t version = fixture.api.resource_version();
  EXPECT_TRUE(fixture.Update(Deployments(), "web", *created).ok());
  EXPECT_TRUE(fixture.Patch(Deployments(), "web", R"({"spec":{"replicas":1}})").ok());
  EXPECT_TRUE(fixture.Patch(Deployments(), "web", R"({"status":{"replicas":0}})", "status").ok());
  EXPECT_EQ(fixture.api.resource_version(), version);
}

TEST(MemoryApiTest, GenerationFollowsTheSpecOnly) {
  MemoryFixture fixture;
  ASSERT_TRUE(fixture.Create(ScaledObjects(), kScaledObject).ok());
  auto patched = fixture.Patch(ScaledObjects(), "so", R"({"status":{"hpaName":"x"}})", "status");
  EXPECT_EQ(At(*patched, "/metadata/generation"), "1");
  patched = fixture.Patch(ScaledObjects(), "so", R"({"metadata":{"annotations":{"a":"b"}}})");
  EXPECT_EQ(At(*patched, "/metadata/generation"), "1");
  patched = fixture.Patch(ScaledObjects(), "so", R"({"spec":{"maxReplicaCount":5}})");
  EXPECT_EQ(At(*patched, "/metadata/generation"), "2");
}

TEST(MemoryApiTest, MainResourceAndStatusIgnoreEachOther) {
  MemoryFixture fixture;
  ASSERT_TRUE(fixture.Create(ScaledObjects(), kScaledObject).ok());
  auto patched = fixture.Patch(ScaledObjects(), "so", R"({"status":{"hpaName":"x"}})");
  EXPECT_EQ(At(*patched, "/status"), "");
  patched = fixture.Patch(
      ScaledObjects(), "so",
      R"({"metadata":{"labels":{"a":"b"}},"spec":{"x":1},"status":{"hpaName":"x"}})", "status");
  EXPECT_EQ(At(*patched, "/status/hpaName"), "x");
  EXPECT_EQ(At(*patched, "/spec/x"), "");
  EXPECT_EQ(At(*patched, "/metadata/labels"), "");
}

TEST(MemoryApiTest, ScaleReadsAndWritesReplicas) {
  MemoryFixture fixture;
  ASSERT_TRUE(fixture.Create(Deployments(), kDeployment).ok());
  auto scale = fixture.Get(Deployments(), "web", "scale");
  ASSERT_TRUE(scale.ok()) << scale.status();
  EXPECT_EQ(At(*scale, "/kind"), "Scale");
  EXPECT_EQ(At(*scale, "/spec/replicas"), "1");
  EXPECT_EQ(At(*scale, "/status/selector"), "app=web,tier in (x,y)");
  scale->as_object()["spec"] = {{"replicas", 4}};
  EXPECT_TRUE(fixture.Update(Deployments(), "web", *scale, "scale").ok());
  EXPECT_EQ(CodeAndReason(fixture.Update(Deployments(), "web", *scale, "scale").status()),
            "409 Conflict");
  const auto patched = fixture.Patch(Deployments(), "web", R"({"spec":{"replicas":0}})", "scale");
  EXPECT_EQ(At(*patched, "/spec"), "{}");
  EXPECT_EQ(At(*fixture.Get(Deployments(), "web"), "/spec/replicas"), "0");
  EXPECT_EQ(
      CodeAndReason(
          fixture.Patch(Deployments(), "web", R"({"spec":{"replicas":-1}})", "scale").status()),
      "422 Invalid");
}

TEST(MemoryApiTest, FinalizersHoldAnObjectUntilTheLastIsRemoved) {
  MemoryFixture fixture;
  ASSERT_TRUE(fixture.Create(ScaledObjects(), kScaledObject).ok());
  ASSERT_TRUE(
      fixture.Patch(ScaledObjects(), "so", R"({"metadata":{"finalizers":["finalizer.keda.sh"]}})")
          .ok());
  EXPECT_TRUE(fixture.Delete(ScaledObjects(), "so").ok());
  const auto marked = fixture.Get(ScaledObjects(), "so");
  ASSERT_TRUE(marked.ok());
  EXPECT_NE(At(*marked, "/metadata/deletionTimestamp"), "");
  EXPECT_EQ(At(*marked, "/metadata/generation"), "2");
  EXPECT_EQ(CodeAndReason(fixture.Create(ScaledObjects(), kScaledObject).status()),
            "409 AlreadyExists");
  const auto added =
      fixture.Patch(ScaledObjects(), "so", R"({"metadata":{"finalizers":["a/b","c/d"]}})");
  EXPECT_THAT(std::string(added.status().message()), HasSubstr("no new finalizers can be added"));
  EXPECT_TRUE(fixture.Patch(ScaledObjects(), "so", R"({"metadata":{"finalizers":null}})").ok());
  EXPECT_EQ(CodeAndReason(fixture.Get(ScaledObjects(), "so").status()), "404 NotFound");
}

TEST(MemoryApiTest, DeletePreconditionsNameWhatTheyFound) {
  MemoryFixture fixture;
  const auto created = fixture.Create(ConfigMaps(), kConfigMap);
  const absl::Status refused = fixture.Delete(ConfigMaps(), "c", {.uid = "other"});
  EXPECT_EQ(CodeAndReason(refused), "409 Conflict");
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("the UID in the precondition (other) does not match the UID in record ("));
  EXPECT_TRUE(fixture.Delete(ConfigMaps(), "c", {.uid = At(*created, "/metadata/uid")}).ok());
  EXPECT_EQ(CodeAndReason(fixture.Delete(ConfigMaps(), "c")), "404 NotFound");
}

TEST(MemoryApiTest, DependantsGoWithTheirLastOwner) {
  MemoryFixture fixture;
  const auto owner = fixture.Create(ScaledObjects(), kScaledObject);
  const std::string reference =
      absl::StrCat(R"([{"apiVersion":"keda.sh/v1alpha1","kind":"ScaledObject","name":"so","uid":")",
                   At(*owner, "/metadata/uid"), R"("}])");
  ASSERT_TRUE(
      fixture
          .Create(ConfigMaps(), absl::StrCat(R"({"metadata":{"name":"owned","ownerReferences":)",
                                             reference, "}}"))
          .ok());
  ASSERT_TRUE(fixture.Create(ConfigMaps(), kConfigMap).ok());
  EXPECT_TRUE(fixture.Get(ConfigMaps(), "owned").ok());
  EXPECT_TRUE(fixture.Delete(ScaledObjects(), "so").ok());
  EXPECT_EQ(CodeAndReason(fixture.Get(ConfigMaps(), "owned").status()), "404 NotFound");
  EXPECT_TRUE(fixture.Get(ConfigMaps(), "c").ok());
}

TEST(MemoryApiTest, GarbageWaitsForTheStepWhenAskedTo) {
  MemoryFixture fixture({.collect_garbage = false});
  ASSERT_TRUE(
      fixture
          .Create(ConfigMaps(), R"({"metadata":{"name":"o","ownerReferences":[{"uid":"gone"}]}})")
          .ok());
  EXPECT_TRUE(fixture.Get(ConfigMaps(), "o").ok());
  EXPECT_EQ(fixture.api.CollectGarbage(), 1u);
  EXPECT_FALSE(fixture.Get(ConfigMaps(), "o").ok());
}

TEST(MemoryApiTest, PagesShowOneMomentWhateverHappensBetween) {
  MemoryFixture fixture;
  for (const char* name : {"a", "b", "c", "d"}) {
    ASSERT_TRUE(
        fixture.Create(ConfigMaps(), absl::StrCat(R"({"metadata":{"name":")", name, R"("}})"))
            .ok());
  }
  auto first = fixture.Await(fixture.api.List(ConfigMaps(), "ns", {.limit = 2}, fixture.Soon()));
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->items.size(), 2u);
  ASSERT_TRUE(fixture.Delete(ConfigMaps(), "d").ok());
  auto second = fixture.Await(fixture.api.List(
      ConfigMaps(), "ns", {.continue_token = first->continue_token, .limit = 2}, fixture.Soon()));
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->items.size(), 2u);
  EXPECT_EQ(At(second->items[1], "/metadata/name"), "d");
  EXPECT_EQ(second->resource_version, first->resource_version);
  EXPECT_EQ(second->continue_token, "");

  fixture.api.Compact();
  const auto late = fixture.Await(fixture.api.List(
      ConfigMaps(), "ns", {.continue_token = first->continue_token}, fixture.Soon()));
  EXPECT_EQ(CodeAndReason(late.status()), "410 Expired");
}

TEST(MemoryApiTest, ListsSelectByLabelNameAndNamespace) {
  MemoryFixture fixture;
  ASSERT_TRUE(fixture.Create(Deployments(), kDeployment).ok());
  const auto count = [&](ListOptions options, const std::string& namespace_name) {
    const auto list = fixture.Await(
        fixture.api.List(Deployments(), namespace_name, std::move(options), fixture.Soon()));
    EXPECT_TRUE(list.ok()) << list.status();
    return list.ok() ? list->items.size() : 0;
  };
  EXPECT_EQ(count({.label_selector = "team=a"}, ""), 1u);
  EXPECT_EQ(count({.label_selector = "team!=a"}, ""), 0u);
  EXPECT_EQ(count({.field_selector = "metadata.name=web"}, "ns"), 1u);
  EXPECT_EQ(count({.field_selector = "metadata.name=other"}, "ns"), 0u);
  EXPECT_EQ(count({}, "elsewhere"), 0u);
}

TEST(MemoryApiTest, MetadataOnlyLeavesOutTheRest) {
  MemoryFixture fixture;
  ASSERT_TRUE(
      fixture.Create(Secrets(), R"({"metadata":{"name":"s"},"stringData":{"password":"hunter2"}})")
          .ok());
  EXPECT_EQ(At(*fixture.Get(Secrets(), "s"), "/data/password"), "aHVudGVyMg==");
  const auto list =
      fixture.Await(fixture.api.List(Secrets(), "ns", {.metadata_only = true}, fixture.Soon()));
  EXPECT_EQ(At(list->items.at(0), "/kind"), "PartialObjectMetadata");
  EXPECT_EQ(At(list->items.at(0), "/data"), "");
}

TEST(MemoryApiTest, HpaGetsTheServersDefaults) {
  MemoryFixture fixture;
  const auto created = fixture.Create(HorizontalPodAutoscalers(), R"({"metadata":{"name":"h"},
    "spec":{"scaleTargetRef":{"kind":"Deployment","name":"web","apiVersion":"apps/v1"},
    "maxReplicas":10,"behavior":{"scaleDown":{"stabilizationWindowSeconds":0}},
    "metrics":[{"type":"External","external":{"metric":{"name":"m"},
                "target":{"type":"AverageValue","averageValue":"5000m"}}}]}})");
  ASSERT_TRUE(created.ok()) << created.status();
  EXPECT_EQ(At(*created, "/spec/minReplicas"), "1");
  EXPECT_EQ(At(*created, "/spec/metrics/0/external/target/averageValue"), "5");
  EXPECT_EQ(At(*created, "/spec/behavior/scaleDown/stabilizationWindowSeconds"), "0");
  EXPECT_EQ(At(*created, "/spec/behavior/scaleDown/selectPolicy"), "Max");
  EXPECT_EQ(At(*created, "/spec/behavior/scaleUp/policies/0/value"), "4");
  EXPECT_EQ(At(*created, "/metadata/generation"), "");
}

// What MemoryApi does not model it refuses.
TEST(MemoryApiTest, WhatIsNotModelledIsUnimplemented) {
  MemoryFixture fixture;
  ASSERT_TRUE(fixture.Create(ConfigMaps(), kConfigMap).ok());
  const auto code = [](const absl::Status& status) {
    EXPECT_FALSE(GetApiError(status).has_value()) << status;
    return status.code();
  };
  constexpr absl::StatusCode kWant = absl::StatusCode::kUnimplemented;
  auto& api = fixture.api;
  const auto soon = fixture.Soon();
  EXPECT_EQ(
      code(fixture.Await(api.Patch(ConfigMaps(), "ns", "c", PatchType::kJson, Json("[]"), {}, soon))
               .status()),
      kWant);
  EXPECT_EQ(
      code(
          fixture.Await(api.Patch(ConfigMaps(), "ns", "c", PatchType::kApply, Json("{}"), {}, soon))
              .status()),
      kWant);
  EXPECT_EQ(
      code(fixture.Await(api.Create(ConfigMaps(), "ns", Json(kConfigMap), {.dry_run = true}, soon))
               .status()),
      kWant);
  EXPECT_EQ(code(fixture.Delete(ConfigMaps(), "c", {.propagation_policy = "Foreground"})), kWant);
  EXPECT_EQ(
      code(fixture.Await(api.List(ConfigMaps(), "ns", {.field_selector = "type=Opaque"}, soon))
               .status()),
      kWant);
  EXPECT_EQ(code(fixture.Create(SubjectAccessReviews(), R"({"spec":{}})").status()), kWant);
}

TEST(MemoryApiTest, UnknownKindIsNotFound) {
  MemoryFixture fixture;
  const auto got = fixture.Get({"example.com", "v1", "widgets", true}, "w");
  EXPECT_EQ(CodeAndReason(got.status()), "404 ");
  EXPECT_EQ(got.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(CodeAndReason(fixture.Get(ConfigMaps(), "c", "scale").status()), "404 NotFound");
}

class ScriptedFaults : public FaultInjector {
 public:
  Fault BeforeCall(const MemoryCall& call) override { return call.IsWrite() ? before : Fault(); }
  Fault AfterCall(const MemoryCall& call, const absl::Status&) override {
    return call.IsWrite() ? after : Fault();
  }
  WatchFault BeforeEvent(const MemoryCall&, const WatchEvent&) override { return {}; }

  Fault before;
  Fault after;
};

TEST(MemoryApiTest, FaultsBeforeACallLeaveNothingBehind) {
  ScriptedFaults faults;
  MemoryFixture fixture({.faults = &faults});
  faults.before.error = absl::UnavailableError("cut");
  EXPECT_EQ(fixture.Create(ConfigMaps(), kConfigMap).status().message(), "cut");
  EXPECT_FALSE(fixture.Get(ConfigMaps(), "c").ok());
}

TEST(MemoryApiTest, FaultsAfterACallHideThatItWasDone) {
  ScriptedFaults faults;
  MemoryFixture fixture({.faults = &faults});
  faults.after.error = absl::UnavailableError("cut");
  EXPECT_EQ(fixture.Create(ConfigMaps(), kConfigMap).status().message(), "cut");
  EXPECT_TRUE(fixture.Get(ConfigMaps(), "c").ok());
}

TEST(MemoryApiTest, ADelayBeyondTheDeadlineEndsAtTheDeadline) {
  ScriptedFaults faults;
  MemoryFixture fixture({.faults = &faults});
  const host::SteadyTime start = fixture.clock.SteadyNow();
  faults.before.delay = absl::Minutes(1);
  EXPECT_EQ(fixture.Create(ConfigMaps(), kConfigMap).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(fixture.clock.SteadyNow() - start, absl::Seconds(10));
}

}  // namespace
}  // namespace outrigger::controller::kube
