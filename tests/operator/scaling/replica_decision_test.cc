// SPDX-License-Identifier: Apache-2.0
#include "operator/scaling/replica_decision.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace outrigger::controller::scaling {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace reason = api::reason;

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);

api::ScaledObject Web(std::optional<int32_t> min = std::nullopt) {
  api::ScaledObject object;
  object.meta.name = "web";
  object.meta.namespace_name = "default";
  object.meta.generation = 4;
  object.meta.creation_timestamp = kNow - absl::Hours(1);
  object.spec.scale_target_ref.name = "web-target";
  object.spec.min_replica_count = min;
  object.spec.max_replica_count = 10;
  object.spec.triggers = {{.type = "redis"}};
  object.status.scale_target_kind = "apps/v1.Deployment";
  return object;
}

TriggerFacts Answered(bool active, int32_t index = 0) {
  return {.trigger_index = index,
          .type = "redis",
          .metric_name = absl::StrCat("s", index, "-orders"),
          .active = active,
          .value = active ? 23 : 0,
          .target = 5};
}

TriggerFacts Failed(int32_t failed_cycles, int32_t index = 0) {
  return {.trigger_index = index,
          .type = "redis",
          .metric_name = absl::StrCat("s", index, "-orders"),
          .status = absl::UnavailableError("connection refused"),
          .failed_cycles = failed_cycles};
}

DecisionInputs Inputs(int32_t current, std::vector<TriggerFacts> triggers) {
  return {.current_replicas = current,
          .hpa_exists = true,
          .triggers = std::move(triggers),
          .last_active = kNow - absl::Seconds(400),
          .now = kNow};
}

std::string Text(const std::optional<ConditionChange>& change) {
  return change.has_value() ? absl::StrCat(change->status, " ", change->reason) : "keeps";
}

// ---- the table of the sheet -------------------------------------------------------------------

// Rows about idleReplicaCount, pausing and forced activation are missing: an object that uses them
// is not decided upon yet.
struct SheetCase {
  const char* name;
  std::optional<int32_t> min;
  int32_t current;
  bool active;
  int32_t failed_cycles;                   // of a second trigger; 0: there is none
  std::optional<int32_t> fallback;         // fallback.replicas, failureThreshold 3
  std::optional<int> last_active_seconds;  // ago; absent: never
  int initial_cooldown_seconds;            // the object is 60 s old
  std::optional<int32_t> scale_to;
  const char* ready;
  const char* active_condition;
  bool updates_last_active;
};
class SheetTest : public testing::TestWithParam<SheetCase> {};

TEST_P(SheetTest, Decides) {
  const SheetCase& row = GetParam();
  api::ScaledObject object = Web(row.min);
  object.meta.creation_timestamp = kNow - absl::Seconds(60);
  object.spec.initial_cooldown_period_seconds = row.initial_cooldown_seconds;
  if (row.fallback.has_value())
    object.spec.fallback = api::Fallback{.failure_threshold = 3, .replicas = *row.fallback};
  DecisionInputs inputs = Inputs(row.current, {Answered(row.active)});
  if (row.failed_cycles > 0) inputs.triggers.push_back(Failed(row.failed_cycles, 1));
  inputs.last_active.reset();
  if (row.last_active_seconds.has_value())
    inputs.last_active = kNow - absl::Seconds(*row.last_active_seconds);

  const Decision decision = Decide(object, inputs);
  EXPECT_EQ(decision.scale_to, row.scale_to) << decision.explanation;
  EXPECT_EQ(Text(decision.ready), row.ready);
  EXPECT_EQ(Text(decision.active), row.active_condition);
  EXPECT_EQ(decision.update_last_active, row.updates_last_active);
}

constexpr char kOk[] = "True ScaledObjectReady";
constexpr char kOn[] = "True ScalerActive";
constexpr char kOff[] = "False ScalerNotActive";
constexpr char kCooling[] = "False ScalerCooldown";

