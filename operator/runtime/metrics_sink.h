// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/strings/string_view.h>
#include <absl/time/time.h>

#include <cstdint>
#include <string>

#include "operator/api/namespaced_name.h"

namespace outrigger::controller::runtime {

// Labels of keda_scaler_* series. Source: spec/observability.md section 1.
struct ScalerLabels {
  api::NamespacedName object;  // namespace, scaledObject
  std::string metric;          // external metric name, with its s<index>- prefix
  std::string scaler;          // the trigger's name, else "<type>Scaler"
  uint32_t trigger_index = 0;
  std::string type = "scaledobject";
};

// The steps of the control loop, told apart in outrigger_loop_step_duration_seconds (requirement
// R26).
enum class LoopStep { kEvent, kQueue, kReconcile, kRead, kDecide, kWrite, kStatus };

// What the core tells about itself. The methods do nothing here: production passes
// PrometheusMetrics, simulation and unit tests pass this. Implementations are thread-safe and never
// block.
class MetricsSink {
 public:
  virtual ~MetricsSink() = default;

  virtual void Step(LoopStep /*step*/, absl::Duration /*took*/) {}
  // `controller`: "scaledobject". `outcome`: success, requeue, requeue_after, error.
  virtual void Reconciled(absl::string_view /*controller*/, absl::string_view /*outcome*/,
                          absl::Duration /*took*/) {}
  virtual void QueueDepth(absl::string_view /*queue*/, size_t /*depth*/) {}
  virtual void QueueAdded(absl::string_view /*queue*/) {}
  virtual void QueueRetried(absl::string_view /*queue*/) {}
  virtual void QueueWaited(absl::string_view /*queue*/, absl::Duration /*waited*/) {}
  virtual void StatusConflict() {}
  virtual void InformerSynced(absl::string_view /*resource*/, bool /*synced*/) {}
  virtual void ApiRequest(absl::string_view /*verb*/, absl::string_view /*resource*/, int /*code*/,
                          absl::Duration /*took*/) {}
  virtual void MetricRead(int /*http_code*/, absl::Duration /*took*/) {}

  virtual void ScalerValue(const ScalerLabels& /*labels*/, double /*value*/) {}
  virtual void ScalerLatency(const ScalerLabels& /*labels*/, absl::Duration /*took*/) {}
  virtual void ScalerActive(const ScalerLabels& /*labels*/, bool /*active*/) {}
  // Makes the error series of a trigger appear with 0.
  virtual void ScalerRegistered(const ScalerLabels& /*labels*/) {}
  virtual void ScalerError(const ScalerLabels& /*labels*/) {}
  virtual void ScaledObjectError(const api::NamespacedName& /*object*/) {}
  virtual void ScaledObjectPaused(const api::NamespacedName& /*object*/, bool /*paused*/) {}
  virtual void PollLateness(const api::NamespacedName& /*object*/, absl::Duration /*late*/) {}
  // The keda_scaler_* series of the object go: its triggers changed, and those that it has are told
  // anew.
  virtual void ForgetScalers(const api::NamespacedName& /*object*/) {}
  // All series of the object go (case B141).
  virtual void ForgetObject(const api::NamespacedName& /*object*/) {}
  // Gauges of what exists, absolute: keda_trigger_registered_total, keda_resource_registered_total.
  virtual void TriggersRegistered(absl::string_view /*type*/, int /*count*/) {}
  virtual void ResourcesRegistered(absl::string_view /*type*/, absl::string_view /*namespace_name*/,
                                   int /*count*/) {}
  virtual void Leading(bool /*leading*/) {}
};

}  // namespace outrigger::controller::runtime
