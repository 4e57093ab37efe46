// SPDX-License-Identifier: Apache-2.0
#include "operator/polling/trigger_resolver.h"

#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "tests/operator/support/memory_cluster.h"
#include "tests/operator/support/scripted_scalers.h"

namespace outrigger::controller::polling {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::StartsWith;
using testing::UnorderedElementsAre;
using Map = std::map<std::string, std::string>;

Map ToMap(const google::protobuf::Map<std::string, std::string>& map) {
  return {map.begin(), map.end()};
}

class TriggerResolverTest : public testing::Test {
 protected:
  TriggerResolverTest() { scalers_.Connect("redis", {"redis"}); }

  void CreateSecret(const std::string& name, const std::string& key, const std::string& value) {
    cluster_.Create(kube::Secrets(),
                    absl::StrCat(R"({"metadata":{"name":")", name, R"("},"stringData":{")", key,
                                 R"(":")", value, R"("}})"));
  }
  void CreateAuthentication(const std::string& name, const std::string& spec) {
    cluster_.Create(
        kube::TriggerAuthentications(),
        absl::StrCat(R"({"apiVersion":"keda.sh/v1alpha1","kind":"TriggerAuthentication",)",
                     R"("metadata":{"name":")", name, R"("},"spec":)", spec, "}"));
  }
  void CreateObject(const std::string& trigger, absl::string_view target = R"({"name":"web"})") {
    cluster_.CreateScaledObject("orders", absl::StrCat(R"("triggers":[)", trigger, "]"), target);
  }
  // A Deployment whose one container has this env and envFrom.
  void CreateTarget(const std::string& env, const std::string& env_from = "[]") {
    cluster_.Create(kube::Deployments(),
                    absl::StrCat(R"({"metadata":{"name":"web"},"spec":{"template":{"spec":{)",
                                 R"("containers":[{"name":"main","envFrom":)", env_from,
                                 R"(,"env":)", env, R"(},{"name":"side","env":[)",
                                 R"({"name":"ADDRESS","value":"of-side"}]}]}}}})"));
  }
  std::shared_ptr<const ResolvedObject> Resolve() {
    auto object = cluster_.view().ScaledObject({"ns", "orders"});
    return loop_.Run(
        resolver_.Resolve(object, host::Deadline::After(loop_.clock(), absl::Seconds(3))));
  }
  ResolvedTrigger First() { return Resolve()->triggers.at(0); }
  int Reads() { return cluster_.faults().Count("get "); }

  CoreLoop loop_;
  MemoryCluster cluster_{loop_};
  ScriptedScalers scalers_{loop_.clock()};
  TriggerResolver resolver_{cluster_.api(), cluster_.view(), scalers_, {.fingerprint_key = "k"}};
};

constexpr char kWithAuthentication[] =
    R"({"type":"redis","metadata":{},"authenticationRef":{"name":"creds"}})";
constexpr char kPasswordFromSecret[] =
    R"({"secretTargetRef":[{"parameter":"password","name":"db","key":"pw"}]})";

TEST_F(TriggerResolverTest, CarriesTheObjectAndItsMetadata) {
  CreateObject(
      R"({"type":"redis","name":"main","metadata":{"listName":"q"},"metricType":"Value"})");
  const ResolvedTrigger resolved = First();
  ASSERT_TRUE(resolved.error.ok()) << resolved.error;
  EXPECT_EQ(resolved.trigger->object().namespace_(), "ns");
  EXPECT_EQ(resolved.trigger->object().name(), "orders");
  EXPECT_EQ(resolved.trigger->object().uid(), cluster_.ScaledObject("orders").meta.uid);
  EXPECT_EQ(resolved.trigger->object().generation(), 1);
  EXPECT_EQ(resolved.trigger->name(), "main");
  EXPECT_EQ(resolved.trigger->metric_type(), scaler::v1::VALUE);
  EXPECT_THAT(ToMap(resolved.trigger->metadata()), ElementsAre(Pair("listName", "q")));
  EXPECT_FALSE(resolved.trigger->fingerprint().empty());
}

