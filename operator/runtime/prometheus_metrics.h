// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "operator/runtime/metrics_sink.h"

namespace outrigger::controller::runtime {

// The MetricsSink of production: keeps what the core tells and prints it for Prometheus. Names that
// a KEDA or controller-runtime user has on a dashboard are kept; ours begin with outrigger_. Series
// whose labels are known beforehand are there with 0 from the start.
//
// Thread-safe; never blocks on anything but its own short locks. Made by main, read by the handler
// of /metrics. The series of an object cost about 0.5 KB. Source: spec/observability.md section 1;
// requirement R26.
class PrometheusMetrics : public MetricsSink {
 public:
  // What keda_build_info says.
  struct BuildInfo {
    std::string version;
    std::string git_commit;
  };
  explicit PrometheusMetrics(const BuildInfo& build);
  ~PrometheusMetrics() override;

  // Prometheus' text format, version 0.0.4.
  std::string Render() const;

  void Step(LoopStep step, absl::Duration took) override;
  void Reconciled(absl::string_view controller, absl::string_view outcome,
                  absl::Duration took) override;
  void QueueDepth(absl::string_view queue, size_t depth) override;
  void QueueAdded(absl::string_view queue) override;
  void QueueRetried(absl::string_view queue) override;
  void QueueWaited(absl::string_view queue, absl::Duration waited) override;
  void StatusConflict() override;
  void InformerSynced(absl::string_view resource, bool synced) override;
  void ApiRequest(absl::string_view verb, absl::string_view resource, int code,
                  absl::Duration took) override;
  void MetricRead(int http_code, absl::Duration took) override;

  void ScalerValue(const ScalerLabels& labels, double value) override;
  void ScalerLatency(const ScalerLabels& labels, absl::Duration took) override;
  void ScalerActive(const ScalerLabels& labels, bool active) override;
  void ScalerRegistered(const ScalerLabels& labels) override;
  void ScalerError(const ScalerLabels& labels) override;
  void ScaledObjectError(const api::NamespacedName& object) override;
  void ScaledObjectPaused(const api::NamespacedName& object, bool paused) override;
  void PollLateness(const api::NamespacedName& object, absl::Duration late) override;
  void ForgetScalers(const api::NamespacedName& object) override;
  void ForgetObject(const api::NamespacedName& object) override;
  void TriggersRegistered(absl::string_view type, int count) override;
  void ResourcesRegistered(absl::string_view type, absl::string_view namespace_name,
                           int count) override;
  void Leading(bool leading) override;

 private:
  struct Families;
  const std::unique_ptr<Families> families_;
};

}  // namespace outrigger::controller::runtime
