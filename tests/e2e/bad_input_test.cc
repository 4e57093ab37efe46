// SPDX-License-Identifier: Apache-2.0
// What a person gets to read for each kind of bad input, on real parts: all messages stand in
// golden/messages.txt, a chapter for each test of messages here. No secret is ever among them, nor
// in logs, events or status.
#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_replace.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "host/base/status.h"
#include "operator/kube/watch_framer.h"
#include "tests/cluster/cache.h"
#include "tests/e2e/bad_input_scene.h"
#include "tests/support/certificates.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wait_for.h"

namespace outrigger::tests {
namespace {

using testing::AnyOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Key;

constexpr char kSpecs[] = "Specs";
constexpr char kUncheckedSpecs[] = "Specs that the API server does or does not check";
constexpr char kQuota[] = "Quotas";
constexpr char kScalers[] = "Answers of scalers";
constexpr char kPlugins[] = "Plugins";
constexpr char kMetricsApi[] = "Requests to the metrics API";
constexpr char kWatches[] = "Bytes of the API server";

std::string NameOf(const std::string& what) {
  return absl::AsciiStrToLower(absl::StrReplaceAll(what, {{" ", "-"}}));
}

void MustBeOk(const absl::Status& status) { ASSERT_TRUE(status.ok()) << status; }

class BadInputTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { stage_ = std::make_unique<BadInputScene>(); }
  static void TearDownTestSuite() { stage_.reset(); }

  static BadInputScene& stage() { return *stage_; }
  static Scene& scene() { return stage_->scene(); }
  static ControlPlane& plane() { return stage_->scene().plane(); }
  static std::string MustKubectl(std::vector<std::string> arguments) {
    const absl::StatusOr<std::string> said = plane().MustKubectl(std::move(arguments));
    EXPECT_TRUE(said.ok()) << said.status();
    return said.value_or("");
  }

  // By a quota, which is in force when it returns.
  void ForbidHpasIn(const std::string& namespace_name);

