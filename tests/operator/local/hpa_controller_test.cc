// SPDX-License-Identifier: Apache-2.0
#include "operator/local/hpa_controller.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "operator/kube/memory_api.h"
#include "tests/operator/kube_memory/memory_fixture.h"

namespace outrigger::controller::local {
namespace {

using kube::At;
using testing::Contains;
using testing::HasSubstr;

class FakeMetrics : public ExternalMetrics {
 public:
  host::Task<absl::StatusOr<std::vector<double>>> Get(std::string namespace_name,
                                                      std::string metric_name,
                                                      std::map<std::string, std::string> selector,
                                                      host::Deadline) override {
    asked.push_back(absl::StrCat(namespace_name, "/", metric_name, "/", selector["so"]));
    const auto it = values.find(metric_name);
    if (it == values.end()) co_return absl::UnavailableError("no answer");
    co_return it->second;
  }
  std::map<std::string, std::vector<double>> values;  // absent: an error
  std::vector<std::string> asked;
};

class HpaControllerTest : public testing::Test {
 protected:
  void CreateTarget(int replicas) {
    const std::string object =
        absl::StrCat(R"({"metadata":{"name":"web"},"spec":{"replicas":)", replicas,
                     R"(,"selector":{"matchLabels":{"app":"web"}}}})");
    ASSERT_TRUE(fixture_.Create(kube::Deployments(), object).ok());
    PlayPods();
  }

  static std::string External(const std::string& name, const std::string& target) {
    return absl::StrCat(R"({"type":"External","external":{"metric":{"name":")", name,
                        R"(","selector":{"matchLabels":{"so":"x"}}},"target":)", target, "}}");
  }

  void CreateHpa(const std::string& metrics, const std::string& rest = "") {
    const std::string object = absl::StrCat(
        R"({"metadata":{"name":"hpa"},"spec":{"scaleTargetRef":{"apiVersion":"apps/v1",
            "kind":"Deployment","name":"web"},"maxReplicas":10,"metrics":[)",
        metrics, "]", rest, "}}");
    const auto created = fixture_.Create(kube::HorizontalPodAutoscalers(), object);
    ASSERT_TRUE(created.ok()) << created.status();
  }

  // The Deployment controller and the kubelet: every wanted replica is ready.
  void PlayPods() {
    const std::string replicas = At(*fixture_.Get(kube::Deployments(), "web"), "/spec/replicas");
    const std::string status =
        absl::StrCat(R"({"status":{"replicas":)", replicas, R"(,"readyReplicas":)", replicas, "}}");
    ASSERT_TRUE(fixture_.Patch(kube::Deployments(), "web", status, "status").ok());
  }

  void Sync() {
    const absl::Status synced = fixture_.Await(controller_.SyncAll());
    ASSERT_TRUE(synced.ok()) << synced;
    PlayPods();
    fixture_.clock.Advance(absl::Seconds(15));
  }

  std::string Replicas() { return At(*fixture_.Get(kube::Deployments(), "web"), "/spec/replicas"); }
  boost::json::value Hpa() { return *fixture_.Get(kube::HorizontalPodAutoscalers(), "hpa"); }
  // "True ValidMetricFound"
  std::string Condition(const std::string& type) {
    const boost::json::value hpa = Hpa();
    for (const auto& item : hpa.at("status").at("conditions").as_array()) {
      if (At(item, "/type") == type)
        return absl::StrCat(At(item, "/status"), " ", At(item, "/reason"));
    }
    return "";
  }

  kube::MemoryFixture fixture_;
  FakeMetrics metrics_;
  std::vector<std::string> events_;
  HpaController controller_{
      fixture_.api, metrics_, fixture_.clock, {.on_event = [this](const HpaEvent& event) {
        events_.push_back(absl::StrCat(event.reason, ": ", event.message));
      }}};
};

