// SPDX-License-Identifier: Apache-2.0
#include "operator/api/object_meta.h"

#include <absl/hash/hash_testing.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <string>

namespace outrigger::controller::api {
namespace {

boost::json::value Object(const std::string& metadata) {
  return boost::json::parse("{\"metadata\":" + metadata + "}");
}

TEST(ObjectMetaTest, ReadsAndPrintsEverything) {
  const boost::json::value object = Object(R"({
    "name": "web", "namespace": "default", "uid": "u-1", "resourceVersion": "42", "generation": 3,
    "labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["finalizer.keda.sh"],
    "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u-2"},
                        {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "so", "uid": "u-3",
                         "controller": true, "blockOwnerDeletion": true}],
    "creationTimestamp": "2026-01-02T03:04:05Z", "deletionTimestamp": "2026-01-02T04:04:05+01:00"})");
  const absl::StatusOr<ObjectMeta> meta = ParseObjectMeta(object);
  ASSERT_TRUE(meta.ok()) << meta.status();
  EXPECT_EQ(meta->Key().ToString(), "default/web");
  EXPECT_EQ(meta->generation, 3);
  EXPECT_EQ(ControllerOf(*meta)->uid, "u-3");
  EXPECT_EQ(*meta->deletion_timestamp - *meta->creation_timestamp, absl::ZeroDuration());

  const boost::json::value again{{"metadata", ObjectMetaToJson(*meta)}};
  const absl::StatusOr<ObjectMeta> reread = ParseObjectMeta(again);
  ASSERT_TRUE(reread.ok()) << reread.status();
  EXPECT_EQ(ObjectMetaToJson(*reread), ObjectMetaToJson(*meta));
  EXPECT_EQ(reread->owner_references, meta->owner_references);
}

// Found by fuzzing: a year was printed with three digits.
TEST(TimestampTest, EarlyYearsKeepFourDigits) {
  const absl::StatusOr<absl::Time> time = ParseTimestamp("t", "0226-01-02T03:04:05Z");
  ASSERT_TRUE(time.ok()) << time.status();
  EXPECT_EQ(FormatTimestamp(*time), "0226-01-02T03:04:05Z");
}

TEST(TimestampTest, WordsAndLongYearsAreNoTimes) {
  for (const char* text :
       {"infinite-future", "infinite-past", "12026-01-02T03:04:05Z", "", "2026"}) {
    EXPECT_EQ(ParseTimestamp("t", text).status().code(), absl::StatusCode::kInvalidArgument)
        << text;
  }
}

TEST(ObjectMetaTest, HasNoControllerWithoutTheFlag) {
  const absl::StatusOr<ObjectMeta> meta =
      ParseObjectMeta(Object(R"({"name":"a","ownerReferences":[{"name":"b"}]})"));
  ASSERT_TRUE(meta.ok()) << meta.status();
  EXPECT_EQ(ControllerOf(*meta), nullptr);
}

struct Case {
  const char* name;
  const char* metadata;
  const char* message;
};
class ObjectMetaRefusedTest : public testing::TestWithParam<Case> {};

TEST_P(ObjectMetaRefusedTest, NamesPathWantedAndGot) {
  const absl::Status status = ParseObjectMeta(Object(GetParam().metadata)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(status.message()), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Objects, ObjectMetaRefusedTest,
    testing::ValuesIn<Case>({
        {"NoMetadata", "null", "metadata: want an object, got nothing"},
        {"MetadataIsText", "\"x\"", "metadata: want an object, got \"x\""},
        {"NoName", "{}", "metadata.name: want a non-empty string, got nothing"},
        {"NameIsNumber", R"({"name":5})", "metadata.name: want a string, got 5"},
        {"LabelIsBool", R"({"name":"a","labels":{"x":true}})",
         "metadata.labels[x]: want a string, got true"},
        {"FinalizersAreText", R"({"name":"a","finalizers":"x"})",
         "metadata.finalizers: want an array, got \"x\""},
        {"BadTime", R"({"name":"a","creationTimestamp":"noon"})",
         "metadata.creationTimestamp: want an RFC 3339 time, got \"noon\""},
        {"OwnerIsArray", R"({"name":"a","ownerReferences":[[]]})",
         "metadata.ownerReferences[0]: want an object, got an array"},
        {"HugeGeneration", R"({"name":"a","generation":1e99})",
         "metadata.generation: want an integer, got 1E99"},
    }),
    [](const testing::TestParamInfo<Case>& info) { return std::string(info.param.name); });

TEST(NamespacedNameTest, OrdersAndHashesByNamespaceThenName) {
  EXPECT_LT((NamespacedName{"a", "z"}), (NamespacedName{"b", "a"}));
  EXPECT_EQ((NamespacedName{"", "cluster-wide"}.ToString()), "cluster-wide");
  EXPECT_TRUE(absl::VerifyTypeImplementsAbslHashCorrectly(
      {NamespacedName{"a", "b"}, NamespacedName{"ab", ""}, NamespacedName{"", "ab"},
       NamespacedName{}}));
}

}  // namespace
}  // namespace outrigger::controller::api
