// SPDX-License-Identifier: Apache-2.0
#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/conformance/server.h"
#include "tests/conformance/session.h"

namespace outrigger::conformance {
namespace {

using Verb = Operation::Verb;
using testing::HasSubstr;

// Operations whose outcomes and events must be equal on both servers; the last one must end as
// said, so that the rule is what its name tells.
struct Rule {
  const char* name;
  std::vector<Operation> operations;
  const char* code;
  const char* message;
  bool in_other_words = false;  // the servers explain it differently
};
void PrintTo(const Rule& rule, std::ostream* out) { *out << rule.name; }  // in failures

class RulesTest : public testing::TestWithParam<Rule> {};

TEST_P(RulesTest, HoldsOnBothServers) {
  const Rule& rule = GetParam();
  std::string namespace_name = absl::StrCat("rule-", rule.name);
  for (char& c : namespace_name) c = static_cast<char>(std::tolower(c));
  std::vector<Kind> kinds;
  for (const Operation& operation : rule.operations) {
    const bool known = std::find(kinds.begin(), kinds.end(), operation.kind) != kinds.end();
    if (!known && operation.kind != Kind::kUnknown) kinds.push_back(operation.kind);
  }
  const std::unique_ptr<Server> memory_server = MakeMemoryServer();
  const std::unique_ptr<Server> real_server = MakeRealServer();
  Session memory(*memory_server, namespace_name, kinds);
  Session real(*real_server, namespace_name, kinds);
  Outcome last;
  for (const Operation& operation : rule.operations) {
    SCOPED_TRACE(operation.ToString());
    last = real.Run(operation);
    const Outcome in_memory = memory.Run(operation);
    EXPECT_EQ(in_memory.code, last.code);
    if (!rule.in_other_words) EXPECT_EQ(in_memory.ToString(), last.ToString());
  }
  EXPECT_EQ(last.code, rule.code);
  EXPECT_THAT(last.ToString(), HasSubstr(rule.message));
  EXPECT_EQ(memory.Finish(), real.Finish());
}

Operation Create(Kind kind, std::string body = "{}") {
  return {.verb = Verb::kCreate, .kind = kind, .name = "a", .body = std::move(body)};
}
Operation Patch(Kind kind, std::string body, std::string subresource = "") {
  return {.verb = Verb::kPatch,
          .kind = kind,
          .name = "a",
          .subresource = std::move(subresource),
          .body = std::move(body)};
}
Operation Update(Kind kind, std::string body, std::string subresource = "") {
  return {.verb = Verb::kUpdate,
          .kind = kind,
          .name = "a",
          .subresource = std::move(subresource),
          .body = std::move(body)};
}
Operation Delete(Kind kind, std::string uid = "", std::string version = "") {
  return {.verb = Verb::kDelete,
          .kind = kind,
          .name = "a",
          .uid = std::move(uid),
          .resource_version = std::move(version)};
}
Operation Get(Kind kind, std::string subresource = "") {
  return {.verb = Verb::kGet, .kind = kind, .name = "a", .subresource = std::move(subresource)};
}
Operation Named(Operation operation, std::string name) {
  operation.name = std::move(name);
  return operation;
}

constexpr Kind kMap = Kind::kConfigMap;
constexpr Kind kObject = Kind::kScaledObject;
constexpr Kind kWeb = Kind::kDeployment;
constexpr Kind kHpa = Kind::kHpa;

INSTANTIATE_TEST_SUITE_P(
    Names, RulesTest,
    testing::ValuesIn<Rule>({
        {"UnknownResource", {Get(Kind::kUnknown)}, "404 ", "404 page not found"},
        {"UnknownSubresource",
         {Create(kMap), Get(kMap, "scale")},
         "404 NotFound",
         "could not find"},
        {"NameIsNotDns", {Named(Create(kMap), "A_b")}, "422 Invalid", "RFC 1123 subdomain"},
        {"NameIsMissing",
         {Create(kMap, R"({"metadata":{"name":null}})")},
         "422 Invalid",
         "name or generateName is required"},
        {"NameTooLong",
         {Named(Create(kMap), std::string(254, 'a'))},
         "422 Invalid",
         "must be no more than 253 characters"},
        {"CustomResourceNameTooLong",
         {Named(Create(kObject), std::string(254, 'a'))},
         "422 Invalid",
         "must be no more than 253 characters"},
        {"CustomResourceNameIsNotDns",
         {Named(Create(kObject), "A_b")},
         "422 Invalid",
         "RFC 1123 subdomain"},
        {"CreateTwice", {Create(kWeb), Create(kWeb)}, "409 AlreadyExists", "already exists"},
        {"CreateInAnotherNamespace",
         {Create(kMap, R"({"metadata":{"namespace":"b"}})")},
         "400 BadRequest",
         "does not match the namespace sent on the request"},
        {"CreateWithVersion",
         {Create(kMap, R"({"metadata":{"resourceVersion":"7"}})")},
         "500 ",
         "resourceVersion should not be set"},
        {"CreateIgnoresStatus",
         {Create(kObject, R"({"status":{"hpaName":"h"}})"), Get(kObject)},
         "OK",
         "spec:"},
        {"CreateIgnoresSystemMetadata",
         {Create(kWeb, R"({"metadata":{"uid":"u","generation":9,
            "creationTimestamp":"2020-01-01T00:00:00Z"}})")},
         "OK",
         "generation:1"},
        {"CreateWhileBeingDeleted",
         {Create(kMap, R"({"metadata":{"finalizers":["example.org/a"]}})"), Delete(kMap),
          Create(kMap)},
         "409 AlreadyExists",
         "object is being deleted"},
        {"GetMissing",
         {Get(kHpa)},
         "404 NotFound",
         "horizontalpodautoscalers.autoscaling \"a\" not found"},
        {"UpdateMissing", {Update(kWeb, "{}")}, "404 NotFound", "not found"},
        {"PatchMissing", {Patch(kObject, "{}")}, "404 NotFound", "not found"},
        {"DeleteMissing", {Delete(kMap)}, "404 NotFound", "not found"},
        {"GetMetadataOnly",
         {Create(Kind::kSecret), {.verb = Verb::kGetMetadata, .kind = Kind::kSecret, .name = "a"}},
         "OK",
         "PartialObjectMetadata"},
        {"SecretStringDataIsEncoded",
         {Create(Kind::kSecret, R"({"stringData":{"p":"hunter2"}})")},
         "OK",
         "aHVudGVyMg=="},
    }),
    [](const testing::TestParamInfo<Rule>& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Preconditions, RulesTest,
    testing::ValuesIn<Rule>({
        {"StaleUpdate",
         {Create(kWeb), Patch(kWeb, R"({"spec":{"replicas":2}})"),
          Update(kWeb, R"({"metadata":{"resourceVersion":"$OLDRV"}})")},
         "409 Conflict",
         "the object has been modified"},
        {"UpdateWithoutVersionOverwrites",
         {Create(kWeb),
          Update(kWeb, R"({"metadata":{"resourceVersion":null},"spec":{"replicas":2}})")},
         "OK",
         "generation:2"},
        {"CustomResourceNeedsAVersion",
         {Create(kObject), Update(kObject, R"({"metadata":{"resourceVersion":null}})")},
         "422 Invalid",
         "must be specified for an update"},
        {"LeaseNeedsAVersion",
         {Create(Kind::kLease), Update(Kind::kLease, R"({"metadata":{"resourceVersion":null}})")},
         "422 Invalid",
         "must be specified for an update"},
        {"UpdateWithAnotherUid",
         {Create(kMap), Update(kMap, R"({"metadata":{"uid":"other"}})")},
         "409 Conflict",
         "Precondition failed: UID in precondition: other"},
        {"UpdateOfACustomResourceWithAnotherUid",
         {Create(kObject), Update(kObject, R"({"metadata":{"uid":"other"}})")},
         "409 Conflict",
         "Precondition failed"},
        {"UpdateUnderAnotherName",
         {Create(kMap), Update(kMap, R"({"metadata":{"name":"b"}})")},
         "400 BadRequest",
         "does not match the name on the URL"},
        {"UpdateWithoutName",
         {Create(kMap), Update(kMap, R"({"metadata":{"name":null}})")},
         "400 BadRequest",
         "name must be provided"},
        {"StalePatch",
         {Create(kObject), Patch(kObject, R"({"spec":{"pollingInterval":5}})"),
          Patch(kObject, R"({"metadata":{"resourceVersion":"$OLDRV"},"spec":{}})")},
         "409 Conflict",
         "the object has been modified"},
        {"PatchWithItsVersionAndUid",
         {Create(kObject), Patch(kObject, R"({"metadata":{"resourceVersion":"$RV","uid":"$UID"},
                             "status":{"hpaName":"h"}})",
                                 "status")},
         "OK",
         "hpaName:\"h\""},
        {"PatchWithAnotherUid",
         {Create(kObject), Patch(kObject, R"({"metadata":{"uid":"other"}})")},
         "422 Invalid",
         "field is immutable"},
        {"StatusPatchWithAnotherUid",
         {Create(kObject),
          Patch(kObject, R"({"metadata":{"uid":"other"},"status":{"hpaName":"h"}})", "status")},
         "OK",
         "hpaName"},
        {"PatchThatIsNoObject", {Create(kMap), Patch(kMap, "[1]")}, "400 BadRequest", "patch"},
        {"DeleteWithItsUid", {Create(kMap), Delete(kMap, "$UID")}, "OK", ""},
        {"DeleteWithAnotherUid",
         {Create(kWeb), Delete(kWeb, "other")},
         "409 Conflict",
         "the UID in the precondition (other) does not match"},
        {"DeleteWithAnotherVersion",
         {Create(kMap), Delete(kMap, "", "$OLDRV")},
         "409 Conflict",
         "the ResourceVersion in the precondition"},
    }),
    [](const testing::TestParamInfo<Rule>& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Writes, RulesTest,
    testing::ValuesIn<Rule>({
        {"NoOpUpdateKeepsTheVersion", {Create(kWeb), Update(kWeb, "{}")}, "OK", "rv-1"},
        {"NoOpPatchKeepsTheVersion",
         {Create(kObject), Patch(kObject, R"({"spec":{}})")},
         "OK",
         "rv-1"},
        {"NoOpStatusKeepsTheVersion",
         {Create(kWeb), Patch(kWeb, R"({"status":{"replicas":0}})", "status")},
         "OK",
         "rv-1"},
        {"SpecRaisesGeneration",
         {Create(kObject), Patch(kObject, R"({"spec":{"pollingInterval":5}})")},
         "OK",
         "generation:2"},
        {"AnnotationsOfADeploymentRaiseGeneration",
         {Create(kWeb), Patch(kWeb, R"({"metadata":{"annotations":{"a":"b"}}})")},
         "OK",
         "generation:2"},
        {"LabelsKeepGeneration",
         {Create(kWeb), Patch(kWeb, R"({"metadata":{"labels":{"a":"b"}}})")},
         "OK",
         "generation:1"},
        {"HpaHasNoGeneration",
         {Create(kHpa), Patch(kHpa, R"({"spec":{"maxReplicas":3}})")},
         "OK",
         "maxReplicas:3"},
        {"MainResourceIgnoresStatus",
         {Create(kObject), Patch(kObject, R"({"status":{"hpaName":"h"}})"), Get(kObject)},
         "OK",
         "rv-1"},
        {"StatusIgnoresTheRest",
         {Create(kObject),
          Patch(kObject, R"({"metadata":{"labels":{"a":"b"}},"spec":{"pollingInterval":5},
                             "status":{"hpaName":"h"}})",
                "status")},
         "OK",
         "generation:1"},
        {"StatusOfADeploymentMayAnnotate",
         {Create(kWeb), Patch(kWeb, R"({"metadata":{"labels":{"a":"b"},"annotations":{"c":"d"}},
                                        "status":{"replicas":1}})",
                              "status")},
         "OK",
         "annotations:{c:\"d\""},
        {"NullRemoves",
         {Create(kObject), Patch(kObject, R"({"spec":{"pollingInterval":5}})"),
          Patch(kObject, R"({"spec":{"pollingInterval":null}})")},
         "OK",
         "generation:3"},
        {"EmptyLabelsAreNoLabels",
         {Create(kMap), Patch(kMap, R"({"metadata":{"labels":{"team":null}}})")},
         "OK",
         "rv-2"},
        {"HpaDefaults",
         {Create(kHpa, R"({"spec":{"metrics":null,"behavior":{"scaleUp":{}}}})")},
         "OK",
         "averageUtilization:80"},
        {"HpaPartOfABehavior",
         {Create(kHpa), Patch(kHpa, R"({"spec":{"behavior":{"scaleDown":{
            "policies":[{"type":"Pods","value":1,"periodSeconds":60}]}}}})")},
         "OK",
         "selectPolicy:\"Max\""},
        {"HpaQuantitiesAreCanonical",
         {Create(kHpa, R"({"spec":{"metrics":[{"type":"External","external":{
            "metric":{"name":"m"},"target":{"type":"Value","value":"2500000m"}}}]}})")},
         "OK",
         "value:\"2500\""},
        {"HpaStatusByUpdate",
         {Create(kHpa), Update(kHpa, R"({"status":{"currentReplicas":1,"desiredReplicas":2,
            "conditions":[{"type":"AbleToScale","status":"True","reason":"r",
                           "lastTransitionTime":"2026-01-01T00:00:00Z"}]}})",
                               "status")},
         "OK",
         "AbleToScale"},
    }),
    [](const testing::TestParamInfo<Rule>& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Scale, RulesTest,
    testing::ValuesIn<Rule>({
        {"ReadsReplicasAndSelector",
         {Create(kWeb, R"({"spec":{"selector":{"matchExpressions":[
            {"key":"app","operator":"In","values":["web","b"]},{"key":"app","operator":"Exists"}]}}})"),
          Get(kWeb, "scale")},
         "OK",
         "selector:"},
        {"ZeroReplicasAreLeftOut",
         {Create(kWeb, R"({"spec":{"replicas":0}})"), Get(kWeb, "scale")},
         "OK",
         "spec:{}"},
        {"PatchesReplicas",
         {Create(kWeb), Patch(kWeb, R"({"spec":{"replicas":4}})", "scale"), Get(kWeb)},
         "OK",
         "generation:2"},
        {"NoOpKeepsTheVersion",
         {Create(kWeb), Patch(kWeb, R"({"spec":{"replicas":4}})", "scale"),
          Patch(kWeb, R"({"spec":{"replicas":4}})", "scale")},
         "OK",
         "rv-2"},
        {"NegativeReplicas",
         {Create(kWeb), Patch(kWeb, R"({"spec":{"replicas":-1}})", "scale")},
         "422 Invalid",
         "must be greater than or equal to 0"},
        {"StaleScale",
         {Create(kWeb), Patch(kWeb, R"({"spec":{"replicas":4}})", "scale"),
          Patch(kWeb, R"({"metadata":{"resourceVersion":"$OLDRV"},"spec":{"replicas":5}})",
                "scale")},
         "409 Conflict",
         "the object has been modified"},
        {"ScaleOfAnotherUid",
         {Create(kWeb), Patch(kWeb, R"({"metadata":{"uid":"o"},"spec":{"replicas":5}})", "scale")},
         "409 Conflict",
         "Precondition failed"},
        {"ScaleOfAMissingTarget",
         {Patch(kWeb, R"({"spec":{"replicas":5}})", "scale")},
         "404 NotFound",
         "not found"},
        {"ScaleOfAStatefulSet",
         {Create(Kind::kStatefulSet),
          Patch(Kind::kStatefulSet, R"({"spec":{"replicas":5}})", "scale")},
         "OK",
         "replicas:5"},
        {"NoScaleOfAnHpa", {Create(kHpa), Get(kHpa, "scale")}, "404 NotFound", "could not find"},
    }),
    [](const testing::TestParamInfo<Rule>& info) { return std::string(info.param.name); });

