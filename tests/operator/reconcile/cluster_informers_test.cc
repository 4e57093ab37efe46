// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/cluster_informers.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/operator/support/memory_cluster.h"

namespace outrigger::controller::reconcile {
namespace {

using api::NamespacedName;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr char kTriggers[] =
    R"("triggers":[{"type":"redis","metadata":{},"authenticationRef":{"name":"login"}}])";
// The watches over a cluster that has a ScaledObject "orders" on Deployment "web", an HPA of it, an
// authentication and the Secret of that; and a stranger of each kind.
class ClusterInformersTest : public testing::Test {
 protected:
  ClusterInformersTest() {
    for (const char* name : {"web", "stranger"}) cluster_.CreateDeployment(name, 1);
    for (const char* name : {"login", "stranger"}) CreateAuthentication(name);
    for (const char* name : {"login", "stranger"}) CreateSecret(name);
    cluster_.CreateScaledObject("orders", kTriggers);
    CreateHpa();
    loop_.Spawn(RunInformers());
    loop_.Settle();
    EXPECT_TRUE(informers_.Synced());
    reconciled_.clear();
  }
  ~ClusterInformersTest() override {
    informers_.Stop();
    while (!ended_) loop_.Advance(absl::Seconds(1));
  }

  host::Task<void> RunInformers() {
    co_await informers_.Run();
    ended_ = true;
  }
  void CreateAuthentication(const std::string& name) {
    cluster_.Create(
        kube::TriggerAuthentications(),
        absl::StrCat(R"({"apiVersion":"keda.sh/v1alpha1","kind":"TriggerAuthentication",)",
                     R"("metadata":{"name":")", name, R"("},"spec":{"secretTargetRef":[)",
                     R"({"parameter":"password","name":")", name, R"(","key":"p"}]}})"));
  }
  void CreateSecret(const std::string& name) {
    cluster_.Create(kube::Secrets(),
                    absl::StrCat(R"({"metadata":{"name":")", name, R"("},"data":{"p":"MQ=="}})"));
  }
  void CreateHpa() {
    cluster_.Create(
        kube::HorizontalPodAutoscalers(),
        absl::StrCat(R"({"metadata":{"name":"keda-hpa-orders","ownerReferences":[{"apiVersion":)",
                     R"("keda.sh/v1alpha1","kind":"ScaledObject","name":"orders","uid":")",
                     cluster_.ScaledObject("orders").meta.uid, R"(","controller":true}]},)",
                     R"("spec":{"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment",)",
                     R"("name":"web"},"maxReplicas":5}})"));
  }
  // The objects that are to be reconciled since the last look, each once.
  std::vector<std::string> Started() {
    loop_.Settle();
    const std::set<std::string> keys = std::exchange(reconciled_, {});
    return {keys.begin(), keys.end()};
  }

  CoreLoop loop_;
  MemoryCluster cluster_{loop_};
  runtime::MetricsSink metrics_;
  std::set<std::string> reconciled_;
  int seen_ = 0;
  std::vector<std::string> gone_;
  bool ended_ = false;
  ClusterInformers informers_{
      loop_.clock(),
      cluster_.api(),
      loop_.executor(),
      host::Random(1),
      host::Logger(host::MakeNullSink()),
      metrics_,
      {.api_service = false},
      {.reconcile = [this](const NamespacedName& key) { reconciled_.insert(key.ToString()); },
       .seen = [this](const auto&) { ++seen_; },
       .gone = [this](const std::string& uid) { gone_.push_back(uid); },
       .hpa_changed = [](const NamespacedName&) {},
       .users_of =
           [](const std::string& reference) {
             return reference == "Secret/ns/login" ? std::set<NamespacedName>{{"ns", "orders"}}
                                                   : std::set<NamespacedName>{};
           },
       .api_service_changed = [] {}}};
};

// Shows R6.
TEST_F(ClusterInformersTest, AStatusWriteOfAScaledObjectStartsNothing) {
  const int seen = seen_;
  cluster_.Patch(kube::ScaledObjects(), "orders",
                 R"({"status":{"hpaName":"x","conditions":[{"type":"Ready","status":"True"}]}})",
                 "status");
  EXPECT_THAT(Started(), IsEmpty());
  EXPECT_EQ(seen_, seen + 1) << "the status write must have been seen";
}

struct Change {
  const char* name;
  kube::Resource resource;
  const char* object;
  const char* patch;
  const char* subresource = "";
};
void PrintTo(const Change& change, std::ostream* out) { *out << change.patch; }
std::string NameOf(const testing::TestParamInfo<Change>& info) { return info.param.name; }

class MeaningfulChangeTest : public ClusterInformersTest,
                             public testing::WithParamInterface<Change> {};

// Shows R2. Shows R4. Shows R6.
TEST_P(MeaningfulChangeTest, StartsAReconcileOfItsScaledObject) {
  const Change& change = GetParam();
  cluster_.Patch(change.resource, change.object, change.patch, change.subresource);
  EXPECT_THAT(Started(), ElementsAre("ns/orders"));
}

constexpr char kScalingActiveFalse[] =
    R"({"status":{"conditions":[{"type":"ScalingActive","status":"False","reason":"x"}]}})";

