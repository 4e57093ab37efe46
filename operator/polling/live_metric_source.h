// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "host/client/health_cache.h"
#include "host/client/scaler_service.h"
#include "operator/polling/cluster_view.h"
#include "operator/polling/metric_source.h"
#include "operator/polling/target_scaler.h"
#include "operator/polling/trigger_resolver.h"

namespace outrigger::controller::polling {

// The MetricSource of every replica, leader or not. In order:
//
//   1. what the leader published: a metric whose own failures are at the fallback threshold gets
//   the fallback value, made
//      from the target in the HPA, without a call;
//   2. the record of the last answer, as HealthCache::ForRead() allows: a value up to `freshness`
//   old, a failure up to 5 s,
//      and no call at all while the metric is unhealthy, be it by the leader's published word;
//   3. one live call, shared by all who ask the same (the ScalerService merges them).
//
// A failed read is not counted: only poll cycles are. Freshness is pollingInterval with
// useCachedMetrics. State of stateful types advances on polls only, so their reads are answered
// from the last poll. Use on the core strand. Source: design.md section 5 (the table; "One decides,
// all tell the same").
class LiveMetricSource : public MetricSource {
 public:
  struct Options {
    absl::Duration metric_freshness = absl::Seconds(5);
    absl::Duration scaler_timeout = absl::Seconds(3);
  };
  // Told of a good live answer for a whole trigger: as good as a poll, if we lead.
  using OnAnswer = std::function<void(const api::NamespacedName& key, uint32_t trigger_index,
                                      const host::MetricsAnswer& answer, absl::Duration took)>;
  // The object as polls run it, of an older generation when an edit was refused; nullptr where
  // nobody polls it.
  using Running =
      std::function<std::shared_ptr<const api::ScaledObject>(const api::NamespacedName& key)>;

  LiveMetricSource(host::Clock& clock, const ClusterView& view, TriggerResolver& resolver,
                   host::ScalerService& scalers, host::HealthCache& health, TargetScaler& scaler,
                   Options options)
      : clock_(clock),
        view_(view),
        resolver_(resolver),
        scalers_(scalers),
        health_(health),
        scaler_(scaler),
        options_(options) {}

  void SetOnAnswer(OnAnswer on_answer) { on_answer_ = std::move(on_answer); }
  void SetRunning(Running running) { running_ = std::move(running); }
  host::Task<absl::StatusOr<std::vector<MetricReading>>> Read(MetricRead read,
                                                              host::Deadline deadline) override;

 private:
  // The metric as it is known by: its own case, its trigger, and its target in the HPA.
  struct Known {
    std::shared_ptr<const api::ScaledObject> object;
    std::shared_ptr<const api::HorizontalPodAutoscaler> hpa;  // nullptr: not made yet
    std::string full_name;                                    // s0-redis-orders
    std::string name;                                         // redis-orders
    uint32_t trigger_index = 0;
    const api::HpaMetricTarget* target = nullptr;  // into `hpa`
  };

  std::shared_ptr<const api::ScaledObject> FindObject(const api::NamespacedName& key) const;
  absl::StatusOr<Known> Find(const MetricRead& read) const;
  bool FallsBack(const Known& known) const;
  // OK, or that the leader published the metric as unhealthy and nothing better is known here.
  absl::Status PublishedFailure(const Known& known, const host::HealthRecord* record) const;
  static std::vector<MetricReading> OneReading(const Known& known,
                                               const host::HealthRecord& record);
  absl::StatusOr<std::vector<MetricReading>> LastPoll(const Known& known,
                                                      const host::HealthRecord* record) const;
  host::Task<absl::StatusOr<std::vector<MetricReading>>> FallbackReading(Known known,
                                                                         host::Deadline deadline);
  host::Task<absl::StatusOr<std::vector<MetricReading>>> ReadLive(Known known,
                                                                  ResolvedTrigger trigger,
                                                                  std::string selector,
                                                                  host::Deadline deadline);

  host::Clock& clock_;
  const ClusterView& view_;
  TriggerResolver& resolver_;
  host::ScalerService& scalers_;
  host::HealthCache& health_;
  TargetScaler& scaler_;
  const Options options_;
  OnAnswer on_answer_;
  Running running_;
};

}  // namespace outrigger::controller::polling
