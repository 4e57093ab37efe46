// SPDX-License-Identifier: Apache-2.0
#include "operator/runtime/object_series.h"

#include <absl/strings/str_cat.h>
#include <prometheus/client_metric.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <functional>
#include <utility>

namespace outrigger::controller::runtime {
namespace {

constexpr char kScaledObjectType[] = "scaledobject";

}  // namespace

ObjectSeries::Object& ObjectSeries::At(const api::NamespacedName& object) {
  std::unique_ptr<Object>& slot = objects_[object];
  if (slot == nullptr) slot = std::make_unique<Object>();
  return *slot;
}

ObjectSeries::Scaler& ObjectSeries::At(const ScalerLabels& labels) {
  std::vector<Scaler>& scalers = At(labels.object).scalers;
  for (Scaler& scaler : scalers) {
    if (scaler.trigger_index == labels.trigger_index && scaler.metric == labels.metric &&
        scaler.scaler == labels.scaler)
      return scaler;
  }
  scalers.reserve(scalers.size() + 1);  // most objects have one trigger: no room to spare
  scalers.push_back(
      {.metric = labels.metric, .scaler = labels.scaler, .trigger_index = labels.trigger_index});
  return scalers.back();
}

void ObjectSeries::SetValue(const ScalerLabels& labels, double value) {
  host::MutexLock lock(&mutex_);
  At(labels).value = value;
}

void ObjectSeries::SetLatency(const ScalerLabels& labels, absl::Duration took) {
  host::MutexLock lock(&mutex_);
  At(labels).latency_seconds = absl::ToDoubleSeconds(took);
}

void ObjectSeries::SetActive(const ScalerLabels& labels, bool active) {
  host::MutexLock lock(&mutex_);
  At(labels).active = active;
}

void ObjectSeries::Register(const ScalerLabels& labels) {
  host::MutexLock lock(&mutex_);
  At(labels);
}

void ObjectSeries::CountScalerError(const ScalerLabels& labels) {
  host::MutexLock lock(&mutex_);
  ++At(labels).errors;
}

void ObjectSeries::CountObjectError(const api::NamespacedName& object) {
  host::MutexLock lock(&mutex_);
  ++At(object).errors;
}

void ObjectSeries::SetPaused(const api::NamespacedName& object, bool paused) {
  host::MutexLock lock(&mutex_);
  At(object).paused = paused;
}

void ObjectSeries::SetLateness(const api::NamespacedName& object, absl::Duration late) {
  host::MutexLock lock(&mutex_);
  At(object).lateness_seconds = absl::ToDoubleSeconds(late);
}

void ObjectSeries::ForgetScalers(const api::NamespacedName& object) {
  host::MutexLock lock(&mutex_);
  if (auto it = objects_.find(object); it != objects_.end()) it->second->scalers.clear();
}

void ObjectSeries::Forget(const api::NamespacedName& object) {
  host::MutexLock lock(&mutex_);
  objects_.erase(object);
}

size_t ObjectSeries::objects() const {
  host::MutexLock lock(&mutex_);
  return objects_.size();
}

// Writes one family after the other, so that only one of them is ever held in prometheus-cpp's
// form, which is about 1 KB a series.
class ObjectSeries::Renderer {
 public:
  using Entry = std::pair<const api::NamespacedName*, const Object*>;
  using ObjectValue = std::function<std::optional<double>(const Object&)>;
  using ScalerValue = std::function<std::optional<double>(const Scaler&)>;

  Renderer(std::ostream& out, std::vector<Entry> objects)
      : out_(out), objects_(std::move(objects)) {
    std::sort(objects_.begin(), objects_.end(),
              [](const Entry& a, const Entry& b) { return *a.first < *b.first; });
  }