TEST_F(TriggerResolverTest, KeysThatTheSchemaDoesNotNameAreNotSent) {
  scaler::v1::TriggerType schema;
  schema.set_name("redis");
  schema.add_parameters()->set_name("listName");
  schema.add_parameters()->set_name("password");
  schema.mutable_parameters(0)->add_aliases("list");
  scalers_.SetSchema(schema);
  CreateSecret("db", "pw", "x");
  CreateAuthentication("creds",
                       R"({"secretTargetRef":[{"parameter":"password","name":"db","key":"pw"},
                                              {"parameter":"other","name":"db","key":"pw"}]})");
  CreateTarget(R"([{"name":"PW","value":"e"}])");
  CreateObject(R"({"type":"redis","authenticationRef":{"name":"creds"},"metadata":{
      "listName":"q","list":"p","canary":"secret","passwordFromEnv":"PW","canaryFromEnv":"PW"}})");
  const ResolvedTrigger resolved = First();
  ASSERT_TRUE(resolved.error.ok()) << resolved.error;
  EXPECT_THAT(ToMap(resolved.trigger->metadata()),
              UnorderedElementsAre(Pair("listName", "q"), Pair("list", "p"),
                                   Pair("passwordFromEnv", "PW")));
  EXPECT_THAT(ToMap(resolved.trigger->environment()), ElementsAre(Pair("password", "e")));
  EXPECT_THAT(ToMap(resolved.trigger->authentication()), ElementsAre(Pair("password", "x")));
}

TEST_F(TriggerResolverTest, AResourceTriggerAsksNobody) {
  CreateObject(R"({"type":"cpu","metadata":{"value":"50"},"metricType":"Utilization"})");
  const ResolvedTrigger resolved = First();
  EXPECT_TRUE(resolved.resource);
  EXPECT_TRUE(resolved.error.ok());
  EXPECT_EQ(resolved.trigger, nullptr);
}

