// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/memory_object.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <string>

namespace outrigger::controller::kube::memory {
namespace {

struct MergeCase {
  const char* name;
  const char* target;
  const char* patch;
  const char* want;
};
class MergePatchTest : public testing::TestWithParam<MergeCase> {};

TEST_P(MergePatchTest, FollowsRfc7386) {
  boost::json::value target = boost::json::parse(GetParam().target);
  MergePatch(target, boost::json::parse(GetParam().patch));
  EXPECT_EQ(target, boost::json::parse(GetParam().want));
}

// The examples of RFC 7386, appendix A.
INSTANTIATE_TEST_SUITE_P(
    Rfc7386, MergePatchTest,
    testing::ValuesIn<MergeCase>({
        {"Replaces", R"({"a":"b"})", R"({"a":"c"})", R"({"a":"c"})"},
        {"Adds", R"({"a":"b"})", R"({"b":"c"})", R"({"a":"b","b":"c"})"},
        {"Removes", R"({"a":"b"})", R"({"a":null})", R"({})"},
        {"RemovesOne", R"({"a":"b","b":"c"})", R"({"a":null})", R"({"b":"c"})"},
        {"ReplacesArray", R"({"a":["b"]})", R"({"a":"c"})", R"({"a":"c"})"},
        {"Nests", R"({"a":{"b":"c"}})", R"({"a":{"b":"d","c":null}})", R"({"a":{"b":"d"}})"},
        {"ArraysAreWhole", R"({"a":[{"b":"c"}]})", R"({"a":[1]})", R"({"a":[1]})"},
        {"NullInArrayStays", R"({"a":"foo"})", R"({"a":[null]})", R"({"a":[null]})"},
        {"DropsNullsOfNewObjects", R"({})", R"({"a":{"bb":{"ccc":null}}})", R"({"a":{"bb":{}}})"},
    }),
    [](const testing::TestParamInfo<MergeCase>& info) { return std::string(info.param.name); });

struct NameCase {
  const char* name;
  std::string text;
  bool valid;
};
class NameFaultTest : public testing::TestWithParam<NameCase> {};

TEST_P(NameFaultTest, TakesDnsSubdomainsOnly) {
  EXPECT_EQ(NameFault(GetParam().text).empty(), GetParam().valid) << NameFault(GetParam().text);
}

INSTANTIATE_TEST_SUITE_P(Names, NameFaultTest,
                         testing::ValuesIn<NameCase>({
                             {"Plain", "orders", true},
                             {"Dots", "a.b-c.0", true},
                             {"Upper", "Orders", false},
                             {"Underscore", "a_b", false},
                             {"LeadingDash", "-a", false},
                             {"TrailingDash", "a-", false},
                             {"EmptyLabel", "a..b", false},
                             {"Longest", std::string(253, 'a'), true},
                             {"TooLong", std::string(254, 'a'), false},
                         }),
                         [](const testing::TestParamInfo<NameCase>& info) {
                           return std::string(info.param.name);
                         });

}  // namespace
}  // namespace outrigger::controller::kube::memory
