// SPDX-License-Identifier: Apache-2.0
// What a person gets to read for each kind of bad input, on real parts: all messages stand in
// golden/messages.txt. No secret is ever among them, nor in logs, events or status.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_replace.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <regex>
#include <string>
#include <vector>

#include "tests/cluster/cache.h"
#include "tests/cluster/deployed.h"
#include "tests/e2e/scene.h"
#include "tests/support/scripted/scripted_plugin.h"

namespace outrigger::tests {
namespace {

constexpr char kCanary[] = "canary-7f3a9c";  // a password that must not be seen anywhere

class BadInputTest : public testing::Test {
 protected:
  BadInputTest() : scene_(DeployedControlPlane(), "bad-input") {}

  void SetUp() override {
    absl::StatusOr<std::unique_ptr<RedisServer>> redis =
        RedisServer::Start({.users = {absl::StrCat("reader on >right-", kCanary, " ~* +@all")}});
    ASSERT_TRUE(redis.ok()) << redis.status();
    scene_.redis_ = *std::move(redis);
    scene_.StartPlugin();
    absl::StatusOr<std::unique_ptr<ScriptedPlugin>> scripted =
        ScriptedPlugin::Start({.name = "scripted", .folder = scene_.plugins().path()});
    ASSERT_TRUE(scripted.ok()) << scripted.status();
    scripted_ = *std::move(scripted);
    // Announces what another plugin is bound to.
    absl::StatusOr<std::unique_ptr<ScriptedPlugin>> squatter = ScriptedPlugin::Start(
        {.name = "squatter", .folder = scene_.plugins().path(), .announce = "redis"});
    ASSERT_TRUE(squatter.ok()) << squatter.status();
    squatter_ = *std::move(squatter);
    scene_.StartOperator();
    scene_.ApplyDeployment("worker", 1);
    ASSERT_TRUE(scene_.redis().Command({"SET", "text", "not a list"}).ok());
  }

  std::string Manifest(const std::string& name, const std::string& spec,
                       const std::string& triggers) {
    return absl::StrCat(
        "{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: ", name,
        ", namespace: bad-input}, spec: {pollingInterval: 1, ",
        spec.empty() ? "scaleTargetRef: {name: worker}" : spec, ", triggers: [", triggers, "]}}");
  }
  std::string Redis(const std::string& more) {
    return absl::StrCat("{type: redis, metadata: {address: \"", scene_.redis().address(), "\", ",
                        more, "}}");
  }
  std::string Scripted(const std::string& script) {
    return absl::StrCat("{type: scripted, metadata: {script: ", script, "}}");
  }

  // Reason and message of Ready once it is not True, for the golden file: ports vary, so they are
  // replaced.
  void Record(const std::string& what, const std::string& manifest) {
    const std::string name = absl::StrReplaceAll(what, {{" ", "-"}});
    const absl::StatusOr<CommandResult> applied =
        DeployedControlPlane().Kubectl({"apply", "-f", "-"}, manifest);
    ASSERT_TRUE(applied.ok()) << applied.status();
    std::string text;
    if (!applied->ok()) {
      text = absl::StrCat("refused by the API server: ", applied->stderr_text);
    } else {
      // Status, reason and message of one moment.
      scene_.WaitUntil(name, "Ready says what is wrong", absl::Seconds(60), [&] {
        const std::string ready = ".status.conditions[?(@.type=='Ready')]";
        text = scene_.Get(
            "so", name, absl::StrCat(ready, ".status} {", ready, ".reason}: {", ready, ".message"));
        return text.starts_with("False ") &&
               (what != "quota" || text.starts_with("False QuotaExceeded"));
      });
    }
    while (!text.empty() && text.back() == '\n') text.pop_back();
    text = std::regex_replace(text, std::regex("used: ([^=]*)=[0-9]+"), "used: $1=N");
    messages_.push_back(absl::StrCat(
        "## ", what, "\n",
        absl::StrReplaceAll(text, {{scene_.redis().address(), "127.0.0.1:PORT"}}), "\n"));
  }

