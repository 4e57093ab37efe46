// SPDX-License-Identifier: Apache-2.0
#include "operator/local/manifest.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <boost/json/serialize.hpp>

#include "tests/support/temp_dir.h"

namespace outrigger::controller::local {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kWorker[] =
    "apiVersion: apps/v1\n"
    "kind: Deployment\n"
    "metadata: {name: worker}\n"
    "spec:\n"
    "  template:\n"
    "    spec:\n"
    "      containers: [{name: a, command: [sh]}]\n";
constexpr char kScaled[] =
    "---\n"
    "apiVersion: keda.sh/v1alpha1\n"
    "kind: ScaledObject\n"
    "metadata: {name: worker}\n"
    "spec:\n"
    "  scaleTargetRef: {name: worker}\n"
    "  triggers: [{type: redis, metadata: {listLength: \"5\"}}]\n";

class ManifestTest : public testing::Test {
 protected:
  absl::StatusOr<std::vector<ManifestObject>> Load(const std::string& text) {
    return LoadManifests({dir_.Write("a.yaml", text)});
  }
  // The lines of the error, without the folder.
  std::vector<std::string> Faults(const std::string& text) { return FaultsOf(Load(text).status()); }
  std::vector<std::string> FaultsOf(const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    std::vector<std::string> lines = absl::StrSplit(std::string(status.message()), '\n');
    for (std::string& line : lines) {
      if (line.rfind(dir_.path() + "/", 0) == 0) line = line.substr(dir_.path().size() + 1);
    }
    return lines;
  }

  const tests::TempDir dir_;
};

TEST_F(ManifestTest, ReadsDocumentsAndFillsInTheNamespace) {
  const auto objects = Load(
      absl::StrCat(kWorker, kScaled,
                   "---\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: shop}\n"
                   "stringData: {password: \"1234\"}\n"));
  ASSERT_TRUE(objects.ok()) << objects.status();
  ASSERT_EQ(objects->size(), 3u);
  EXPECT_EQ((*objects)[0].namespace_name, "default");
  EXPECT_EQ((*objects)[1].resource, kube::ScaledObjects());
  EXPECT_THAT((*objects)[1].source, HasSubstr("a.yaml, document 2, ScaledObject default/worker"));
  EXPECT_EQ((*objects)[2].namespace_name, "shop");
  EXPECT_THAT(boost::json::serialize((*objects)[2].object),
              HasSubstr(R"("data":{"password":"MTIzNA=="})"));
}

TEST_F(ManifestTest, AClusterScopedKindHasNoNamespace) {
  const auto objects = Load(
      "{apiVersion: keda.sh/v1alpha1, kind: ClusterTriggerAuthentication, metadata: {name: a}}");
  ASSERT_TRUE(objects.ok()) << objects.status();
  EXPECT_EQ((*objects)[0].namespace_name, "");
}

TEST_F(ManifestTest, PlainWordsAreWhatTheyLookLikeAndQuotedOnesText) {
  const auto objects = Load(
      "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n"
      "extra: {n: 5, f: 1.5, t: true, q: \"5\", z: ~, nan: nan, inf: infinity, s: !!str 7, b: |\n"
      "  }\n");
  EXPECT_FALSE(objects.ok()) << "a block in a flow is no YAML";
  const auto more = Load(
      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nbase: &b {x: 1, y: 2}\n"
      "extra:\n  n: 5\n  f: 1.5\n  t: true\n  q: \"5\"\n  z: ~\n  i: infinity\n  s: !!str 7\n"
      "  b: |\n    5\n  m: {<<: *b, y: 3}\n");
  ASSERT_TRUE(more.ok()) << more.status();
  EXPECT_THAT(boost::json::serialize((*more)[0].object),
              HasSubstr(R"("extra":{"n":5,"f":1.5E0,"t":true,"q":"5","z":null,"i":"infinity",)"
                        R"("s":"7","b":"5\n","m":{"y":3,"x":1}})"));
}

// Ten lines that stand for 10^10 values.
TEST_F(ManifestTest, AliasesOfAliasesEndWithAnErrorInsteadOfTheMemory) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    std::string list;
    for (int k = 0; k < 10; ++k) absl::StrAppend(&list, k == 0 ? "*a" : ", *a", i - 1);
    absl::StrAppend(&text, "a", i, ": &a", i, " [", list, "]\n");
  }
  EXPECT_THAT(FaultsOf(Load(text).status()),
              Contains(HasSubstr("want at most 100000 values with what aliases stand for")));
}

