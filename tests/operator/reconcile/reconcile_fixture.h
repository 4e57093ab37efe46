// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "operator/reconcile/scaled_object_reconciler.h"
#include "tests/operator/support/memory_cluster.h"
#include "tests/operator/support/scripted_scalers.h"

namespace outrigger::controller::reconcile {

// A reconciler with everything that it works with, on an API server in memory. Objects are
// reconciled when a test says so; the poll engine runs only after StartPolls().
class ReconcileFixture : public testing::Test {
 protected:
  ReconcileFixture() {
    scalers_.Connect("redis", {"redis"});
    scalers_.SetValue("redis", 10);
    observer_.SetOnRoom([this](const api::NamespacedName& key) { room_for_.push_back(key.name); });
    reconciler_.SetMayWrite([this] { return may_write_; });
    decider_.SetMayAct([this] { return may_write_.ok(); });
  }
  ~ReconcileFixture() override {
    engine_.Stop();
    status_.Clear();
    loop_.Advance(absl::Minutes(2));
  }

  // A Deployment "web" and a ScaledObject "orders" with one redis trigger.
  void CreateOrders(const std::string& spec = "", int replicas = 2) {
    cluster_.CreateDeployment("web", replicas);
    cluster_.CreateScaledObject(
        "orders", absl::StrCat(R"("triggers":[{"type":"redis","metadata":{}}])", spec));
  }
  absl::StatusOr<runtime::Result> Reconcile(const std::string& name = "orders") {
    return loop_.Run(reconciler_.Reconcile(
        {"ns", name}, host::Deadline::After(loop_.clock(), absl::Seconds(60))));
  }
  // As the controller would, until nothing more comes of it.
  void ReconcileUntilSettled(const std::string& name = "orders") {
    for (int i = 0; i < 4; ++i) {
      (void)Reconcile(name);
      loop_.Advance(absl::Milliseconds(1100));
    }
  }
  void StartPolls() {
    loop_.Spawn(engine_.Run());
    loop_.Settle();
  }

  // What the operator knows of "orders" is gone, as after a restart.
  void ForgetAsANewOperator() {
    engine_.Unschedule({"ns", "orders"});
    registry_.Clear();
    health_.Forget(cluster_.ScaledObject("orders").meta.uid);
    status_.Clear();
  }

  boost::json::value Hpa(const std::string& name = "keda-hpa-orders") const {
    return cluster_.Get(kube::HorizontalPodAutoscalers(), name);
  }
  std::vector<std::string> HpaMetrics(const std::string& name = "keda-hpa-orders") const {
    std::vector<std::string> names;
    const boost::json::value hpa = Hpa(name);
    if (hpa.is_null()) return names;
    for (const boost::json::value& metric : hpa.at("spec").at("metrics").as_array()) {
      names.push_back(At(metric, "/external/metric/name") + At(metric, "/resource/name"));
    }
    return names;
  }
  api::ScaledObjectStatus Status(const std::string& name = "orders") const {
    return cluster_.ScaledObject(name).status;
  }
  std::string Condition(const char* type, const std::string& name = "orders") const {
    return cluster_.Condition(name, type);
  }
  std::string ReadyMessage(const std::string& name = "orders") const {
    return cluster_.ConditionMessage(name, api::kReady);
  }

  CoreLoop loop_;
  MemoryCluster cluster_{loop_};
  ScriptedScalers scalers_{loop_.clock()};
  const host::Logger log_{host::MakeNullSink()};
  host::HealthCache health_{loop_.clock(), {}};
  polling::TriggerResolver resolver_{
      cluster_.api(), cluster_.view(), scalers_, {.fingerprint_key = "k"}};
  polling::ObjectRegistry registry_;
  runtime::WriteGate gate_{loop_.clock()};
  runtime::StatusWriter status_{loop_.clock(), cluster_.api(), gate_, loop_.executor(), log_, {}};
  runtime::EventRecorder events_{loop_.clock(), cluster_.api(), gate_, loop_.executor(), log_, {}};
  polling::TargetScaler scaler_{loop_.clock(), cluster_.api(), cluster_.view(), gate_};
  runtime::MetricsSink metrics_;
  polling::ObjectDecider decider_{loop_.clock(), cluster_.view(), health_,  registry_, scaler_,
                                  status_,       events_,         metrics_, log_,      {}};
  polling::AnswerRecorder recorder_{health_, metrics_};
  polling::PollEngine engine_{
      loop_.clock(),
      scalers_,
      health_,
      recorder_,
      resolver_,
      registry_,
      loop_.executor(),
      host::Random(1),
      [this](api::NamespacedName key) { return decider_.Decide(std::move(key)); },
      metrics_,
      {}};
  TriggerObserver observer_{loop_.clock(), scalers_, health_, recorder_, {}};
  ScaledObjectReconciler reconciler_{{.clock = loop_.clock(),
                                      .api = cluster_.api(),
                                      .view = cluster_.view(),
                                      .resolver = resolver_,
                                      .observer = observer_,
                                      .health = health_,
                                      .registry = registry_,
                                      .engine = engine_,
                                      .decider = decider_,
                                      .scaler = scaler_,
                                      .status = status_,
                                      .events = events_,
                                      .gate = gate_,
                                      .metrics = metrics_,
                                      .log = log_},
                                     {}};
  absl::Status may_write_;
  std::vector<std::string> room_for_;  // keys that were told of room at a plugin
};

}  // namespace outrigger::controller::reconcile