 private:
  static std::unique_ptr<BadInputScene> stage_;
};

std::unique_ptr<BadInputScene> BadInputTest::stage_;

void BadInputTest::ForbidHpasIn(const std::string& namespace_name) {
  scene().Apply(absl::StrCat(
      "{apiVersion: v1, kind: ResourceQuota, metadata: {name: none, namespace: ", namespace_name,
      "}, spec: {hard: {count/horizontalpodautoscalers.autoscaling: \"0\"}}}"));
  const std::string probe = absl::StrCat(
      "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: probe, "
      "namespace: ",
      namespace_name,
      "}, spec: {maxReplicas: 1, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: "
      "worker}}}");
  std::string said;
  const absl::Status enforced = WaitFor(
      [&] {
        const absl::StatusOr<CommandResult> refused =
            plane().Kubectl({"create", "--dry-run=server", "-f", "-"}, probe);
        said = refused.ok() ? refused->Describe() : refused.status().ToString();
        return said.find("exceeded quota") != std::string::npos;
      },
      absl::Seconds(30), "the quota is enforced", [&] { return said; });
  ASSERT_TRUE(enforced.ok()) << enforced;
}

// Shows R5. Shows R11. Shows R19. Case B045. Case B047. Case B056. Case B090.
TEST_F(BadInputTest, MessagesOfSpecsNameFieldWantedAndGot) {
  const std::string redis = stage().RedisTrigger("listName: a");
  Messages messages;
  messages.Add(
      "malformed metadata",
      stage().WhatIsWrong(
          "malformed", {.triggers = "{type: redis, metadata: {address: \"nowhere\", databaseIndex: "
                                    "\"one\", listLength: \"5abc\", activationListLength: \"-\", "
                                    "enableTLS: \"yes\"}}"}));
  messages.Add(
      "unknown trigger type",
      stage().WhatIsWrong("unknown-type", {.triggers = "{type: rediss, metadata: {listName: a}}"}));
  messages.Add("missing target",
               stage().WhatIsWrong("missing-target",
                                   {.triggers = redis, .spec = "scaleTargetRef: {name: nobody}"}));
  messages.Add("target without scale",
               stage().WhatIsWrong(
                   "target-without-scale",
                   {.triggers = redis, .spec = "scaleTargetRef: {kind: DaemonSet, name: worker}"}));
  messages.Add(
      "not supported yet",
      stage().WhatIsWrong(
          "not-supported",
          {.triggers = redis, .spec = "scaleTargetRef: {name: worker}, idleReplicaCount: 0"}));
  messages.Add(
      "missing authentication",
      stage().WhatIsWrong("missing-authentication",
                          {.triggers = absl::StrCat(redis.substr(0, redis.size() - 1),
                                                    ", authenticationRef: {name: nobody}}")}));
  EXPECT_EQ(messages.text(), GoldenChapter(kSpecs));
}

// Of a CRD that another has applied: KEDA's own has none of our rules either.
TEST_F(BadInputTest, MessagesOfSpecsThatTheApiServerDoesNotCheck) {
  const BadInputScene::Object object{
      .triggers = stage().RedisTrigger("listName: a"),
      .spec = "scaleTargetRef: {name: worker}, minReplicaCount: 5, maxReplicaCount: 3"};
  Messages messages;
  messages.Add("min above max, by our CRD", stage().WhatIsWrong("min-above-max", object));
  const std::string rules =
      "/spec/versions/0/schema/openAPIV3Schema/properties/spec/x-kubernetes-validations";
  MustKubectl({"patch", "crd", "scaledobjects.keda.sh", "--type=json", "-p",
               absl::StrCat(R"([{"op": "remove", "path": ")", rules, R"("}])")});
  std::string said;
  const absl::Status accepted = WaitFor(
      [&] {
        said = stage().WhatIsWrong("min-above-max", object);
        return said.find("refused by the API server") == std::string::npos;
      },
      absl::Seconds(30), "the API server has another CRD", [&] { return said; });
  EXPECT_TRUE(accepted.ok()) << accepted;
  messages.Add("min above max, by the operator", said);
  MustKubectl({"apply", "--server-side", "--force-conflicts", "-f",
               SourcePath("deploy/crds/scaledobjects.yaml")});
  EXPECT_EQ(messages.text(), GoldenChapter(kUncheckedSpecs));
}

// Shows R5. Shows R11. Shows R19. Case B045. Case B047. Case B056. Case B090.
TEST_F(BadInputTest, MessagesOfAnswersNameTriggerWantedAndGot) {
  ScriptedPlugin& scripted = stage().scripted();
  MustBeOk(scripted.SetValue("nan", std::numeric_limits<double>::quiet_NaN()));
  MustBeOk(scripted.SetValue("infinity", std::numeric_limits<double>::infinity()));
  MustBeOk(scripted.SetError("broken", absl::UnavailableError("the source is down")));
  test::v1::Behaviour large;
  large.set_padding_bytes(1 << 20);
  MustBeOk(scripted.Set("large", large));
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"wrong key type", stage().RedisTrigger("listName: text")},
      {"not a number", BadInputScene::ScriptedTrigger("nan")},
      {"infinity", BadInputScene::ScriptedTrigger("infinity")},
      {"source down", BadInputScene::ScriptedTrigger("broken")},
      {"1 MiB", BadInputScene::ScriptedTrigger("large")}};
  std::map<std::string, BadInputScene::Object> objects;
  for (const auto& [what, trigger] : cases) objects[NameOf(what)] = {.triggers = trigger};
  stage().ApplyAll(objects);
  Messages messages;
  for (const auto& [what, trigger] : cases) {
    messages.Add(what, stage().WhatIsWrong(NameOf(what), objects[NameOf(what)]));
  }
  messages.Add("password refused", stage().WhatIsWrongWithTheLogin("password-refused"));
  messages.Add("garbage on the plugin's socket", stage().WhatIsWrongWithGarbage("garbage"));
  EXPECT_EQ(messages.text(), GoldenChapter(kScalers));
}

TEST_F(BadInputTest, ARefusedQuotaIsAPhaseOfItsOwn) {
  const std::string name = "bad-input-quota";
  MustBeOk(plane().CreateNamespace(name));
  ForbidHpasIn(name);
  scene().Apply(DeploymentYaml(name, "worker", 1));
  Messages messages;
  messages.Add("quota refused", stage().Ready("quota",
                                              {.triggers = stage().RedisTrigger("listName: a"),
                                               .namespace_name = name},
                                              "False QuotaExceeded"));
  EXPECT_EQ(messages.text(), GoldenChapter(kQuota));
  EXPECT_EQ(MustKubectl({"-n", name, "get", "so", "quota", "-o", "jsonpath={.status.phase}"}),
            "QuotaExceeded");
}