TEST_F(ManifestTest, TextThatIsNoUtf8IsNamed) {
  const absl::Status status =
      Load(
          "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  town: \"K\xf6ln\"\n"
          "  \"\xe9\": x\n")
          .status();
  EXPECT_THAT(
      FaultsOf(status),
      ElementsAre("a.yaml, document 1, line 5: data.town: want text in UTF-8, got other bytes",
                  "a.yaml, document 1, line 4: data: want a key in UTF-8, got other bytes"));
}

TEST_F(ManifestTest, EveryFaultOfEveryFileIsToldAtOnce) {
  const std::string a = dir_.Write(
      "a.yaml", absl::StrCat(kWorker,
                             "---\napiVersion: keda.sh/v1alpha1\nkind: ScaledObject\n"
                             "metadata: {name: x}\nspec:\n  scaleTargetRef: {name: worker}\n"
                             "  pollingInterval: 0\n  minReplicaCount: 5\n"
                             "  maxReplicaCount: 2\n  triggers: []\n"));
  const std::string b = dir_.Write("b.yaml", "kind: Widget\n---\n- 1\n");
  EXPECT_THAT(
      FaultsOf(LoadManifests({a, dir_.File("absent.yaml"), b}).status()),
      ElementsAre("a.yaml, document 2, line 14, ScaledObject default/x: spec.pollingInterval: want "
                  "an integer >= 1, got 0",
                  "a.yaml, document 2, line 15, ScaledObject default/x: spec.minReplicaCount: want "
                  "at most maxReplicaCount, which is 2, got 5",
                  "a.yaml, document 2, line 17, ScaledObject default/x: spec.triggers: want at "
                  "least one trigger, got none",
                  "absent.yaml: want a YAML file that can be read, got none",
                  "b.yaml, document 1, line 1: kind: want one of Deployment, ScaledObject, "
                  "TriggerAuthentication, ClusterTriggerAuthentication, Secret, ConfigMap, got "
                  "\"Widget\"",
                  "b.yaml, document 2, line 3: the document: want an object with apiVersion and "
                  "kind, got an array"));
}

TEST_F(ManifestTest, AFolderIsNoFileAndAFileIsGivenOnce) {
  const std::string a = dir_.Write("a.yaml", kWorker);
  EXPECT_THAT(FaultsOf(LoadManifests({dir_.path()}).status()),
              ElementsAre(HasSubstr(": want a YAML file, got a folder")));
  EXPECT_THAT(FaultsOf(LoadManifests({a, absl::StrCat(dir_.path(), "/./a.yaml")}).status()),
              ElementsAre(HasSubstr("a.yaml: want each file once, got it twice")));
}

struct FaultCase {
  const char* name;
  std::string text;
  std::string fault;  // the only one
};
class FaultTest : public ManifestTest, public testing::WithParamInterface<FaultCase> {};

TEST_P(FaultTest, NamesPlaceObjectFieldWantedAndGot) {
  EXPECT_THAT(Faults(GetParam().text), ElementsAre(HasSubstr(GetParam().fault)));
}

std::string Deployment(const std::string& container) {
  return absl::StrCat(
      "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec:\n"
      "  template: {spec: {containers: [",
      container, "]}}\n");
}
std::string Scaled(const std::string& spec) {
  return absl::StrCat(kWorker,
                      "---\napiVersion: keda.sh/v1alpha1\nkind: ScaledObject\n"
                      "metadata: {name: x}\nspec:\n",
                      spec);
}
constexpr char kTrigger[] = "  triggers: [{type: redis}]\n";
constexpr char kTarget[] = "  scaleTargetRef: {name: worker}\n";

