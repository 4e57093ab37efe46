// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "host/base/clock.h"
#include "host/base/deadline.h"
#include "host/base/event.h"
#include "host/base/task.h"
#include "operator/api/hpa.h"
#include "operator/api/namespaced_name.h"
#include "operator/kube/api.h"
#include "operator/local/hpa_algorithm.h"
#include "operator/local/hpa_sync.h"

namespace outrigger::controller::local {

// Where the embedded HPA controller reads external metrics; in a cluster that is the aggregated
// API. `selector` is the metric's matchLabels. The values of all items; any error holds the target.
class ExternalMetrics {
 public:
  virtual ~ExternalMetrics() = default;
  virtual host::Task<absl::StatusOr<std::vector<double>>> Get(
      std::string namespace_name, std::string metric_name,
      std::map<std::string, std::string> selector, host::Deadline deadline) = 0;
};

// What the controller of kube-controller-manager would record as an Event.
struct HpaEvent {
  api::NamespacedName hpa;
  bool warning = false;
  std::string reason;   // SuccessfulRescale, FailedGetScale, FailedComputeMetricsReplicas, …
  std::string message;  // "New size: 5; reason: external metric s0-redis-orders above target"
};

// The HorizontalPodAutoscaler controller of the embedded mode and the simulation. Each sync period
// it reads all HPAs, their targets and metrics, writes /scale where the algorithm says so, and an
// HPA's status where it changed.
//
// Targets are Deployments and StatefulSets. There are no pods: status.readyReplicas of the target
// counts as its ready pods, and two HPAs of one target are not noticed. Resource metrics (cpu,
// memory), Pods and Object metrics do not exist and fail with upstream's reasons.
// One strand only; never blocks. Run() returns after Stop().
class HpaController {
 public:
  struct Options {
    absl::Duration sync_period = absl::Seconds(15);
    absl::Duration down_window = absl::Minutes(5);
    double tolerance = 0.1;
    absl::Duration call_timeout = absl::Seconds(10);  // of each call to Api or ExternalMetrics
    int workers = 5;                                  // HPAs synced at once, as in Kubernetes
    std::function<void(const HpaEvent&)> on_event;    // may be empty
  };

  HpaController(kube::Api& api, ExternalMetrics& metrics, host::Clock& clock, Options options);

  host::Task<void> Run();
  void Stop();

  // One round over all HPAs. What goes wrong with one HPA is told by its conditions and events; the
  // status is that of the list.
  host::Task<absl::Status> SyncAll();

 private:
  struct Target {
    kube::Resource resource;
    boost::json::value scale;  // as read
    ScaleState state;
  };
  // One HPA as listed, and what its new status is built from.
  struct Sync {
    api::HorizontalPodAutoscaler hpa;
    boost::json::object object;
    boost::json::object old_status;
    HpaLimits limits;
    HpaTolerances tolerances;
  };

  host::Task<void> Worker(std::shared_ptr<std::vector<boost::json::value>> items,
                          std::shared_ptr<size_t> next);
  host::Task<void> SyncOne(boost::json::value item);
  absl::StatusOr<Sync> Prepare(boost::json::value item) const;
  host::Task<absl::StatusOr<Target>> ReadTarget(const api::HorizontalPodAutoscaler& hpa);
  host::Task<std::vector<MetricReading>> ReadMetrics(const api::HorizontalPodAutoscaler& hpa);
  host::Task<absl::StatusOr<std::vector<int64_t>>> ReadMetric(std::string namespace_name,
                                                              const api::HpaMetric& metric);
  host::Task<absl::Status> WriteScale(const api::HorizontalPodAutoscaler& hpa, Target& target,
                                      int32_t replicas);
  host::Task<void> Act(Sync& sync, Target& target, HpaDecision decision);
  void RecordRescale(const Sync& sync, int32_t before, HpaDecision& decision,
                     const absl::Status& written);
  host::Task<void> ReportNoScale(Sync& sync, absl::Status error);
  host::Task<void> WriteStatus(Sync& sync, boost::json::object status);
  void Emit(api::NamespacedName hpa, bool warning, std::string reason, std::string message) const;
  host::Deadline CallDeadline() const;

  kube::Api& api_;
  ExternalMetrics& metrics_;
  host::Clock& clock_;
  const Options options_;
  const host::Event wake_;
  bool stopping_ = false;
  std::map<api::NamespacedName, HpaHistory> histories_;
};

}  // namespace outrigger::controller::local