// Shows R17.
INSTANTIATE_TEST_SUITE_P(
    Rows, SheetTest,
    testing::ValuesIn<SheetCase>({
        // name, min, current, active, failed, fallback, last active, initial | scale, ready, active
        {"ActivateToOne", 0, 0, true, 0, {}, 400, 0, 1, kOk, kOn, true},
        {"ActivateToMin", 3, 0, true, 0, {}, 400, 0, 3, kOk, kOn, true},
        {"BelowMinIsTheHpas", 3, 2, true, 0, {}, 400, 0, {}, kOk, kOn, true},
        {"ActiveWithYoungError", 0, 5, true, 1, {}, 400, 0, {}, kOk, kOn, true},
        {"ActiveWithUnhealthy",
         0,
         5,
         true,
         3,
         {},
         400,
         0,
         {},
         "Unknown PartialTriggerError",
         kOn,
         true},
        {"ActivateDespiteError", 0, 0, true, 1, {}, 400, 0, 1, kOk, kOn, true},
        {"CooledDown", 0, 5, false, 0, {}, 400, 0, 0, kOk, kOff, false},
        {"CoolingDown", 0, 5, false, 0, {}, 100, 0, {}, kOk, kCooling, false},
        {"AtTheEndOfCooldown", 0, 5, false, 0, {}, 300, 0, {}, kOk, kCooling, false},
        {"InitialCooldown", 0, 5, false, 0, {}, {}, 120, {}, kOk, kCooling, false},
        {"NoInitialCooldown", 0, 5, false, 0, {}, {}, 0, 0, kOk, kOff, false},
        {"InitialCooldownOver", 0, 5, false, 0, {}, {}, 59, 0, kOk, kOff, false},
        {"UnsetMinIsZero", {}, 5, false, 0, {}, 400, 0, 0, kOk, kOff, false},
        {"RaiseToMin", 3, 2, false, 0, {}, 400, 0, 3, kOk, kOff, false},
        {"DownToMinIsTheHpas", 1, 5, false, 0, {}, 400, 0, {}, kOk, kOff, false},
        {"RestsAtZero", 0, 0, false, 0, {}, 400, 0, {}, kOk, kOff, false},
        {"YoungErrorHolds", 0, 5, false, 1, {}, 400, 0, {}, kOk, "keeps", false},
        {"SecondErrorHolds", 0, 5, false, 2, {}, 400, 0, {}, kOk, "keeps", false},
        {"UnhealthyHolds",
         0,
         5,
         false,
         3,
         {},
         400,
         0,
         {},
         "False TriggerError",
         "Unknown UnknownState",
         false},
        {"ErrorBelowMin",
         3,
         2,
         false,
         3,
         {},
         400,
         0,
         {},
         "False TriggerError",
         "Unknown UnknownState",
         false},
        {"WaitsForFallback", 0, 5, false, 2, 4, 400, 0, {}, kOk, "keeps", false},
        {"WaitsForFallbackToZero", 0, 5, false, 2, 0, 400, 0, {}, kOk, "keeps", false},
        {"FallsBack", 0, 5, false, 3, 4, 400, 0, {}, kOk, kOn, true},
        {"FallsBackFromZero", 0, 0, false, 3, 4, 400, 0, 1, kOk, kOn, true},
        {"FallsBackToZero", 0, 5, false, 3, 0, 400, 0, 0, kOk, kOff, false},
        {"FallsBackToZeroAfterCooldown", 0, 5, false, 3, 0, 100, 0, {}, kOk, kCooling, false},
    }),
    [](const testing::TestParamInfo<SheetCase>& info) { return std::string(info.param.name); });

// ---- errors -----------------------------------------------------------------------------------

// Case B010.
TEST(ReplicaDecisionTest, AnErrorNeverScalesInHoweverLongItLasts) {
  for (int32_t failed = 1; failed < 100; ++failed) {
    const Decision decision = Decide(Web(), Inputs(5, {Failed(failed), Answered(false, 1)}));
    EXPECT_EQ(decision.scale_to, std::nullopt) << decision.explanation;
    EXPECT_EQ(decision.event, ScaleEvent::kNone);
  }
}

// Case B010.
TEST(ReplicaDecisionTest, AnUnhealthyTriggerIsSeenInReadyWithTheReason) {
  const Decision decision = Decide(Web(), Inputs(5, {Failed(3)}));
  EXPECT_EQ(decision.ready->message,
            "1 trigger does not work: trigger 0 (redis) UNAVAILABLE: connection refused");
  EXPECT_EQ(Text(decision.fallback), "False NoFallbackFound");
}

// Case B001.
TEST(ReplicaDecisionTest, ATriggerWithoutASpecFallsBackLikeAnyOther) {
  api::ScaledObject object = Web();
  object.spec.fallback = api::Fallback{.failure_threshold = 3, .replicas = 4};
  TriggerFacts trigger = Failed(3);
  trigger.metric_name.clear();
  DecisionInputs inputs = Inputs(2, {trigger});
  inputs.hpa_exists = false;  // none could be built
  const Decision decision = Decide(object, inputs);
  EXPECT_EQ(Text(decision.fallback), "True FallbackExists");
  EXPECT_EQ(decision.scale_to, 4) << decision.explanation;
}