TEST_F(HpaControllerTest, ScalesToTheCeilingOfSumOverTarget) {
  CreateTarget(1);
  CreateHpa(External("queue", R"({"type":"AverageValue","averageValue":"5"})"));
  metrics_.values["queue"] = {20, 3};
  Sync();
  EXPECT_EQ(Replicas(), "4");  // at most 4 from 1
  Sync();
  EXPECT_EQ(Replicas(), "5");
  EXPECT_THAT(metrics_.asked, Contains("ns/queue/x"));
  EXPECT_EQ(Condition("AbleToScale"), "True SucceededRescale");
  EXPECT_EQ(Condition("ScalingActive"), "True ValidMetricFound");
  EXPECT_EQ(At(Hpa(), "/status/desiredReplicas"), "5");
  EXPECT_EQ(At(Hpa(), "/status/currentReplicas"), "4");
  EXPECT_EQ(At(Hpa(), "/status/currentMetrics/0/external/current/averageValue"), "5750m");
  EXPECT_EQ(events_.front(),
            "SuccessfulRescale: New size: 4; reason: external metric "
            "queue(&LabelSelector{MatchLabels:map[string]string{so: x,},"
            "MatchExpressions:[]LabelSelectorRequirement{},}) above target");
}

TEST_F(HpaControllerTest, ASteadyStateWritesNothing) {
  CreateTarget(2);
  CreateHpa(External("queue", R"({"type":"AverageValue","averageValue":"5"})"));
  metrics_.values["queue"] = {10};
  Sync();
  const int64_t version = fixture_.api.resource_version();
  for (int i = 0; i < 5; ++i) Sync();
  EXPECT_EQ(fixture_.api.resource_version(), version);
  EXPECT_EQ(Condition("AbleToScale"), "True ReadyForNewScale");
}

TEST_F(HpaControllerTest, AFailingMetricHoldsTheTarget) {
  CreateTarget(5);
  CreateHpa(External("queue", R"({"type":"AverageValue","averageValue":"5"})"));
  for (int i = 0; i < 30; ++i) Sync();
  EXPECT_EQ(Replicas(), "5");
  EXPECT_EQ(Condition("ScalingActive"), "False FailedGetExternalMetric");
  EXPECT_THAT(events_, Contains(HasSubstr("invalid metrics (1 invalid out of 1), first error is: "
                                          "failed to get queue external metric value: unable to "
                                          "get external metric ns/queue/&LabelSelector{")));
}

TEST_F(HpaControllerTest, WithOneMetricFailingItMayOnlyScaleUp) {
  CreateTarget(4);
  CreateHpa(External("gone", R"({"type":"AverageValue","averageValue":"5"})") + "," +
                External("queue", R"({"type":"AverageValue","averageValue":"5"})"),
            R"(,"behavior":{"scaleDown":{"stabilizationWindowSeconds":0}})");
  metrics_.values["queue"] = {5};
  Sync();
  EXPECT_EQ(Replicas(), "4");
  EXPECT_EQ(Condition("ScalingActive"), "False FailedGetExternalMetric");
  metrics_.values["queue"] = {30};
  Sync();
  EXPECT_EQ(Replicas(), "6");
  EXPECT_EQ(Condition("ScalingActive"), "True ValidMetricFound");
}

TEST_F(HpaControllerTest, NotANumberIsAnErrorNotAZero) {
  CreateTarget(3);
  CreateHpa(External("queue", R"({"type":"AverageValue","averageValue":"5"})"),
            R"(,"behavior":{"scaleDown":{"stabilizationWindowSeconds":0}})");
  metrics_.values["queue"] = {std::numeric_limits<double>::quiet_NaN()};
  Sync();
  EXPECT_EQ(Replicas(), "3");
  EXPECT_EQ(Condition("ScalingActive"), "False FailedGetExternalMetric");
}

TEST_F(HpaControllerTest, AtZeroReplicasItIsDisabledAndAsksNothing) {
  CreateTarget(0);
  CreateHpa(External("queue", R"({"type":"AverageValue","averageValue":"5"})"));
  metrics_.values["queue"] = {50};
  Sync();
  EXPECT_EQ(Replicas(), "0");
  EXPECT_EQ(Condition("ScalingActive"), "False ScalingDisabled");
  EXPECT_TRUE(metrics_.asked.empty());
}

