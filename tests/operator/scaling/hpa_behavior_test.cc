// SPDX-License-Identifier: Apache-2.0
#include "operator/scaling/hpa_behavior.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <string>

namespace outrigger::controller::scaling {
namespace {

struct Case {
  const char* name;
  const char* given;
  const char* from_server;
};
class HpaBehaviorTest : public testing::TestWithParam<Case> {};

TEST_P(HpaBehaviorTest, APartlyGivenOneEqualsWhatTheServerMakesOfIt) {
  EXPECT_EQ(HpaBehavior::WithDefaults(boost::json::parse(GetParam().given)),
            HpaBehavior::WithDefaults(boost::json::parse(GetParam().from_server)));
}

INSTANTIATE_TEST_SUITE_P(
    Behaviors, HpaBehaviorTest,
    testing::ValuesIn<Case>({
        {"Empty", "{}",
         R"({"scaleUp":{"stabilizationWindowSeconds":0,"selectPolicy":"Max","policies":[
           {"type":"Pods","value":4,"periodSeconds":15},{"type":"Percent","value":100,"periodSeconds":15}]},
         "scaleDown":{"selectPolicy":"Max","policies":[{"type":"Percent","value":100,"periodSeconds":15}]}})"},
        {"WindowOnly", R"({"scaleDown":{"stabilizationWindowSeconds":0}})",
         R"({"scaleUp":{"stabilizationWindowSeconds":0,"selectPolicy":"Max","policies":[
           {"type":"Pods","value":4,"periodSeconds":15},{"type":"Percent","value":100,"periodSeconds":15}]},
         "scaleDown":{"stabilizationWindowSeconds":0,"selectPolicy":"Max","policies":[
           {"type":"Percent","value":100,"periodSeconds":15}]}})"},
        {"ToleranceAsNumber", R"({"scaleUp":{"tolerance":0.05}})",
         R"({"scaleUp":{"tolerance":"50m"}})"},
        {"UnknownMembersAreDropped", R"({"scaleUp":{"speed":"high"},"x":1})", "{}"},
        {"NullIsAbsent", R"({"scaleUp":null})", "{}"},
    }),
    [](const testing::TestParamInfo<Case>& info) { return std::string(info.param.name); });

TEST(HpaBehaviorTest, TellsDifferentOnesApart) {
  const HpaBehavior defaults = HpaBehavior::WithDefaults(nullptr);
  for (const char* text :
       {R"({"scaleDown":{"stabilizationWindowSeconds":300}})",
        R"({"scaleUp":{"selectPolicy":"Min"}})",
        R"({"scaleUp":{"policies":[{"type":"Pods","value":1,"periodSeconds":60}]}})",
        R"({"scaleDown":{"tolerance":"0"}})"}) {
    EXPECT_FALSE(HpaBehavior::WithDefaults(boost::json::parse(text)) == defaults) << text;
  }
}

}  // namespace
}  // namespace outrigger::controller::scaling