struct NoHpaCase {
  const char* name;
  int32_t current;
  int32_t replicas;
  std::optional<int32_t> scale_to;
};
class FallbackWithoutHpaTest : public testing::TestWithParam<NoHpaCase> {};

// Shows R16. Case B005.
TEST_P(FallbackWithoutHpaTest, RaisesNeverLowers) {
  api::ScaledObject object = Web();
  object.spec.fallback = api::Fallback{.failure_threshold = 3, .replicas = GetParam().replicas};
  DecisionInputs inputs = Inputs(GetParam().current, {Failed(3)});
  inputs.hpa_exists = false;
  inputs.last_active = kNow;
  EXPECT_EQ(Decide(object, inputs).scale_to, GetParam().scale_to);
}

INSTANTIATE_TEST_SUITE_P(Counts, FallbackWithoutHpaTest,
                         testing::ValuesIn<NoHpaCase>({{"FromZero", 0, 4, 4},
                                                       {"FromBelow", 2, 4, 4},
                                                       {"AtIt", 4, 4, {}},
                                                       {"FromAbove", 8, 4, {}},
                                                       {"NotAboveMax", 2, 400, 10},
                                                       {"ZeroIsNoWish", 2, 0, {}}}),
                         [](const testing::TestParamInfo<NoHpaCase>& info) {
                           return std::string(info.param.name);
                         });

// Case B005, Case B011.
TEST(ReplicaDecisionTest, WithAnHpaTheFallbackIsItsWork) {
  api::ScaledObject object = Web(1);
  object.spec.fallback = api::Fallback{.failure_threshold = 3, .replicas = 3};
  DecisionInputs inputs = Inputs(8, {Failed(4)});
  inputs.has_resource_triggers = true;
  for (const int32_t current : {1, 3, 5, 8}) {
    inputs.current_replicas = current;
    EXPECT_EQ(Decide(object, inputs).scale_to, std::nullopt);
  }
}

// Shows R16.
TEST(ReplicaDecisionTest, FallbackWaitsForItsOwnThreshold) {
  api::ScaledObject object = Web();
  object.spec.fallback = api::Fallback{.failure_threshold = 10, .replicas = 3};
  EXPECT_EQ(Text(Decide(object, Inputs(5, {Failed(9)})).fallback), "False NoFallbackFound");
  EXPECT_EQ(Text(Decide(object, Inputs(5, {Failed(10)})).fallback), "True FallbackExists");
  object.spec.fallback->failure_threshold = 0;
  EXPECT_EQ(Text(Decide(object, Inputs(5, {Failed(1)})).fallback), "True FallbackExists");
}

// Shows R17.
TEST(ReplicaDecisionTest, ActiveIsUnknownOnlyWhileNoneIsActiveAndNoneFallsBack) {
  api::ScaledObject object = Web();
  EXPECT_EQ(Text(Decide(object, Inputs(5, {Failed(3), Answered(false, 1)})).active),
            "Unknown UnknownState");
  EXPECT_EQ(Text(Decide(object, Inputs(5, {Failed(3), Answered(true, 1)})).active), kOn);
  // The second is unhealthy and still short of its threshold; the first falls back, to nothing.
  object.spec.fallback = api::Fallback{.failure_threshold = 10, .replicas = 0};
  EXPECT_EQ(Text(Decide(object, Inputs(5, {Failed(10), Failed(5, 1)})).active), "keeps");
}

// Case B011: one change when the fallback begins, one when it ends, none between.
TEST(ReplicaDecisionTest, AnOutageWithFallbackDoesNotFlap) {
  api::ScaledObject object = Web(1);
  object.spec.fallback = api::Fallback{.failure_threshold = 3, .replicas = 5};
  std::vector<std::string> seen;
  for (int32_t failed = 0; failed <= 20; ++failed) {
    const DecisionInputs inputs = Inputs(5, {failed == 0 ? Answered(true) : Failed(failed)});
    const Decision decision = Decide(object, inputs);
    EXPECT_EQ(decision.scale_to, std::nullopt);
    const std::string now = Text(decision.fallback);
    if (seen.empty() || seen.back() != now) seen.push_back(now);
  }
  EXPECT_THAT(seen, ElementsAre("False NoFallbackFound", "True FallbackExists"));
}