  Scene scene_;
  std::unique_ptr<ScriptedPlugin> scripted_;
  std::unique_ptr<ScriptedPlugin> squatter_;
  std::vector<std::string> messages_;
};

// Shows R5. Shows R11. Shows R19. Case B045. Case B047. Case B056. Case B090.
TEST_F(BadInputTest, EachMessageNamesObjectFieldWantedAndGot) {
  Record("malformed metadata",
         Manifest("malformed-metadata", "",
                  "{type: redis, metadata: {address: \"nowhere\", databaseIndex: \"one\", "
                  "listLength: \"5abc\", activationListLength: \"-\", enableTLS: \"yes\"}}"));
  Record("unknown trigger type",
         Manifest("unknown-trigger-type", "", "{type: rediss, metadata: {listName: a}}"));
  Record("missing target",
         Manifest("missing-target", "scaleTargetRef: {name: nobody}", Redis("listName: a")));
  Record("target without scale",
         Manifest("target-without-scale", "scaleTargetRef: {kind: DaemonSet, name: worker}",
                  Redis("listName: a")));
  Record("min above max",
         Manifest("min-above-max",
                  "scaleTargetRef: {name: worker}, minReplicaCount: 5, maxReplicaCount: 3",
                  Redis("listName: a")));
  Record("not supported yet",
         Manifest("not-supported-yet", "scaleTargetRef: {name: worker}, idleReplicaCount: 0",
                  Redis("listName: a")));
  Record("wrong key type", Manifest("wrong-key-type", "", Redis("listName: text")));
  Record("missing authentication",
         Manifest("missing-authentication", "",
                  absl::StrCat("{type: redis, metadata: {address: \"", scene_.redis().address(),
                               "\", listName: a}, authenticationRef: {name: nobody}}")));
  scene_.Apply(absl::StrCat(
      "{apiVersion: v1, kind: Secret, metadata: {name: login, namespace: bad-input}, stringData: "
      "{password: wrong-",
      kCanary, "}}"));
  scene_.Apply(
      "{apiVersion: keda.sh/v1alpha1, kind: TriggerAuthentication, metadata: {name: login, "
      "namespace: bad-input}, spec: "
      "{secretTargetRef: [{parameter: password, name: login, key: password}]}}");
  Record("password refused",
         Manifest("password-refused", "",
                  absl::StrCat(
                      "{type: redis, metadata: {address: \"", scene_.redis().address(),
                      "\", username: reader, listName: a}, authenticationRef: {name: login}}")));
  ASSERT_TRUE(scripted_->SetValue("nan", std::numeric_limits<double>::quiet_NaN()).ok());
  ASSERT_TRUE(scripted_->SetValue("infinity", std::numeric_limits<double>::infinity()).ok());
  ASSERT_TRUE(scripted_->SetError("broken", absl::UnavailableError("the source is down")).ok());
  Record("not a number", Manifest("not-a-number", "", Scripted("nan")));
  Record("infinity", Manifest("infinity", "", Scripted("infinity")));
  Record("source down", Manifest("source-down", "", Scripted("broken")));
  scene_.Apply(
      "{apiVersion: v1, kind: ResourceQuota, metadata: {name: none, namespace: bad-input}, spec: "
      "{hard: "
      "{count/horizontalpodautoscalers.autoscaling: \"0\"}}}");
  const std::string probe =
      "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: probe, "
      "namespace: bad-input}, spec: {maxReplicas: 1, scaleTargetRef: {apiVersion: apps/v1, kind: "
      "Deployment, name: worker}}}";
  scene_.WaitUntil("worker", "the quota is enforced", absl::Seconds(30), [&] {
    const absl::StatusOr<CommandResult> refused =
        DeployedControlPlane().Kubectl({"create", "--dry-run=server", "-f", "-"}, probe);
    return refused.ok() && refused->stderr_text.find("exceeded quota") != std::string::npos;
  });
  Record("quota", Manifest("quota", "", Redis("listName: a")));
  EXPECT_EQ(scene_.Get("so", "quota", ".status.phase"), "QuotaExceeded");

  EXPECT_EQ(absl::StrJoin(messages_, "\n"),
            ReadFile(SourcePath("tests/e2e/golden/messages.txt")).value_or("(no golden file)"));
  // A negative value is 0, not an error.
  ASSERT_TRUE(scripted_->SetValue("negative", -7).ok());
  scene_.Apply(
      "{apiVersion: v1, kind: ResourceQuota, metadata: {name: none, namespace: bad-input}, spec: "
      "{hard: "
      "{count/horizontalpodautoscalers.autoscaling: \"100\"}}}");
  scene_.Apply(Manifest("negative", "scaleTargetRef: {name: worker}, minReplicaCount: 1",
                        Scripted("negative")));
  scene_.WaitUntil("negative", "Ready", absl::Seconds(30),
                   [&] { return scene_.Condition("negative", "Ready") == "True"; });

  // The squatter saw nothing but Describe and health Check.
  const test::v1::CallsResponse calls = squatter_->Calls("");
  EXPECT_EQ(calls.SerializeAsString(), test::v1::CallsResponse().SerializeAsString())
      << calls.ShortDebugString();

  for (const std::string& place :
       {scene_.operator_->Log(), scene_.plugin_->OutputTail(),
        DeployedControlPlane()
            .MustKubectl({"-n", "bad-input", "get", "so,hpa,events", "-o", "yaml"})
            .value_or("")}) {
    EXPECT_EQ(place.find(kCanary), std::string::npos) << "a secret was printed";
  }
}

}  // namespace
}  // namespace outrigger::tests