INSTANTIATE_TEST_SUITE_P(
    Files, FaultTest,
    testing::ValuesIn<FaultCase>({
        {"Empty", "", "a.yaml: want at least one object, got none"},
        {"Separators", "---\n---\n", "a.yaml: want at least one object, got none"},
        {"BrokenYaml", "a: 1\nb: [\n", "a.yaml: line 3, column 1: "},
        {"List", "- a\n",
         "document 1, line 1: the document: want an object with apiVersion and "
         "kind, got an array"},
        {"Text", "hello\n", "got \"hello\""},
        {"NoKind", "apiVersion: v1\n", "kind: want one of Deployment, ScaledObject"},
        {"KindIsNoText", "kind: 5\n", "kind: want one of"},
        {"NoApiVersion", "kind: Secret\n", "apiVersion: want v1 for a Secret, got nothing"},
        {"OtherApiVersion", "apiVersion: apps/v9\nkind: Deployment\nmetadata: {name: a}\n",
         "document 1, line 1: apiVersion: want apps/v1 for a Deployment, got \"apps/v9\""},
        {"NoMetadata", "apiVersion: v1\nkind: Secret\n", "metadata: want an object, got nothing"},
        {"NoName", "apiVersion: v1\nkind: Secret\nmetadata: {}\n", "metadata.name: want"},
        {"NameIsNoDnsName", "apiVersion: v1\nkind: Secret\nmetadata: {name: My_App}\n",
         "metadata.name: want lower-case letters, digits, - and . between them, got \"My_App\""},
        {"KeyTwice", "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nkind: Secret\n",
         "line 4: kind: want each key once, got it twice"},
        {"ListAsKey", "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n[a]: 5\n",
         "want a word as key"},
        {"AliasOfItself", "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nx: &x [*x]\n",
         "want at most 100 levels, got more"},
        {"SameObjectTwice", absl::StrCat(kWorker, "---\n", kWorker),
         "document 2, line 11, Deployment default/worker: metadata.name: want a name that no other "
         "Deployment has, got that of "},
        {"TypeOfAField", Scaled(absl::StrCat(kTarget, kTrigger, "  maxReplicaCount: \"5\"\n")),
         "document 2, line 15, ScaledObject default/x: spec.maxReplicaCount: want"},
        {"NotSupported",
         Scaled(absl::StrCat(kTarget, kTrigger,
                             "  advanced: {restoreToOriginal"
                             "ReplicaCount: true}\n")),
         "spec.advanced.restoreToOriginalReplicaCount: want nothing (it is not supported yet)"},
        {"BehaviorOfTheHpa",
         Scaled(absl::StrCat(kTarget, kTrigger,
                             "  advanced:\n    horizontalPodAutoscalerConfig:\n      behavior:\n"
                             "        scaleUp:\n          policies: [{type: Pod, value: 1, "
                             "periodSeconds: 15}]\n")),
         "line 19, ScaledObject default/x: "
         "spec.advanced.horizontalPodAutoscalerConfig.behavior.scaleUp.policies[0].type: want Pods "
         "or Percent, got \"Pod\""},
        {"TargetOfAnotherKind",
         Scaled(absl::StrCat("  scaleTargetRef: {name: worker, kind: "
                             "StatefulSet}\n",
                             kTrigger)),
         "spec.scaleTargetRef.kind: want Deployment (nothing else becomes local processes), got "
         "\"StatefulSet\""},
        {"TargetIsNotThere", Scaled(absl::StrCat("  scaleTargetRef: {name: other}\n", kTrigger)),
         "ScaledObject default/x: spec.scaleTargetRef.name: want a Deployment that one of the "
         "files has, got \"other\""},
        {"AuthenticationIsNotThere",
         Scaled(absl::StrCat(kTarget,
                             "  triggers: [{type: redis, authenticationRef: {name: a}}]\n")),
         "spec.triggers[0].authenticationRef.name: want a TriggerAuthentication that one of the "
         "files has, got \"a\""},
        {"AuthenticationIsIncomplete",
         "apiVersion: keda.sh/v1alpha1\nkind: TriggerAuthentication\nmetadata: {name: a}\n"
         "spec: {secretTargetRef: [{parameter: p, name: s}]}\n",
         "line 4, TriggerAuthentication default/a: spec.secretTargetRef[0].key: want"},
        {"NoSpec", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n", "spec: want"},
        {"NoCommand", Deployment("{name: a, image: a}"),
         "line 5, Deployment default/d: spec.template.spec.containers[0].command: want the command "
         "to run as a local process"},
        {"CommandIsNotThere", Deployment("{name: a, command: [no-such-program]}"),
         "spec.template.spec.containers[0].command[0]: want a program that can be run on this "
         "machine, got \"no-such-program\""},
        {"CommandIsAFolder", Deployment("{name: a, command: [/tmp]}"), "got \"/tmp\""},
        {"RelativeToTheWorkingDir", Deployment("{name: a, command: [./sh], workingDir: /tmp}"),
         "got \"./sh\""},
        {"NoWorkingDir", Deployment("{name: a, command: [sh], workingDir: /nowhere}"),
         "containers[0].workingDir: want a folder of this machine, got \"/nowhere\""},
        {"TwoContainers", Deployment("{name: a, command: [sh]}, {name: b, command: [sh]}"),
         "spec.template.spec.containers[1]: a local process cannot have this"},
        {"SecretIsNoBase64",
         "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n"
         "data: {p: \"hunter2!\"}\n",
         "line 4, Secret default/a: data.p: want base64 (plain text belongs in stringData), got "
         "something else"},
        {"SecretIsANumber",
         "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n"
         "stringData: {p: 1234}\n",
         "stringData.p: want a text in quotes, got something else"},
    }),
    [](const testing::TestParamInfo<FaultCase>& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace outrigger::controller::local