TEST_F(HpaControllerTest, OutsideOfItsBoundsItDoesNotAskForMetrics) {
  CreateTarget(12);
  CreateHpa(External("queue", R"({"type":"AverageValue","averageValue":"5"})"));
  Sync();
  EXPECT_EQ(Replicas(), "10");
  EXPECT_TRUE(metrics_.asked.empty());
  EXPECT_THAT(events_, Contains("SuccessfulRescale: New size: 10; reason: Current number of "
                                "replicas above Spec.MaxReplicas"));
}

TEST_F(HpaControllerTest, ScalesDownOnlyAfterTheWindow) {
  CreateTarget(6);
  CreateHpa(External("queue", R"({"type":"AverageValue","averageValue":"5"})"));
  metrics_.values["queue"] = {5};
  for (int i = 0; i < 20; ++i) Sync();
  EXPECT_EQ(Replicas(), "6");
  EXPECT_EQ(Condition("AbleToScale"), "True ScaleDownStabilized");
  Sync();
  Sync();
  EXPECT_EQ(Replicas(), "1");
}

TEST_F(HpaControllerTest, ValueTargetCountsReadyReplicas) {
  CreateTarget(2);
  CreateHpa(External("queue", R"({"type":"Value","value":"10"})"));
  metrics_.values["queue"] = {20};
  Sync();
  EXPECT_EQ(Replicas(), "4");
  EXPECT_EQ(At(Hpa(), "/status/currentMetrics/0/external/current/value"), "20");
}

TEST_F(HpaControllerTest, ResourceMetricsDoNotExistHere) {
  CreateTarget(2);
  CreateHpa(R"({"type":"Resource","resource":{"name":"cpu",
                "target":{"type":"Utilization","averageUtilization":50}}})");
  Sync();
  EXPECT_EQ(Replicas(), "2");
  EXPECT_EQ(Condition("ScalingActive"), "False FailedGetResourceMetric");
}

TEST_F(HpaControllerTest, AMissingTargetIsNamedInTheCondition) {
  CreateHpa(External("queue", R"({"type":"AverageValue","averageValue":"5"})"));
  ASSERT_TRUE(fixture_.Await(controller_.SyncAll()).ok());
  EXPECT_EQ(Condition("AbleToScale"), "False FailedGetScale");
  EXPECT_THAT(events_, Contains("FailedGetScale: deployments.apps \"web\" not found"));
}

TEST_F(HpaControllerTest, ABehaviorThatCannotBeReadIsToldAndHoldsTheTarget) {
  CreateTarget(2);
  CreateHpa(
      External("queue", R"({"type":"AverageValue","averageValue":"5"})"),
      R"(,"behavior":{"scaleUp":{"policies":[{"type":"Pod","value":1,"periodSeconds":15}]}})");
  metrics_.values["queue"] = {50};
  Sync();
  EXPECT_EQ(Replicas(), "2");
  EXPECT_THAT(events_, testing::ElementsAre(
                           "FailedConvertHPA: spec.behavior.scaleUp.policies[0].type: want Pods or "
                           "Percent, got \"Pod\""));
}

TEST_F(HpaControllerTest, RunSyncsEachPeriodUntilStopped) {
  CreateTarget(1);
  CreateHpa(External("queue", R"({"type":"AverageValue","averageValue":"5"})"));
  metrics_.values["queue"] = {5};
  bool ended = false;
  boost::asio::co_spawn(fixture_.executor.executor(), controller_.Run(),
                        [&ended](const std::exception_ptr&) { ended = true; });
  fixture_.executor.RunFor(absl::Seconds(61));
  EXPECT_EQ(metrics_.asked.size(), 5u);  // at 0, 15, 30, 45 and 60 s
  controller_.Stop();
  EXPECT_TRUE(fixture_.executor.RunUntil([&] { return ended; }, absl::Seconds(1)));
}

}  // namespace
}  // namespace outrigger::controller::local
