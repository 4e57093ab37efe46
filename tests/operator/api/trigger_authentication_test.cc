// SPDX-License-Identifier: Apache-2.0
#include "operator/api/trigger_authentication.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <string>

namespace outrigger::controller::api {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

absl::StatusOr<TriggerAuthentication> Parse(const std::string& kind, const std::string& spec) {
  return ParseTriggerAuthentication(boost::json::parse(
      R"({"kind":")" + kind + R"(","metadata":{"name":"a","namespace":"n"},"spec":)" + spec + "}"));
}

TEST(TriggerAuthenticationTest, ReadsSecretReferencesInOrder) {
  const absl::StatusOr<TriggerAuthentication> parsed =
      Parse("TriggerAuthentication", R"({"secretTargetRef":[
      {"parameter":"username","name":"s","key":"u"},{"parameter":"password","name":"s","key":"p"}],
      "podIdentity":{"provider":"none"},"env":[]})");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_THAT(parsed->secret_target_refs, ElementsAre(SecretTargetRef{"username", "s", "u"},
                                                      SecretTargetRef{"password", "s", "p"}));
  EXPECT_THAT(parsed->other_sources, IsEmpty());
  EXPECT_EQ(parsed->meta.Key().ToString(), "n/a");
}

TEST(TriggerAuthenticationTest, NamesTheSourcesThatAreNotSecrets) {
  const absl::StatusOr<TriggerAuthentication> parsed =
      Parse("ClusterTriggerAuthentication",
            R"({"podIdentity":{"provider":"aws"},"env":[{"parameter":"x","name":"Y"}],
      "hashiCorpVault":{},"filePath":"creds.json","azureKeyVault":null})");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_THAT(parsed->other_sources,
              ElementsAre("podIdentity", "env", "filePath", "hashiCorpVault"));
}

struct Case {
  const char* name;
  const char* kind;
  const char* spec;
  const char* message;
};
class TriggerAuthenticationRefusedTest : public testing::TestWithParam<Case> {};

TEST_P(TriggerAuthenticationRefusedTest, NamesPathWantedAndGot) {
  const absl::Status status = Parse(GetParam().kind, GetParam().spec).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(status.message()), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Objects, TriggerAuthenticationRefusedTest,
    testing::ValuesIn<Case>({
        {"OtherKind", "Secret", "{}",
         "kind: want TriggerAuthentication or ClusterTriggerAuthentication, got \"Secret\""},
        {"NoKey", "TriggerAuthentication", R"({"secretTargetRef":[{"parameter":"p","name":"s"}]})",
         "spec.secretTargetRef[0].key: want a non-empty string, got nothing"},
        {"RefIsText", "TriggerAuthentication", R"({"secretTargetRef":["x"]})",
         "spec.secretTargetRef[0]: want an object, got \"x\""},
        {"SpecIsArray", "TriggerAuthentication", "[]", "spec: want an object, got an array"},
    }),
    [](const testing::TestParamInfo<Case>& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace outrigger::controller::api