const char kHeld[] = R"({"metadata":{"finalizers":["example.org/a","example.org/b"]}})";
const char kReleased[] = R"({"metadata":{"finalizers":null}})";

INSTANTIATE_TEST_SUITE_P(
    Deletion, RulesTest,
    testing::ValuesIn<Rule>({
        {"GoneAtOnceWithoutFinalizers",
         {Create(kObject), Delete(kObject), Get(kObject)},
         "404 NotFound",
         "not found"},
        {"FinalizersHoldIt",
         {Create(kObject, kHeld), Delete(kObject), Get(kObject)},
         "OK",
         "deletionGracePeriodSeconds:0"},
        {"DeletingRaisesGeneration",
         {Create(kWeb, kHeld), Delete(kWeb), Get(kWeb)},
         "OK",
         "generation:2"},
        {"DeletedTwice",
         {Create(kMap, kHeld), Delete(kMap), Delete(kMap), Get(kMap)},
         "OK",
         "rv-2"},
        {"OneFinalizerLess",
         {Create(kObject, kHeld), Delete(kObject),
          Patch(kObject, R"({"metadata":{"finalizers":["example.org/b"]}})")},
         "OK",
         "deletionTimestamp"},
        {"LastFinalizerRemoved",
         {Create(kObject, kHeld), Delete(kObject), Patch(kObject, kReleased), Get(kObject)},
         "404 NotFound",
         "not found"},
        {"LastFinalizerRemovedByUpdate",
         {Create(kMap, kHeld), Delete(kMap), Get(kMap), Update(kMap, kReleased)},
         "OK",
         "rv-2"},
        {"NoNewFinalizersWhileBeingDeleted",
         {Create(kObject, kHeld), Delete(kObject),
          Patch(kObject, R"({"metadata":{"finalizers":["example.org/c"]}})")},
         "422 Invalid",
         "no new finalizers can be added"},
        {"DeletionCannotBeTakenBack",
         {Create(kMap, kHeld), Delete(kMap),
          Patch(kMap, R"({"metadata":{"deletionTimestamp":null}})")},
         "OK",
         "deletionTimestamp"},
        {"SpecMayChangeWhileBeingDeleted",
         {Create(kObject, kHeld), Delete(kObject),
          Patch(kObject, R"({"spec":{"pollingInterval":5}})")},
         "OK",
         "generation:3"},
        {"RecreatedIsAnother", {Create(kMap), Delete(kMap), Create(kMap)}, "OK", "uid-2"},
    }),
    [](const testing::TestParamInfo<Rule>& info) { return std::string(info.param.name); });