TEST_F(TriggerResolverTest, ATypeThatNobodyServesIsAnUnreachablePlugin) {
  CreateObject(R"({"type":"kafka","metadata":{}})");
  const ResolvedTrigger before = First();
  EXPECT_EQ(before.error.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(host::IsPluginUnreachable(before.error));
  EXPECT_THAT(std::string(before.error.message()), HasSubstr("\"kafka\""));
  scalers_.Connect("kafka", {"kafka"});
  EXPECT_TRUE(First().error.ok());
}

TEST_F(TriggerResolverTest, ReadsSecretsByNameAndOnlyOnce) {
  CreateSecret("db", "pw", "hunter2");
  CreateAuthentication("creds", kPasswordFromSecret);
  CreateObject(kWithAuthentication);
  EXPECT_THAT(ToMap(First().trigger->authentication()), ElementsAre(Pair("password", "hunter2")));
  for (int i = 0; i < 10; ++i) First();
  EXPECT_EQ(cluster_.faults().Count("get secrets ns/db"), 1);
  EXPECT_EQ(cluster_.faults().Count("list secrets"), 0);
}

// Case B086.
TEST_F(TriggerResolverTest, ARotatedSecretIsInUseAtTheNextLook) {
  CreateSecret("db", "pw", "old");
  CreateAuthentication("creds", kPasswordFromSecret);
  CreateObject(kWithAuthentication);
  const std::string old = First().trigger->fingerprint();
  cluster_.Patch(kube::Secrets(), "db",
                 absl::StrCat(R"({"data":{"pw":")", absl::Base64Escape("new"), R"("}})"));
  const ResolvedTrigger resolved = First();
  EXPECT_THAT(ToMap(resolved.trigger->authentication()), ElementsAre(Pair("password", "new")));
  EXPECT_NE(resolved.trigger->fingerprint(), old);
  EXPECT_THAT(resolver_.UsersOf("Secret/ns/db"), ElementsAre(api::NamespacedName{"ns", "orders"}));
}

// Case B086.
TEST_F(TriggerResolverTest, AnAuthenticationThatPointsElsewhereIsReadAnew) {
  CreateSecret("db", "pw", "one");
  CreateSecret("db2", "pw", "two");
  CreateAuthentication("creds", kPasswordFromSecret);
  CreateObject(kWithAuthentication);
  First();
  cluster_.Patch(
      kube::TriggerAuthentications(), "creds",
      R"({"spec":{"secretTargetRef":[{"parameter":"password","name":"db2","key":"pw"}]}})");
  EXPECT_THAT(ToMap(First().trigger->authentication()), ElementsAre(Pair("password", "two")));
}

struct Missing {
  const char* name;
  const char* authentication;  // "": none is made
  bool secret;
  const char* message;
};
class MissingCredentialTest : public TriggerResolverTest,
                              public testing::WithParamInterface<Missing> {};

// Shows R5. Case B090.
TEST_P(MissingCredentialTest, IsAnErrorThatNamesWhatIsMissingAndNeverEmptyText) {
  if (GetParam().secret) CreateSecret("db", "other", "x");
  if (*GetParam().authentication != '\0') CreateAuthentication("creds", GetParam().authentication);
  CreateObject(kWithAuthentication);
  const ResolvedTrigger resolved = First();
  EXPECT_EQ(resolved.trigger, nullptr);
  EXPECT_EQ(resolved.error.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(resolved.error.message()), StartsWith("authenticationRef: "));
  EXPECT_THAT(std::string(resolved.error.message()), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, MissingCredentialTest,
    testing::ValuesIn<Missing>({
        {"Object", "", false, "want an existing TriggerAuthentication, got none named ns/creds"},
        {"Secret", kPasswordFromSecret, false, "want an existing Secret, got none named ns/db"},
        {"Key", kPasswordFromSecret, true, "want key \"pw\" in Secret ns/db, got none"},
        {"OtherSource", R"({"env":[{"parameter":"p","name":"N"}]})", false,
         "want secretTargetRef only (others are not supported yet), got env"},
    }),
    [](const testing::TestParamInfo<Missing>& info) { return std::string(info.param.name); });

// Case B086. Case B090.
TEST_F(TriggerResolverTest, WhatWasMissingIsFoundOnceItIsThere) {
  CreateObject(kWithAuthentication);
  EXPECT_FALSE(First().error.ok());
  CreateAuthentication("creds", kPasswordFromSecret);
  EXPECT_THAT(std::string(First().error.message()), HasSubstr("ns/db"));
  CreateSecret("db", "pw", "x");
  EXPECT_TRUE(First().error.ok());
}

TEST_F(TriggerResolverTest, AnErrorOfTheApiServerIsTriedAgain) {
  CreateSecret("db", "pw", "x");
  CreateAuthentication("creds", kPasswordFromSecret);
  CreateObject(kWithAuthentication);
  cluster_.faults().Fail("get secrets", absl::UnavailableError("down"));
  EXPECT_EQ(First().error.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(First().error.ok());
}

TEST_F(TriggerResolverTest, ASecretOfAClusterAuthenticationIsInTheOperatorsNamespace) {
  cluster_.Create(kube::ClusterTriggerAuthentications(),
                  R"({"apiVersion":"keda.sh/v1alpha1","kind":"ClusterTriggerAuthentication",
          "metadata":{"name":"creds"},
          "spec":{"secretTargetRef":[{"parameter":"password","name":"db","key":"pw"}]}})");
  CreateObject(R"({"type":"redis","metadata":{},
                   "authenticationRef":{"name":"creds","kind":"ClusterTriggerAuthentication"}})");
  CreateSecret("db", "pw", "of the wrong namespace");
  EXPECT_THAT(std::string(First().error.message()), HasSubstr("none named outrigger/db"));
}

TEST_F(TriggerResolverTest, EnvironmentFollowsTheOrderOfTheContainer) {
  cluster_.Create(kube::ConfigMaps(),
                  R"({"metadata":{"name":"cm"},"data":{"HOST":"from-map","PORT":"1"}})");
  CreateSecret("sec", "PASSWORD", "pw");
  CreateTarget(
      R"env([{"name":"HOST","value":"literal"},{"name":"ADDRESS","value":"$(HOST):$(C_PORT)"},
          {"name":"PW","valueFrom":{"secretKeyRef":{"name":"sec","key":"PASSWORD"}}},
          {"name":"NOKEY","valueFrom":{"configMapKeyRef":{"name":"cm","key":"absent"}}},
          {"name":"POD","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}},
          {"name":"MAYBE","valueFrom":{"secretKeyRef":{"name":"no","key":"x","optional":true}}}])env",
      R"([{"prefix":"C_","configMapRef":{"name":"cm"}},
          {"secretRef":{"name":"absent","optional":true}}])");
  CreateObject(R"({"type":"redis","metadata":{"addressFromEnv":"ADDRESS","passwordFromEnv":"PW",
      "aFromEnv":"NOKEY","bFromEnv":"POD","cFromEnv":"MAYBE","dFromEnv":"C_HOST","eFromEnv":"NO"}})");
  const ResolvedTrigger resolved = First();
  ASSERT_TRUE(resolved.error.ok()) << resolved.error;
  EXPECT_THAT(ToMap(resolved.trigger->environment()),
              UnorderedElementsAre(Pair("address", "literal:1"), Pair("password", "pw"),
                                   Pair("d", "from-map")));
}

TEST_F(TriggerResolverTest, TheNamedContainersEnvironmentIsUsed) {
  CreateTarget("[]");
  CreateObject(R"({"type":"redis","metadata":{"addressFromEnv":"ADDRESS"}})",
               R"({"name":"web","envSourceContainerName":"side"})");
  EXPECT_THAT(ToMap(First().trigger->environment()), ElementsAre(Pair("address", "of-side")));
}

TEST_F(TriggerResolverTest, AnUnknownContainerIsNamed) {
  CreateTarget("[]");
  CreateObject(R"({"type":"redis","metadata":{"addressFromEnv":"ADDRESS"}})",
               R"({"name":"web","envSourceContainerName":"nobody"})");
  EXPECT_EQ(First().error.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(First().error.message()), HasSubstr("got \"nobody\""));
}