// A negative value is 0, not an error and no "scale in below nothing".
TEST_F(BadInputTest, ANegativeValueIsZeroWithAWarning) {
  MustBeOk(stage().scripted().SetValue("negative", -7));
  EXPECT_THAT(stage().Ready("negative",
                            {.triggers = BadInputScene::ScriptedTrigger("negative"),
                             .spec = "scaleTargetRef: {name: worker}, minReplicaCount: 1"},
                            "True "),
              HasSubstr("True "));
  const MetricAnswer answer = ReadMetric(
      stage().door(), MetricPath(BadInputScene::kNamespace, "s0-scripted-negative", "negative"));
  EXPECT_EQ(answer.Value(), "0") << Print({answer});
  EXPECT_EQ(stage().WaitForLog("a value below 0 counts as 0", {"object", "metric"}),
            "a value below 0 counts as 0; object: bad-input/negative; metric: scripted-negative");
}

// Which plugin serves a type is configuration: else any sidecar could have another's credentials.
TEST_F(BadInputTest, ASecondPluginForATypeIsDescribedAndAskedNothing) {
  stage().Ready("asks-redis", {.triggers = stage().RedisTrigger("listName: b")}, "True ");
  Messages messages;
  messages.Add(
      "a second plugin announces redis",
      stage().WaitForLog("plugin announces types that it is not asked for", {"plugin", "types"}));
  EXPECT_EQ(messages.text(), GoldenChapter(kPlugins));
  const absl::StatusOr<test::v1::CallsResponse> calls = stage().squatter().Calls("");
  ASSERT_TRUE(calls.ok()) << calls.status();
  const std::string describe = "/outrigger.scaler.v1.Scaler/Describe";
  EXPECT_THAT(calls->rpcs(), Contains(Key(describe)));
  EXPECT_THAT(calls->rpcs(), Each(Key(AnyOf(describe, "/grpc.health.v1.Health/Check"))))
      << calls->ShortDebugString();
}

TEST_F(BadInputTest, NoSecretIsPrintedAnywhere) {
  const std::string said = stage().WhatIsWrongWithTheLogin("canary");
  ASSERT_THAT(said, HasSubstr("AUTH of user \"reader\" refused"));
  const std::vector<std::pair<std::string, std::string>> places = {
      {"the operator's log", scene().operator_->Log()},
      {"the redis plugin's log", scene().PluginLog()},
      {"the other plugins' logs",
       stage().scripted().plugin().Output() + stage().squatter().plugin().Output()},
      {"/metrics",
       OperatorProcess::HttpGet(scene().operator_->metrics_port(), "/metrics").value_or("")},
      {"objects", MustKubectl({"-n", BadInputScene::kNamespace, "get", "so,hpa", "-o", "yaml"})},
      {"events", MustKubectl({"-n", BadInputScene::kNamespace, "get", "events", "-o", "yaml"})}};
  for (const auto& [place, text] : places) {
    EXPECT_NE(text, "") << place;
    EXPECT_EQ(text.find(BadInputScene::kCanary), std::string::npos)
        << "a secret was printed: " << place;
  }
  EXPECT_THAT(places[4].second, HasSubstr(said.substr(said.find("AUTH of user"))));
  EXPECT_THAT(places[5].second, HasSubstr("AUTH of user"));
}

// ---- the metrics API, asked past kube-apiserver ---------------------------------------------

// Certificates of strangers, and of those who may not speak for others.
class Identities {
 public:
  explicit Identities(const ControlPlane& plane) {
    const auto other = CertificateAuthority::Create("another authority");
    MustBeOk(other.status());
    stranger_ = Write("stranger", (*other)->Issue({.common_name = "front-proxy-client"}));
    other_proxy_ = Write("other-proxy",
                         plane.pki().front_proxy_authority().Issue({.common_name = "other-proxy"}));
    jane_ = Write("jane", plane.pki().authority().Issue({.common_name = "jane"}));
  }
  const KeyFiles& stranger() const { return stranger_; }
  const KeyFiles& other_proxy() const { return other_proxy_; }
  const KeyFiles& jane() const { return jane_; }

 private:
  KeyFiles Write(const std::string& name, const absl::StatusOr<KeyPair>& pair) {
    EXPECT_TRUE(pair.ok()) << pair.status();
    if (!pair.ok()) return {};
    return {.certificate = dir_.Write(name + ".crt", pair->certificate),
            .key = dir_.Write(name + ".key", pair->key)};
  }

  const TempDir dir_;
  KeyFiles stranger_;
  KeyFiles other_proxy_;
  KeyFiles jane_;
};

