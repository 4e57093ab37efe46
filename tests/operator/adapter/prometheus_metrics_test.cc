// SPDX-License-Identifier: Apache-2.0
#include "operator/runtime/prometheus_metrics.h"

#include <absl/strings/str_split.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <limits>
#include <thread>

namespace outrigger::controller::runtime {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr char kOrdersLabels[] =
    R"({namespace="shop",metric="s0-redis-orders",scaledObject="orders",scaler="redisScaler",)"
    R"(triggerIndex="0",type="scaledobject"})";

ScalerLabels OrdersLabels() {
  return {.object = {"shop", "orders"}, .metric = "s0-redis-orders", .scaler = "redisScaler"};
}

size_t SeriesCount(const PrometheusMetrics& metrics) {
  size_t count = 0;
  for (absl::string_view line : absl::StrSplit(metrics.Render(), '\n'))
    count += !line.empty() && line[0] != '#' ? 1 : 0;
  return count;
}

void TellEverything(PrometheusMetrics& metrics, const api::NamespacedName& object) {
  ScalerLabels labels = OrdersLabels();
  labels.object = object;
  metrics.ScalerRegistered(labels);
  metrics.ScalerValue(labels, 5);
  metrics.ScalerLatency(labels, absl::Milliseconds(2));
  metrics.ScalerActive(labels, true);
  metrics.ScalerError(labels);
  metrics.ScaledObjectError(object);
  metrics.ScaledObjectPaused(object, false);
  metrics.PollLateness(object, absl::Milliseconds(1));
}

class PrometheusMetricsTest : public testing::Test {
 protected:
  PrometheusMetrics metrics_{{.version = "1.2.3", .git_commit = "abc"}};
};

// Shows R26.
TEST_F(PrometheusMetricsTest, WhatIsKnownBeforehandIsThereWithZero) {
  const std::string text = metrics_.Render();
  for (const char* line : {
           "workqueue_depth{name=\"scaledobject\"} 0\n",
           "workqueue_adds_total{name=\"scaledobject\"} 0\n",
           "workqueue_retries_total{name=\"scaledobject\"} 0\n",
           "workqueue_queue_duration_seconds_count{name=\"scaledobject\"} 0\n",
           "controller_runtime_reconcile_errors_total{controller=\"scaledobject\"} 0\n",
           "controller_runtime_reconcile_time_seconds_count{controller=\"scaledobject\"} 0\n",
           "controller_runtime_reconcile_total{controller=\"scaledobject\",result=\"success\"} 0\n",
           "controller_runtime_reconcile_total{controller=\"scaledobject\",result=\"error\"} 0\n",
           "outrigger_status_conflicts_total 0\n",
           "outrigger_external_metric_reads_total{code=\"200\"} 0\n",
           "outrigger_external_metric_reads_total{code=\"503\"} 0\n",
           "outrigger_leader 0\n",
       }) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  for (const char* step : {"event", "queue", "reconcile", "read", "decide", "write", "status"}) {
    EXPECT_THAT(text, HasSubstr(absl::StrCat("outrigger_loop_step_duration_seconds_count{step=\"",
                                             step, "\"} 0\n")));
  }
  EXPECT_THAT(text, HasSubstr("keda_build_info{git_commit=\"abc\""));
}

// Shows R26.
TEST_F(PrometheusMetricsTest, TheControlLoopCanBeTakenApart) {
  metrics_.QueueDepth("scaledobject", 7);
  metrics_.QueueAdded("scaledobject");
  metrics_.QueueRetried("scaledobject");
  metrics_.QueueWaited("scaledobject", absl::Milliseconds(50));
  metrics_.Reconciled("scaledobject", "success", absl::Milliseconds(20));
  metrics_.Reconciled("scaledobject", "error", absl::Milliseconds(20));
  metrics_.Step(LoopStep::kDecide, absl::Microseconds(300));
  metrics_.StatusConflict();
  metrics_.InformerSynced("scaledobjects.keda.sh", true);
  metrics_.ApiRequest("patch", "scaledobjects.keda.sh", 409, absl::Milliseconds(30));
  metrics_.ApiRequest("get", "secrets", 0, absl::Seconds(3));
  metrics_.Leading(true);
  const std::string text = metrics_.Render();
  for (
      const char* line : {
          "workqueue_depth{name=\"scaledobject\"} 7\n",
          "workqueue_adds_total{name=\"scaledobject\"} 1\n",
          "workqueue_retries_total{name=\"scaledobject\"} 1\n",
          "workqueue_queue_duration_seconds_bucket{name=\"scaledobject\",le=\"0.01\"} 0\n",
          "workqueue_queue_duration_seconds_bucket{name=\"scaledobject\",le=\"0.1\"} 1\n",
          "controller_runtime_reconcile_total{controller=\"scaledobject\",result=\"success\"} 1\n",
          "controller_runtime_reconcile_errors_total{controller=\"scaledobject\"} 1\n",
          "controller_runtime_reconcile_time_seconds_count{controller=\"scaledobject\"} 2\n",
          "outrigger_loop_step_duration_seconds_bucket{step=\"decide\",le=\"0.00025\"} 0\n",
          "outrigger_loop_step_duration_seconds_bucket{step=\"decide\",le=\"0.0005\"} 1\n",
          "outrigger_loop_step_duration_seconds_count{step=\"write\"} 0\n",
          "outrigger_status_conflicts_total 1\n",
          "outrigger_informer_synced{resource=\"scaledobjects.keda.sh\"} 1\n",
          "rest_client_requests_total{code=\"409\",method=\"patch\",resource=\"scaledobjects.keda.sh\"} 1\n",
          "rest_client_requests_total{code=\"error\",method=\"get\",resource=\"secrets\"} 1\n",
          "rest_client_request_duration_seconds_count{resource=\"secrets\",verb=\"get\"} 1\n",
          "outrigger_leader 1\n",
      }) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST_F(PrometheusMetricsTest, ScalerSeriesHaveKedasNamesAndLabels) {
  metrics_.ScalerRegistered(OrdersLabels());
  EXPECT_THAT(metrics_.Render(),
              AllOf(HasSubstr(absl::StrCat("keda_scaler_detail_errors_total", kOrdersLabels, " 0")),
                    HasSubstr("keda_scaled_object_errors_total{namespace=\"shop\",scaledObject="
                              "\"orders\"} 0"),
                    Not(HasSubstr("keda_scaler_metrics_value"))))
      << "a value that nobody measured is not 0";
  TellEverything(metrics_, {"shop", "orders"});
  const std::string text = metrics_.Render();
  for (const std::string& line :
       {absl::StrCat("keda_scaler_metrics_value", kOrdersLabels, " 5\n"),
        absl::StrCat("keda_scaler_metrics_latency_seconds", kOrdersLabels, " 0.002\n"),
        absl::StrCat("keda_scaler_active", kOrdersLabels, " 1\n"),
        absl::StrCat("keda_scaler_detail_errors_total", kOrdersLabels, " 1\n"),
        std::string("keda_scaled_object_errors_total{namespace=\"shop\",scaledObject=\"orders\"} "
                    "1\n"),
        std::string("keda_scaled_object_paused{namespace=\"shop\",scaledObject=\"orders\"} 0\n"),
        std::string("keda_internal_scale_loop_latency_seconds{namespace=\"shop\",type="
                    "\"scaledobject\",resource=\"orders\"} 0.001\n"),
        std::string("# TYPE keda_scaler_metrics_value gauge\n"),
        std::string("# TYPE keda_scaler_detail_errors_total counter\n")}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST_F(PrometheusMetricsTest, LabelValuesAreEscaped) {
  ScalerLabels labels = OrdersLabels();
  labels.scaler = "my \"best\"\nscaler";
  metrics_.ScalerValue(labels, 1);
  EXPECT_THAT(metrics_.Render(), HasSubstr(R"(scaler="my \"best\"\nscaler")"));
}

// Case B141.
TEST_F(PrometheusMetricsTest, AThousandObjectsThatCameAndWentLeaveNoSeries) {
  TellEverything(metrics_, {"shop", "stays"});
  const size_t base = SeriesCount(metrics_);
  for (int i = 0; i < 1000; ++i) TellEverything(metrics_, {"shop", absl::StrCat("o-", i)});
  EXPECT_EQ(SeriesCount(metrics_), base + size_t{1000} * 7);
  for (int i = 0; i < 1000; ++i) metrics_.ForgetObject({"shop", absl::StrCat("o-", i)});
  EXPECT_EQ(SeriesCount(metrics_), base);
}

TEST_F(PrometheusMetricsTest, TriggersThatWereEditedAwayLeaveNoSeries) {
  TellEverything(metrics_, {"shop", "orders"});
  metrics_.ForgetScalers({"shop", "orders"});
  ScalerLabels other = OrdersLabels();
  other.metric = "s0-kafka-orders";
  metrics_.ScalerRegistered(other);
  const std::string text = metrics_.Render();
  EXPECT_THAT(text, Not(HasSubstr("s0-redis-orders")));
  EXPECT_THAT(text, HasSubstr("s0-kafka-orders"));
  EXPECT_THAT(text, HasSubstr("keda_scaled_object_errors_total{namespace=\"shop\"")) << "stays";
}

TEST_F(PrometheusMetricsTest, TotalsOfTriggersStayAtZeroThoseOfNamespacesGo) {
  metrics_.TriggersRegistered("redis", 3);
  metrics_.ResourcesRegistered("scaled_object", "shop", 2);
  metrics_.ResourcesRegistered("cluster_trigger_authentication", "", 1);
  EXPECT_THAT(
      metrics_.Render(),
      AllOf(HasSubstr("keda_trigger_registered_total{type=\"redis\"} 3\n"),
            HasSubstr(
                "keda_resource_registered_total{namespace=\"shop\",type=\"scaled_object\"} 2\n"),
            HasSubstr("{namespace=\"default\",type=\"cluster_trigger_authentication\"} 1\n")));
  metrics_.TriggersRegistered("redis", 0);
  metrics_.ResourcesRegistered("scaled_object", "shop", 0);
  EXPECT_THAT(metrics_.Render(),
              AllOf(HasSubstr("keda_trigger_registered_total{type=\"redis\"} 0\n"),
                    Not(HasSubstr("namespace=\"shop\""))));
}

TEST_F(PrometheusMetricsTest, AnObjectCostsLessThanTwoKilobytes) {
  const size_t before = mallinfo2().uordblks;
  for (int i = 0; i < 1000; ++i) TellEverything(metrics_, {"shop", absl::StrCat("orders-", i)});
  const size_t per_object = (mallinfo2().uordblks - before) / 1000;
  RecordProperty("bytes_per_object", static_cast<int>(per_object));
  EXPECT_LT(per_object, 1024u);
}

TEST_F(PrometheusMetricsTest, ManyThreadsMayTellWhileOneRenders) {
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([this, t] {
        for (int i = 0; i < 500; ++i) {
          TellEverything(metrics_, {"shop", absl::StrCat(t)});
          metrics_.QueueAdded("scaledobject");
          metrics_.MetricRead(200, absl::Milliseconds(1));
          if (i % 50 == 0) metrics_.ForgetObject({"shop", absl::StrCat(t)});
        }
      });
    }
    for (int i = 0; i < 20; ++i) EXPECT_FALSE(metrics_.Render().empty());
  }
  EXPECT_THAT(metrics_.Render(),
              AllOf(HasSubstr("workqueue_adds_total{name=\"scaledobject\"} 2000\n"),
                    HasSubstr("outrigger_external_metric_reads_total{code=\"200\"} 2000\n")));
}

TEST_F(PrometheusMetricsTest, ValuesThatAreNoNumbersAreRendered) {
  metrics_.ScalerValue(OrdersLabels(), std::numeric_limits<double>::infinity());
  EXPECT_THAT(metrics_.Render(), HasSubstr(absl::StrCat(kOrdersLabels, " +Inf")));
}

}  // namespace
}  // namespace outrigger::controller::runtime
