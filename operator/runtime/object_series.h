// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/time/time.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "host/base/mutex.h"
#include "operator/api/namespaced_name.h"
#include "operator/runtime/metrics_sink.h"

namespace outrigger::controller::runtime {

// The series that carry the name of a ScaledObject: keda_scaler_*, keda_scaled_object_*,
// keda_internal_scale_loop_latency_seconds. Kept as one record per object, not as one labelled
// series per name: prometheus-cpp would hold each label set in a map of its own, about 1 KB a
// series, and could not drop an object's series together.
//
// Thread-safe, never blocks. Used by PrometheusMetrics only.
class ObjectSeries {
 public:
  void SetValue(const ScalerLabels& labels, double value);
  void SetLatency(const ScalerLabels& labels, absl::Duration took);
  void SetActive(const ScalerLabels& labels, bool active);
  void Register(const ScalerLabels& labels);
  void CountScalerError(const ScalerLabels& labels);
  void CountObjectError(const api::NamespacedName& object);
  void SetPaused(const api::NamespacedName& object, bool paused);
  void SetLateness(const api::NamespacedName& object, absl::Duration late);

  void ForgetScalers(const api::NamespacedName& object);
  void Forget(const api::NamespacedName& object);
  size_t objects() const;

  // In Prometheus' text format, one family at a time, objects in order of their names.
  void Render(std::ostream& out) const;

 private:
  struct Scaler {
    std::string metric;
    std::string scaler;
    uint32_t trigger_index = 0;
    uint32_t errors = 0;
    std::optional<bool> active;
    std::optional<double> value;
    std::optional<double> latency_seconds;
  };
  struct Object {
    std::vector<Scaler> scalers;
    uint32_t errors = 0;
    bool paused = false;
    std::optional<double> lateness_seconds;
  };
  class Renderer;

  Object& At(const api::NamespacedName& object) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Scaler& At(const ScalerLabels& labels) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable host::Mutex mutex_;
  absl::flat_hash_map<api::NamespacedName, std::unique_ptr<Object>> objects_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace outrigger::controller::runtime
