// SPDX-License-Identifier: Apache-2.0
#include "operator/api/label_selector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace outrigger::controller::api {
namespace {

using testing::HasSubstr;

struct PrintCase {
  const char* name;
  const char* text;
  const char* printed;
};
class LabelSelectorPrintTest : public testing::TestWithParam<PrintCase> {};

TEST_P(LabelSelectorPrintTest, PrintsTheSameSelectorInCanonicalText) {
  const absl::StatusOr<LabelSelector> selector = LabelSelector::Parse(GetParam().text);
  ASSERT_TRUE(selector.ok()) << selector.status();
  EXPECT_EQ(selector->Print(), GetParam().printed);
  const absl::StatusOr<LabelSelector> again = LabelSelector::Parse(selector->Print());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->requirements(), selector->requirements());
}

INSTANTIATE_TEST_SUITE_P(
    Texts, LabelSelectorPrintTest,
    testing::ValuesIn<PrintCase>({
        {"Empty", "", ""},
        {"Blank", " \t", ""},
        {"Equals", "a=b", "a=b"},
        {"DoubleEquals", "a == b", "a==b"},
        {"EmptyValue", "a=", "a="},
        {"EmptyValueInside", "a=,b=c", "a=,b=c"},
        {"NotEquals", "a!=b", "a!=b"},
        {"SortsKeys", "z=1,a=2", "a=2,z=1"},
        {"In", "env in (b,a,b)", "env in (a,b)"},
        {"NotIn", "env notin(x)", "env notin (x)"},
        {"EmptySet", "env in ()", "env in ()"},
        {"SetWithEmptyValue", "x in (foo,,baz)", "x in (,baz,foo)"},
        {"Exists", "a", "a"},
        {"DoesNotExist", "! a", "!a"},
        {"Order", "a>1,b<2", "a>1,b<2"},
        {"KeywordAsKey", "in in (in,notin)", "in in (in,notin)"},
        {"KeywordAsExistingKey", "in,notin", "in,notin"},
        {"PrefixedKey", "scaledobject.keda.sh/name=web", "scaledobject.keda.sh/name=web"},
    }),
    [](const testing::TestParamInfo<PrintCase>& info) { return std::string(info.param.name); });

struct RefusedCase {
  const char* name;
  const char* text;
  const char* message;
};
class LabelSelectorRefusedTest : public testing::TestWithParam<RefusedCase> {};

TEST_P(LabelSelectorRefusedTest, NamesWhatWasWanted) {
  const absl::Status status = LabelSelector::Parse(GetParam().text).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Texts, LabelSelectorRefusedTest,
    testing::ValuesIn<RefusedCase>({
        {"NoKey", "=b", "want a key, got \"=\""},
        {"TrailingComma", "a=b,", "want a key, got the end"},
        {"CommaOnly", ",", "want a key, got \",\""},
        {"TwoWords", "a b", "want one of = == != > < in notin, got \"b\""},
        {"NotBeforeBinary", "!a=b", "want ',' or the end, got \"=\""},
        {"SetWithoutParenthesis", "a in b", "want '(', got \"b\""},
        {"OpenSet", "a in (b", "want ',' or ')', got the end"},
        {"SetInSet", "a in ((b))", "want ',' or ')', got \"(\""},
        {"OrderOfText", "a>x", "a: want an integer after > or <, got \"x\""},
        {"BadValue", "a=-b", "a: want a label value"},
        {"BadKey", "-a=b", "want a key of 1 to 63"},
        {"BadPrefix", "Not_A_Domain/a=b", "want a DNS subdomain before the '/'"},
        {"TwoSlashes", "a/b/c=d", "want a key of 1 to 63"},
        {"ThreeEquals", "a===b", "want a value, got \"=\""},
    }),
    [](const testing::TestParamInfo<RefusedCase>& info) { return std::string(info.param.name); });

struct MatchCase {
  const char* name;
  const char* text;
  bool wanted;
};
class LabelSelectorMatchTest : public testing::TestWithParam<MatchCase> {};

TEST_P(LabelSelectorMatchTest, MatchesLabels) {
  const Labels labels = {{"app", "web"}, {"replicas", "5"}};
  EXPECT_EQ(LabelSelector::Parse(GetParam().text)->Matches(labels), GetParam().wanted)
      << GetParam().text;
}

INSTANTIATE_TEST_SUITE_P(Selectors, LabelSelectorMatchTest,
                         testing::ValuesIn<MatchCase>({
                             {"Empty", "", true},
                             {"Equal", "app=web", true},
                             {"Unequal", "app=db", false},
                             {"AllMustMatch", "app=web,replicas=6", false},
                             {"NotEqual", "app!=db", true},
                             {"NotEqualOfMissingKey", "tier!=x", true},
                             {"In", "app in (db,web)", true},
                             {"NotIn", "app notin (db,web)", false},
                             {"NotInOfMissingKey", "tier notin (x)", true},
                             {"Exists", "app", true},
                             {"DoesNotExist", "!app", false},
                             {"Greater", "replicas>4", true},
                             {"NotGreater", "replicas>5", false},
                             {"Less", "replicas<6", true},
                             {"OrderOfText", "app<6", false},
                             {"OrderOfMissingKey", "tier>0", false},
                         }),
                         [](const testing::TestParamInfo<MatchCase>& info) {
                           return std::string(info.param.name);
                         });

TEST(ParseEqualitySelectorTest, TakesKeyValuePairs) {
  EXPECT_EQ(*ParseEqualitySelector(""), Labels());
  EXPECT_EQ(*ParseEqualitySelector("scaledobject.keda.sh/name=web"),
            (Labels{{"scaledobject.keda.sh/name", "web"}}));
  EXPECT_EQ(*ParseEqualitySelector("a=b, c = d,e="), (Labels{{"a", "b"}, {"c", "d"}, {"e", ""}}));
}

TEST(ParseEqualitySelectorTest, RefusesEverythingElse) {
  for (const char* text : {"a", "!a", "a!=b", "a==b", "a in (b)", "a in (b,c)", "a>1", "a=b,", ",",
                           "=b", "a=b=c", "a=%"}) {
    EXPECT_EQ(ParseEqualitySelector(text).status().code(), absl::StatusCode::kInvalidArgument)
        << text;
  }
}

TEST(LabelValueFaultTest, LimitsLengthAndCharacters) {
  EXPECT_EQ(LabelValueFault(""), "");
  EXPECT_EQ(LabelValueFault(std::string(63, 'a')), "");
  EXPECT_THAT(LabelValueFault(std::string(64, 'a')), HasSubstr("at most 63 characters, got 64"));
  EXPECT_THAT(LabelValueFault("a b"), HasSubstr("got \"a b\""));
  EXPECT_THAT(LabelValueFault("a."), HasSubstr("alphanumeric at both ends"));
}

}  // namespace
}  // namespace outrigger::controller::api
