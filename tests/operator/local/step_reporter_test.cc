// SPDX-License-Identifier: Apache-2.0
#include "operator/local/step_reporter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace outrigger::controller::local {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class StepReporterTest : public testing::Test {
 protected:
  StepReporterTest() { state_.objects.push_back({.name = "default/worker"}); }

  ObjectView& object() { return state_.objects[0]; }
  void Decide(const std::string& inputs, const std::string& outcome) {
    object().outcome = outcome;
    object().explanation = inputs + "; " + outcome;
  }
  std::vector<std::string> Look() { return reporter_.Compare(state_); }

  LocalState state_;
  StepReporter reporter_;
};

TEST_F(StepReporterTest, TheFirstLookTellsWhereItStarts) {
  EXPECT_THAT(Look(), ElementsAre("default/worker: 0 replicas at the start"));
  EXPECT_THAT(Look(), IsEmpty());
}

TEST_F(StepReporterTest, AStepFromZeroIsTheOperators) {
  Look();
  object().replicas = 1;
  object().hpa_replicas = 1;
  object().hpa_message = "New size: 1; reason: All metrics below target";
  Decide("a=30", "active at 0: activate -> scale to 1");
  object().scaled_because = object().explanation;
  Decide("a=31", "active: min to max is the HPA's work -> stay at 1");  // soon after
  EXPECT_THAT(Look(), ElementsAre("default/worker: 0 -> 1 replicas  (operator: a=30; active at 0: "
                                  "activate -> scale to 1)"));
}

TEST_F(StepReporterTest, AStepThatTheHpaMadeIsTheHpas) {
  object().replicas = 1;
  Look();
  object().replicas = 5;
  object().hpa_replicas = 5;
  object().hpa_message = "New size: 5; reason: external metric a above target";
  EXPECT_THAT(Look(), ElementsAre("default/worker: 1 -> 5 replicas  (HPA: New size: 5; reason: "
                                  "external metric a above target)"));
}

TEST_F(StepReporterTest, AStepOfAnotherSizeThanTheHpasIsTheOperators) {
  object().replicas = 2;
  object().hpa_replicas = 2;
  object().hpa_message = "New size: 2";
  Look();
  object().replicas = 4;
  object().scaled_because =
      "a failed; falling back without an HPA: raise to fallback.replicas -> scale to 4";
  EXPECT_THAT(Look(), ElementsAre(testing::HasSubstr("2 -> 4 replicas  (operator: a failed")));
}

TEST_F(StepReporterTest, ACountDownIsNoNewDecisionButAnotherValueIs) {
  Look();
  Decide("a=0", "inactive, cooling down for another 4s -> stay at 5");
  EXPECT_THAT(Look(), ElementsAre("default/worker: a=0; inactive, cooling down for another 4s -> "
                                  "stay at 5"));
  Decide("a=0", "inactive, cooling down for another 3s -> stay at 5");
  EXPECT_THAT(Look(), IsEmpty());
  Decide("a=7", "inactive, cooling down for another 2s -> stay at 5");
  EXPECT_THAT(Look().size(), 1u);
  Decide("a=7", "inactive and cooled down -> stay at 5");
  EXPECT_THAT(Look().size(), 1u);
}

TEST_F(StepReporterTest, NotReadyIsToldWhenItBeginsAndWhenItEnds) {
  Look();
  object().not_ready = "TriggerError: down";
  EXPECT_THAT(Look(), ElementsAre("default/worker: not ready: TriggerError: down"));
  EXPECT_THAT(Look(), IsEmpty());
  object().not_ready.clear();
  EXPECT_THAT(Look(), ElementsAre("default/worker: ready again"));
}

TEST_F(StepReporterTest, APluginThatIsReadyFromTheStartIsNoNews) {
  state_.plugins = {{.name = "mine", .state = "unavailable", .reason = "refused"},
                    {.name = "redis", .state = "ready"}};
  EXPECT_THAT(Look(), ElementsAre("plugin mine: unavailable: refused",
                                  "default/worker: 0 replicas at the start"));
  state_.plugins[0] = {.name = "mine", .state = "ready"};
  EXPECT_THAT(Look(), ElementsAre("plugin mine: ready"));
}

TEST(WithoutSelectorTest, TakesOutWhatGoPrintsOfASelector) {
  EXPECT_EQ(WithoutSelector("external metric s0-a(&LabelSelector{MatchLabels:map[string]string{"
                            "scaledobject.keda.sh/name: w,},MatchExpressions:"
                            "[]LabelSelectorRequirement{},}) above target"),
            "external metric s0-a above target");
  EXPECT_EQ(WithoutSelector("All metrics below target"), "All metrics below target");
  EXPECT_EQ(WithoutSelector("cut (&LabelSelector{Match"), "cut (&LabelSelector{Match");
}

}  // namespace
}  // namespace outrigger::controller::local