TEST(ReplicaDecisionTest, AMisconfiguredTriggerIsShownAtOnceAndTheOthersDecide) {
  TriggerFacts broken = Failed(0, 1);
  broken.status = absl::InvalidArgumentError("metadata.listLength: want a number > 0, got \"x\"");
  broken.misconfigured = true;
  const Decision idle = Decide(Web(), Inputs(5, {Answered(false), broken}));
  EXPECT_EQ(Text(idle.ready), "False TriggerError");
  EXPECT_THAT(idle.ready->message, HasSubstr("metadata.listLength: want a number > 0"));
  EXPECT_EQ(idle.scale_to, std::nullopt);
  EXPECT_EQ(Text(idle.active), "Unknown UnknownState");

  const Decision busy = Decide(Web(), Inputs(0, {Answered(true), broken}));
  EXPECT_EQ(Text(busy.ready), "False TriggerError");
  EXPECT_EQ(busy.scale_to, 1);
}

// Only a change heals it, so the fallback must not hide what to change.
TEST(ReplicaDecisionTest, AMisconfiguredTriggerIsShownAlsoWhileItFallsBack) {
  api::ScaledObject object = Web();
  object.spec.fallback = api::Fallback{.failure_threshold = 3, .replicas = 5};
  for (const int32_t failed : {1, 3, 9}) {
    TriggerFacts broken = Failed(failed);
    broken.status = absl::InvalidArgumentError("parameter password: want an existing Secret");
    broken.misconfigured = true;
    const Decision decision = Decide(object, Inputs(5, {broken}));
    EXPECT_EQ(Text(decision.ready), "False TriggerError") << failed;
    EXPECT_THAT(decision.ready->message, HasSubstr("want an existing Secret"));
  }
}

TEST(ReplicaDecisionTest, NoTriggersAtAllIsNotNoWork) {
  EXPECT_EQ(Decide(Web(), Inputs(5, {})).scale_to, std::nullopt);
}

// Shows R3: what is said of the same outage stays the same, so that it is written once.
TEST(ReplicaDecisionTest, DetailsThatChangeAtEachPollAreNoNews) {
  api::ScaledObject object = Web();
  const Decision first = Decide(object, Inputs(5, {Failed(3)}));
  api::SetCondition(object.status.conditions, api::kReady, first.ready->status, first.ready->reason,
                    first.ready->message, kNow, object.meta.generation);
  TriggerFacts again = Failed(4);
  again.status = absl::UnavailableError("connection refused from port 40001");
  EXPECT_EQ(Decide(object, Inputs(5, {again})).ready, first.ready);

  again.status = absl::DeadlineExceededError("no answer in 3s");
  EXPECT_EQ(Decide(object, Inputs(5, {again})).ready, first.ready)
      << "refused or silent: the source is down";
  again.status = absl::UnauthenticatedError("AUTH refused");
  EXPECT_EQ(Decide(object, Inputs(5, {again})).ready->message,
            "1 trigger does not work: trigger 0 (redis) UNAUTHENTICATED: AUTH refused");
  object.meta.generation = 5;  // the user changed something: tell the news
  again.status = absl::UnavailableError("connection refused from port 40002");
  EXPECT_THAT(Decide(object, Inputs(5, {again})).ready->message, HasSubstr("40002"));
}

// Case B013: what the HPA sees has no part in Ready.
TEST(ReplicaDecisionTest, OneFailedPollLeavesReadyTrue) {
  EXPECT_EQ(Text(Decide(Web(), Inputs(5, {Failed(1)})).ready), kOk);
  EXPECT_EQ(Text(Decide(Web(), Inputs(5, {Failed(2)})).ready), kOk);
}

// ---- activity and cooldown --------------------------------------------------------------------

TEST(ReplicaDecisionTest, CpuAloneKeepsTheTargetActive) {
  DecisionInputs inputs = Inputs(0, {});
  inputs.has_resource_triggers = true;
  EXPECT_EQ(Decide(Web(), inputs).scale_to, 1);
  inputs.triggers = {Answered(false)};
  EXPECT_EQ(Text(Decide(Web(), inputs).active), kOff);
}

// Case B028.
TEST(ReplicaDecisionTest, AYoungObjectWaitsForItsInitialCooldown) {
  api::ScaledObject object = Web();
  object.meta.creation_timestamp = kNow;
  object.spec.initial_cooldown_period_seconds = 120;
  object.spec.cooldown_period_seconds = 60;
  DecisionInputs inputs = Inputs(3, {Answered(false)});
  inputs.last_active.reset();
  for (const int seconds : {0, 60, 119, 120}) {
    inputs.now = kNow + absl::Seconds(seconds);
    EXPECT_EQ(Decide(object, inputs).scale_to, std::nullopt) << seconds;
  }
  inputs.now = kNow + absl::Seconds(121);
  EXPECT_EQ(Decide(object, inputs).scale_to, 0);
}