TEST_F(BadInputTest, MessagesOfTheMetricsApiSayWhoWasNotBelievedAndWhatIsNoRequest) {
  stage().Ready("healthy", {.triggers = stage().RedisTrigger("listName: c")}, "True ");
  const Identities identities(plane());
  const std::string ns = BadInputScene::kNamespace;
  const std::string good = MetricPath(ns, "s0-redis-c", "healthy");
  const MetricDoor door = stage().door();
  ASSERT_TRUE(ReadMetric(door, good).ok()) << Print({ReadMetric(door, good)});
  Messages messages;
  const auto ask = [&](const std::string& what, const MetricDoor& as, const std::string& path) {
    const MetricAnswer answer = ReadMetric(as, path);
    messages.Add(what, absl::StrCat(answer.code, " ", answer.text));
  };
  const auto as = [&](const KeyFiles& identity, std::vector<std::string> headers) {
    MetricDoor changed = door;
    changed.identity = identity;
    changed.headers = std::move(headers);
    return changed;
  };
  ask("no certificate", as({}, {}), good);
  ask("no certificate, forged headers", as({}, door.headers), good);
  ask("a token", as({}, {"Authorization: Bearer abc"}), good);
  ask("a certificate of another authority", as(identities.stranger(), door.headers), good);
  ask("a proxy of another name", as(identities.other_proxy(), door.headers), good);
  ask("a user's certificate, forged headers", as(identities.jane(), door.headers), good);
  ask("the proxy names nobody", as(door.identity, {}), good);
  ask("wrong path", door, "/api/v1/namespaces");
  ask("no metric in the path", door,
      absl::StrCat("/apis/external.metrics.k8s.io/v1beta1/namespaces/", ns));
  const std::string without = good.substr(0, good.find('?'));
  ask("no selector", door, without);
  ask("malformed selector", door, without + "?labelSelector=a%3D%3D%3Db");
  ask("selector with an operator", door, without + "?labelSelector=a%20in%20(b)");
  ask("no such ScaledObject", door, MetricPath(ns, "s0-redis-c", "nobody"));
  ask("no such metric", door, MetricPath(ns, "s9-redis-c", "healthy"));
  EXPECT_EQ(messages.text(), GoldenChapter(kMetricsApi));
}

// ---- what cannot be had of a real API server ------------------------------------------------

// What is said of a watch that sends these bytes and ends.
std::string WatchError(absl::string_view bytes) {
  controller::kube::WatchFramer framer("scaledobjects.keda.sh");
  const absl::Status fed = framer.Feed(bytes, [](const controller::kube::WatchEvent&) {});
  return host::Describe(fed.ok() ? framer.Finish() : fed);
}

TEST(BadBytesTest, MessagesOfWatchLinesAndJsonSayWhereAndWhatCame) {
  const std::string huge(controller::kube::WatchFramer::kMaxLineBytes + 1, 'x');
  Messages messages;
  messages.Add("a watch line that is no JSON", WatchError("{\"type\":\"ADDED\",\"object\":x}\n"));
  messages.Add("a watch line that is no event", WatchError("[1, 2]\n"));
  messages.Add("an event of an unknown type", WatchError("{\"type\":\"GROWN\",\"object\":{}}\n"));
  messages.Add("an event without a version", WatchError("{\"type\":\"ADDED\",\"object\":{}}\n"));
  messages.Add("a watch line without end", WatchError(huge));
  messages.Add("a watch that ends inside a line", WatchError("{\"type\":\"ADDED\",\"obj"));
  const std::string object = R"({"kind":"ScaledObject","spec":{"minReplicaCount":1}})";
  messages.Add("JSON that is cut off",
               host::Describe(controller::kube::ParseJson(object.substr(0, 40)).status()));
  messages.Add("JSON with more behind it",
               host::Describe(controller::kube::ParseJson(object + "}").status()));
  EXPECT_EQ(messages.text(), GoldenChapter(kWatches));
  for (size_t length = 0; length < object.size(); ++length) {
    EXPECT_EQ(controller::kube::ParseJson(object.substr(0, length)).status().code(),
              absl::StatusCode::kInvalidArgument)
        << "cut at " << length;
  }
}

// So that no message stands in the file that nobody compares.
TEST(GoldenFileTest, EachChapterIsOfATestHere) {
  EXPECT_THAT(GoldenTitles(), ElementsAre(kSpecs, kUncheckedSpecs, kQuota, kScalers, kPlugins,
                                          kMetricsApi, kWatches));
}

}  // namespace
}  // namespace outrigger::tests