  void PerScaler(const char* name, const char* help, prometheus::MetricType type,
                 const ScalerValue& value_of) {
    Begin(name, help, type);
    for (const auto& [key, object] : objects_) {
      for (const Scaler& scaler : object->scalers) {
        if (const std::optional<double> value = value_of(scaler))
          Add({{"namespace", key->namespace_name},
               {"metric", scaler.metric},
               {"scaledObject", key->name},
               {"scaler", scaler.scaler},
               {"triggerIndex", absl::StrCat(scaler.trigger_index)},
               {"type", kScaledObjectType}},
              *value);
      }
    }
    End();
  }

  // `object_label` is the label of the object's name; `extra` stands before it.
  void PerObject(const char* name, const char* help, prometheus::MetricType type,
                 const char* object_label,
                 const std::vector<prometheus::ClientMetric::Label>& extra,
                 const ObjectValue& value_of) {
    Begin(name, help, type);
    for (const auto& [key, object] : objects_) {
      const std::optional<double> value = value_of(*object);
      if (!value) continue;
      std::vector<prometheus::ClientMetric::Label> labels = {{"namespace", key->namespace_name}};
      labels.insert(labels.end(), extra.begin(), extra.end());
      labels.push_back({object_label, key->name});
      Add(std::move(labels), *value);
    }
    End();
  }

 private:
  void Begin(const char* name, const char* help, prometheus::MetricType type) {
    families_.resize(1);
    families_[0] = {.name = name, .help = help, .type = type, .metric = {}};
  }

  void Add(std::vector<prometheus::ClientMetric::Label> labels, double value) {
    prometheus::ClientMetric& metric = families_[0].metric.emplace_back();
    metric.label = std::move(labels);
    metric.gauge.value = value;
    metric.counter.value = value;
  }

  void End() {
    if (!families_[0].metric.empty()) prometheus::TextSerializer().Serialize(out_, families_);
    families_.clear();
  }

  std::ostream& out_;
  std::vector<Entry> objects_;
  std::vector<prometheus::MetricFamily> families_;
};

void ObjectSeries::Render(std::ostream& out) const {
  host::MutexLock lock(&mutex_);
  std::vector<Renderer::Entry> entries;
  entries.reserve(objects_.size());
  for (const auto& [key, object] : objects_) entries.emplace_back(&key, object.get());
  Renderer renderer(out, std::move(entries));
  constexpr auto kGauge = prometheus::MetricType::Gauge;
  constexpr auto kCounter = prometheus::MetricType::Counter;
  renderer.PerScaler("keda_scaler_metrics_value", "Last value of the metric of a trigger.", kGauge,
                     [](const Scaler& scaler) { return scaler.value; });
  renderer.PerScaler("keda_scaler_metrics_latency_seconds",
                     "How long the last answer of a trigger took.", kGauge,
                     [](const Scaler& scaler) { return scaler.latency_seconds; });
  renderer.PerScaler("keda_scaler_active", "Whether a trigger was active (1) at its last poll.",
                     kGauge, [](const Scaler& scaler) -> std::optional<double> {
                       if (!scaler.active) return std::nullopt;
                       return *scaler.active ? 1 : 0;
                     });
  renderer.PerScaler("keda_scaler_detail_errors_total", "Failed answers of a trigger.", kCounter,
                     [](const Scaler& scaler) { return std::optional<double>(scaler.errors); });
  renderer.PerObject("keda_scaled_object_paused", "Whether a ScaledObject is paused (1).", kGauge,
                     "scaledObject", {},
                     [](const Object& object) { return std::optional<double>(object.paused); });
  renderer.PerObject("keda_scaled_object_errors_total",
                     "Failed answers of the triggers of a ScaledObject.", kCounter, "scaledObject",
                     {}, [](const Object& object) { return std::optional<double>(object.errors); });
  renderer.PerObject("keda_internal_scale_loop_latency_seconds",
                     "How late the last poll of a ScaledObject began.", kGauge, "resource",
                     {{"type", kScaledObjectType}},
                     [](const Object& object) { return object.lateness_seconds; });
}

}  // namespace outrigger::controller::runtime