const Operation kListTwo = {.verb = Verb::kList, .kind = kMap, .limit = 2};
const Operation kNextPage = {.verb = Verb::kContinue, .kind = kMap, .limit = 2};

INSTANTIATE_TEST_SUITE_P(
    Lists, RulesTest,
    testing::ValuesIn<Rule>({
        {"OneOfOneKind", {Create(kWeb), {.verb = Verb::kList, .kind = kWeb}}, "OK", "items:[{"},
        {"CustomResourcesKeepTheirType",
         {Create(kObject), {.verb = Verb::kList, .kind = kObject}},
         "OK",
         "ScaledObject"},
        {"LabelsSelect",
         {Create(kMap),
          Named(Create(kMap, R"({"metadata":{"labels":{"team":"y"}}})"), "b"),
          {.verb = Verb::kList, .kind = kMap, .label_selector = "team notin (x)"}},
         "OK",
         "\"b\""},
        {"BadSelector",
         {{.verb = Verb::kList, .kind = kMap, .label_selector = "a=b=c"}},
         "400 BadRequest",
         "",
         /*in_other_words=*/true},
        {"PagesShowOneMoment",
         {Create(kMap), Named(Create(kMap), "b"), Named(Create(kMap), "c"), kListTwo,
          Named(Delete(kMap), "c"), Named(Create(kMap), "d"), kNextPage},
         "OK",
         "more:false"},
    }),
    [](const testing::TestParamInfo<Rule>& info) { return std::string(info.param.name); });