INSTANTIATE_TEST_SUITE_P(
    Changes, MeaningfulChangeTest,
    testing::Values(
        Change{"Spec", kube::ScaledObjects(), "orders", R"({"spec":{"maxReplicaCount":7}})"},
        Change{"Label", kube::ScaledObjects(), "orders", R"({"metadata":{"labels":{"a":"b"}}})"},
        Change{"Annotation", kube::ScaledObjects(), "orders",
               R"({"metadata":{"annotations":{"a":"b"}}})"},
        Change{"HpaSpec", kube::HorizontalPodAutoscalers(), "keda-hpa-orders",
               R"({"spec":{"maxReplicas":9}})"},
        Change{"HpaLabel", kube::HorizontalPodAutoscalers(), "keda-hpa-orders",
               R"({"metadata":{"labels":{"a":"b"}}})"},
        Change{"HpaScalingActive", kube::HorizontalPodAutoscalers(), "keda-hpa-orders",
               kScalingActiveFalse, "status"},
        Change{"TargetTemplate", kube::Deployments(), "web",
               R"({"spec":{"template":{"spec":{"containers":[{"name":"other"}]}}}})"},
        Change{"Authentication", kube::TriggerAuthentications(), "login",
               R"({"metadata":{"labels":{"a":"b"}}})"},
        Change{"Secret", kube::Secrets(), "login", R"({"data":{"p":"Mg=="}})"}),
    NameOf);

class MeaninglessChangeTest : public ClusterInformersTest,
                              public testing::WithParamInterface<Change> {};

// Shows R6.
TEST_P(MeaninglessChangeTest, StartsNothing) {
  const Change& change = GetParam();
  cluster_.Patch(change.resource, change.object, change.patch, change.subresource);
  EXPECT_THAT(Started(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    Changes, MeaninglessChangeTest,
    testing::Values(
        Change{"TargetReplicas", kube::Deployments(), "web", R"({"spec":{"replicas":4}})"},
        Change{"TargetStatus", kube::Deployments(), "web", R"({"status":{"replicas":4}})",
               "status"},
        Change{"HpaStatus", kube::HorizontalPodAutoscalers(), "keda-hpa-orders",
               R"({"status":{"currentReplicas":4,"desiredReplicas":4}})", "status"},
        Change{"AnotherTarget", kube::Deployments(), "stranger",
               R"({"spec":{"template":{"spec":{"containers":[{"name":"other"}]}}}})"},
        Change{"AnotherAuthentication", kube::TriggerAuthentications(), "stranger",
               R"({"metadata":{"labels":{"a":"b"}}})"},
        Change{"AnotherSecret", kube::Secrets(), "stranger", R"({"data":{"p":"Mg=="}})"}),
    NameOf);

// Shows R4.
TEST_F(ClusterInformersTest, WhatComesOrGoesStartsAReconcile) {
  cluster_.Delete(kube::Deployments(), "web");
  EXPECT_THAT(Started(), ElementsAre("ns/orders"));
  cluster_.CreateDeployment("web", 0);
  EXPECT_THAT(Started(), ElementsAre("ns/orders"));
  cluster_.Delete(kube::HorizontalPodAutoscalers(), "keda-hpa-orders");
  EXPECT_THAT(Started(), ElementsAre("ns/orders"));
  cluster_.Delete(kube::Secrets(), "login");
  EXPECT_THAT(Started(), ElementsAre("ns/orders"));
  cluster_.CreateScaledObject("new", R"("triggers":[{"type":"redis","metadata":{}}])");
  EXPECT_THAT(Started(), ElementsAre("ns/new"));
  const std::string uid = cluster_.ScaledObject("new").meta.uid;
  cluster_.Delete(kube::ScaledObjects(), "new");
  EXPECT_THAT(Started(), ElementsAre("ns/new"));
  EXPECT_THAT(gone_, ElementsAre(uid));
}

// 1,000 HPAs with all their conditions are megabytes that nobody reads.
TEST_F(ClusterInformersTest, OfAnHpaOnlyTheConditionThatIsLookedAtIsKept) {
  cluster_.Patch(kube::HorizontalPodAutoscalers(), "keda-hpa-orders",
                 R"({"status":{"conditions":[{"type":"AbleToScale","status":"True"},)"
                 R"({"type":"ScalingActive","status":"False","reason":"FailedGetExternalMetric"},)"
                 R"({"type":"ScalingLimited","status":"True"}]}})",
                 "status");
  loop_.Settle();
  const auto hpa = informers_.Hpa({"ns", "keda-hpa-orders"});
  ASSERT_NE(hpa, nullptr);
  ASSERT_EQ(hpa->status.conditions.size(), 1u);
  EXPECT_EQ(hpa->status.conditions[0].type, api::kScalingActive);
  EXPECT_EQ(hpa->status.conditions[0].reason, "FailedGetExternalMetric");
}

// A CRD that somebody loosened lets anything in.
TEST_F(ClusterInformersTest, AnObjectThatCouldNeverBeReadComesAndGoes) {
  cluster_.CreateScaledObject("broken", R"("triggers":7)");
  cluster_.Create(kube::Deployments(), R"({"metadata":{"name":"broken"},"spec":{"template":7}})");
  loop_.Settle();
  EXPECT_EQ(informers_.ScaledObject({"ns", "broken"}), nullptr);
  EXPECT_EQ(informers_.Workload("Deployment", {"ns", "broken"}), nullptr);
  cluster_.Delete(kube::ScaledObjects(), "broken");
  cluster_.Delete(kube::Deployments(), "broken");
  loop_.Settle();
  EXPECT_THAT(gone_, IsEmpty());
  EXPECT_NE(informers_.ScaledObject({"ns", "orders"}), nullptr);
}

}  // namespace
}  // namespace outrigger::controller::reconcile