// Case B030.
TEST(ReplicaDecisionTest, CooldownCountsFromTheLaterOfMemoryAndStatus) {
  api::ScaledObject object = Web();
  DecisionInputs inputs = Inputs(3, {Answered(false)});
  object.status.last_active_time = kNow - absl::Seconds(100);
  inputs.last_active = kNow - absl::Seconds(4000);
  EXPECT_EQ(Text(Decide(object, inputs).active), kCooling);
  object.status.last_active_time = kNow - absl::Seconds(4000);
  inputs.last_active = kNow - absl::Seconds(100);
  EXPECT_EQ(Text(Decide(object, inputs).active), kCooling);
  inputs.last_active.reset();
  EXPECT_EQ(Decide(object, inputs).scale_to, 0);
}

TEST(ReplicaDecisionTest, ScalingIsToldWithOldAndNewCount) {
  const Decision up = Decide(Web(2), Inputs(0, {Answered(true), Answered(true, 1)}));
  EXPECT_EQ(up.event, ScaleEvent::kActivated);
  EXPECT_EQ(up.event_note,
            "Scaled apps/v1.Deployment default/web-target from 0 to 2, triggered by "
            "s0-orders;s1-orders");
  EXPECT_THAT(up.active_metrics, ElementsAre("s0-orders", "s1-orders"));
  const Decision down = Decide(Web(), Inputs(5, {Answered(false)}));
  EXPECT_EQ(down.event, ScaleEvent::kDeactivated);
  EXPECT_EQ(down.event_note, "Scaled apps/v1.Deployment default/web-target from 5 to 0");
  EXPECT_THAT(down.active_metrics, IsEmpty());
}

TEST(ReplicaDecisionTest, SaysWhy) {
  EXPECT_EQ(Decide(Web(), Inputs(0, {Answered(true)})).outcome,
            "active at 0: activate -> scale to 1");
  EXPECT_EQ(Decide(Web(), Inputs(0, {Answered(true)})).explanation,
            "replicas 0, min 0, max 10; s0-orders=23 (target 5) active; active at 0: activate -> "
            "scale to 1");
  DecisionInputs cooling = Inputs(5, {Answered(false)});
  cooling.last_active = kNow - absl::Seconds(100);
  EXPECT_EQ(Decide(Web(), cooling).explanation,
            "replicas 5, min 0, max 10; s0-orders=0 (target 5) inactive; inactive, cooling down "
            "for another 3m20s -> stay at 5");
  api::ScaledObject object = Web();
  object.spec.fallback = api::Fallback{.failure_threshold = 3, .replicas = 4};
  EXPECT_EQ(Decide(object, Inputs(5, {Failed(2)})).explanation,
            "replicas 5, min 0, max 10; s0-orders failed: UNAVAILABLE: connection refused (2 "
            "cycles in a row), falls back at 3; an error is never read as no work -> stay at 5");
}

TEST(ReplicaDecisionTest, WithoutReplicasNothingIsDone) {
  const Decision decision =
      DecideWithoutReplicas(absl::PermissionDeniedError("get deployments"), false);
  EXPECT_EQ(Text(decision.ready), "False ErrorGettingCurrentReplicas");
  EXPECT_THAT(decision.ready->message, HasSubstr("PERMISSION_DENIED: get deployments"));
  EXPECT_EQ(Text(decision.active), "keeps");
  EXPECT_EQ(decision.scale_to, std::nullopt);
}

// A slow answer of the API server says nothing about the ScaledObject.
TEST(ReplicaDecisionTest, WithoutReplicasForAMomentReadyIsLeftAsItIs) {
  for (const absl::Status& why :
       {absl::UnavailableError("refused"), absl::DeadlineExceededError("no answer"),
        absl::ResourceExhaustedError("too many requests"),
        absl::InternalError("etcdserver: leader changed")}) {
    const Decision decision = DecideWithoutReplicas(why, /*again=*/false);
    EXPECT_EQ(decision.ready, std::nullopt) << why;
    EXPECT_EQ(decision.scale_to, std::nullopt);
    EXPECT_THAT(decision.outcome, HasSubstr("nothing done"));
  }
  // A webhook that stays down is not for a moment.
  EXPECT_EQ(Text(DecideWithoutReplicas(absl::InternalError("webhook"), /*again=*/true).ready),
            "False ErrorGettingCurrentReplicas");
}

}  // namespace
}  // namespace outrigger::controller::scaling