class TwoServersTest : public testing::Test {
 protected:
  const std::unique_ptr<Server> memory_server_ = MakeMemoryServer();
  const std::unique_ptr<Server> real_server_ = MakeRealServer();
};

TEST_F(TwoServersTest, AVersionThatIsForgottenIsExpired) {
  for (Server* server : {memory_server_.get(), real_server_.get()}) {
    Session session(*server, "forgotten", {kObject});
    session.Run(Create(kObject));
    server->ForgetHistory();
    const Outcome outcome = session.WatchFromTheBeginning(kObject);
    EXPECT_EQ(outcome.code, "410 Expired");
    EXPECT_THAT(outcome.message, testing::StartsWith("too old resource version: 1 (rv-"));
  }
}

TEST_F(TwoServersTest, DependantsGoWithTheirOwner) {
  for (Server* server : {memory_server_.get(), real_server_.get()}) {
    Session session(*server, "dependants", {});
    ASSERT_EQ(session.Run(Create(kMap)).code, "OK");
    const std::string uid = session.UidOf(kMap, "a");
    const std::string owned = absl::StrCat(
        R"({"metadata":{"ownerReferences":[{"apiVersion":"v1",
            "kind":"ConfigMap","name":"a","controller":true,"uid":")",
        uid, R"("}]}})");
    ASSERT_EQ(session.Run(Create(Kind::kSecret, owned)).code, "OK");
    ASSERT_EQ(session.Run(Delete(kMap)).code, "OK");
    EXPECT_TRUE(
        server->Until([&] { return session.Run(Get(Kind::kSecret)).code == "404 NotFound"; }));
  }
}

}  // namespace
}  // namespace outrigger::conformance