TEST_F(TriggerResolverTest, AChangedPodTemplateIsReadAndAChangedReplicaCountIsNot) {
  CreateTarget(R"([{"name":"PW","valueFrom":{"secretKeyRef":{"name":"sec","key":"p"}}}])");
  CreateSecret("sec", "p", "x");
  CreateObject(R"({"type":"redis","metadata":{"passwordFromEnv":"PW"}})");
  First();
  EXPECT_EQ(Reads(), 1);
  cluster_.SetReplicas("web", 7);
  First();
  EXPECT_EQ(Reads(), 1);
  cluster_.Patch(kube::Deployments(), "web",
                 R"({"spec":{"template":{"spec":{"containers":[{"name":"main","env":[
                     {"name":"PW","value":"literal"}]}]}}}})");
  EXPECT_THAT(ToMap(First().trigger->environment()), ElementsAre(Pair("password", "literal")));
}

TEST_F(TriggerResolverTest, EqualQuestionsHaveEqualFingerprintsUnlessTheTypeIsPerObject) {
  scaler::v1::TriggerType schema;
  schema.set_name("external");
  schema.set_open(true);
  schema.set_per_object(true);
  scalers_.SetSchema(schema);
  scalers_.Connect("external", {"external"});
  CreateObject(R"({"type":"redis","metadata":{"a":"1","b":"2"}},
                  {"type":"redis","metadata":{"b":"2","a":"1"}},
                  {"type":"redis","metadata":{"a":"1","b":"3"}},
                  {"type":"external","metadata":{"a":"1"}},
                  {"type":"external","metadata":{"a":"1"}})");
  const auto resolved = Resolve();
  auto fingerprint = [&](size_t i) { return resolved->triggers[i].trigger->fingerprint(); };
  EXPECT_EQ(fingerprint(0), fingerprint(1));
  EXPECT_NE(fingerprint(0), fingerprint(2));
  EXPECT_NE(fingerprint(3), fingerprint(4));
}

TEST_F(TriggerResolverTest, CachedAnswersOnlyWhatNeedsNoCall) {
  CreateSecret("db", "pw", "old");
  CreateAuthentication("creds", kPasswordFromSecret);
  CreateObject(kWithAuthentication);
  auto object = cluster_.view().ScaledObject({"ns", "orders"});
  EXPECT_EQ(resolver_.Cached(*object), nullptr);
  const auto resolved = Resolve();
  EXPECT_EQ(resolver_.Cached(*object), resolved);
  cluster_.Patch(kube::Secrets(), "db", R"({"data":{"pw":"bmV3"}})");
  EXPECT_EQ(resolver_.Cached(*object), nullptr);
}

// As one does whose edit was refused (docs/adr/0015).
TEST_F(TriggerResolverTest, AnOlderSpecThatRunsOnIsResolvedOnce) {
  CreateSecret("db", "pw", "x");
  CreateAuthentication("creds", kPasswordFromSecret);
  CreateObject(kWithAuthentication);
  const auto running = cluster_.view().ScaledObject({"ns", "orders"});
  cluster_.Patch(kube::ScaledObjects(), "orders", R"({"spec":{"minReplicaCount":3}})");
  const auto resolved = loop_.Run(resolver_.Resolve(running, host::Deadline::Never()));
  EXPECT_EQ(resolver_.Cached(*running), resolved);
  EXPECT_EQ(resolver_.Cached(*cluster_.view().ScaledObject({"ns", "orders"})), nullptr);
}

// Case B083.
TEST_F(TriggerResolverTest, KeepsNothingOfAnObjectThatIsGone) {
  CreateSecret("db", "pw", "x");
  CreateAuthentication("creds", kPasswordFromSecret);
  CreateObject(kWithAuthentication);
  const std::string uid = cluster_.ScaledObject("orders").meta.uid;
  Resolve();
  resolver_.Forget(uid);
  EXPECT_EQ(resolver_.size(), 0u);

  // One that is deleted and made anew while it is resolved must not leave the old one behind.
  auto object = cluster_.view().ScaledObject({"ns", "orders"});
  cluster_.faults().Fail("get secrets", absl::OkStatus(), 1, absl::Seconds(1));
  auto resolving = loop_.Start(resolver_.Resolve(object, host::Deadline::Never()));
  loop_.Settle();
  cluster_.Delete(kube::ScaledObjects(), "orders");
  CreateObject(kWithAuthentication);
  loop_.Advance(absl::Seconds(2));
  ASSERT_TRUE(resolving->has_value());
  EXPECT_EQ(resolver_.size(), 0u);
}

}  // namespace
}  // namespace outrigger::controller::polling
