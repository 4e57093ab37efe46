// SPDX-License-Identifier: Apache-2.0
#include "operator/runtime/prometheus_metrics.h"

#include <absl/container/flat_hash_map.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <array>
#include <initializer_list>
#include <sstream>
#include <utility>
#include <vector>

#include "host/base/mutex.h"
#include "operator/runtime/object_series.h"

namespace outrigger::controller::runtime {
namespace {

using prometheus::Counter;
using prometheus::Gauge;
using prometheus::Histogram;
using Buckets = Histogram::BucketBoundaries;
using LabelValues = std::initializer_list<absl::string_view>;

#if defined(__x86_64__)
constexpr char kArchitecture[] = "amd64";
#elif defined(__aarch64__)
constexpr char kArchitecture[] = "arm64";
#else
constexpr char kArchitecture[] = "unknown";
#endif

// Those of controller-runtime, workqueue and client-go, so that their dashboards fit.
const Buckets kReconcileBuckets = {0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3,  0.35,
                                   0.4,   0.45, 0.5,   0.6,  0.7, 0.8,  0.9, 1,    1.25, 1.5,
                                   1.75,  2,    2.5,   3,    3.5, 4,    4.5, 5,    6,    7,
                                   8,     9,    10,    15,   20,  25,   30,  40,   50,   60};
const Buckets kQueueBuckets = {1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10, 100, 1000};
const Buckets kApiBuckets = {0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60};
const Buckets kStepBuckets = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                              0.05,   0.1,     0.25,   0.5,   1,      2.5,   5,    10};

// Index: LoopStep.
constexpr std::array<absl::string_view, 7> kStepNames = {"event",  "queue", "reconcile", "read",
                                                         "decide", "write", "status"};
constexpr char kScaledObjectController[] = "scaledobject";

// The series of one family by the values of their labels. Looked up without building prometheus-
// cpp's label map, for some are told at each request.
template <typename Metric>
class Series {
 public:
  Series(prometheus::Registry& registry, const char* name, const char* help,
         std::vector<std::string> label_names, Buckets buckets = {})
      : family_(Register(registry, name, help)),
        label_names_(std::move(label_names)),
        buckets_(std::move(buckets)) {}

  Metric& At(LabelValues values) {
    host::MutexLock lock(&mutex_);
    Metric*& slot = by_values_[Key(values)];
    if (slot == nullptr) slot = &Add(values);
    return *slot;
  }

  void Remove(LabelValues values) {
    host::MutexLock lock(&mutex_);
    auto it = by_values_.find(Key(values));
    if (it == by_values_.end()) return;
    family_.Remove(it->second);
    by_values_.erase(it);
  }

 private:
  static prometheus::Family<Metric>& Register(prometheus::Registry& registry, const char* name,
                                              const char* help) {
    typename prometheus::detail::Builder<Metric> builder;
    return builder.Name(name).Help(help).Register(registry);
  }

  static std::string Key(LabelValues values) { return absl::StrJoin(values, "\n"); }

  Metric& Add(LabelValues values) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    prometheus::Labels labels;
    size_t i = 0;
    for (absl::string_view value : values) labels[label_names_[i++]] = std::string(value);
    if constexpr (std::is_same_v<Metric, Histogram>)
      return family_.Add(labels, buckets_);
    else
      return family_.Add(labels);
  }

  prometheus::Family<Metric>& family_;
  const std::vector<std::string> label_names_;
  const Buckets buckets_;
  host::Mutex mutex_;
  absl::flat_hash_map<std::string, Metric*> by_values_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

struct PrometheusMetrics::Families {
  prometheus::Registry registry;

  Series<Gauge> build{registry,
                      "keda_build_info",
                      "What this process was built from.",
                      {"version", "git_commit", "goversion", "goos", "goarch"}};
  Series<Histogram> steps{registry,
                          "outrigger_loop_step_duration_seconds",
                          "Duration of one step of the control loop.",
                          {"step"},
                          kStepBuckets};
  Series<Counter> reconciles{registry,
                             "controller_runtime_reconcile_total",
                             "Reconciles by their result.",
                             {"controller", "result"}};
  Series<Counter> reconcile_errors{registry,
                                   "controller_runtime_reconcile_errors_total",
                                   "Reconciles that failed.",
                                   {"controller"}};
  Series<Histogram> reconcile_time{registry,
                                   "controller_runtime_reconcile_time_seconds",
                                   "Duration of a reconcile.",
                                   {"controller"},
                                   kReconcileBuckets};
  Series<Gauge> queue_depth{registry, "workqueue_depth", "Keys that wait in a queue.", {"name"}};
  Series<Counter> queue_adds{registry, "workqueue_adds_total", "Keys added to a queue.", {"name"}};
  Series<Counter> queue_retries{registry,
                                "workqueue_retries_total",
                                "Keys that came back to a queue after a failure.",
                                {"name"}};
  Series<Histogram> queue_duration{registry,
                                   "workqueue_queue_duration_seconds",
                                   "How long a key waited in a queue.",
                                   {"name"},
                                   kQueueBuckets};
  Series<Counter> api_requests{registry,
                               "rest_client_requests_total",
                               "Requests to the API server; code \"error\": no answer came.",
                               {"code", "method", "resource"}};
  Series<Histogram> api_duration{registry,
                                 "rest_client_request_duration_seconds",
                                 "Duration of a request to the API server.",
                                 {"verb", "resource"},
                                 kApiBuckets};
  Series<Gauge> informers{registry,
                          "outrigger_informer_synced",
                          "Whether the cache of a resource has been filled (1).",
                          {"resource"}};
  Series<Counter> conflicts{registry,
                            "outrigger_status_conflicts_total",
                            "Status writes that met a newer version and were done again.",
                            {}};
  Series<Counter> reads{registry,
                        "outrigger_external_metric_reads_total",
                        "Requests for a metric by HTTP code.",
                        {"code"}};
  Series<Histogram> read_duration{registry,
                                  "outrigger_external_metric_read_duration_seconds",
                                  "Duration of a request for a metric, authorisation included.",
                                  {},
                                  kStepBuckets};
  Series<Gauge> triggers{registry,
                         "keda_trigger_registered_total",
                         "Triggers of all ScaledObjects by type.",
                         {"type"}};
  Series<Gauge> resources{registry,
                          "keda_resource_registered_total",
                          "Custom resources by kind and namespace.",
                          {"type", "namespace"}};
  Series<Gauge> leader{registry, "outrigger_leader", "Whether this replica leads (1).", {}};
  ObjectSeries objects;
};

PrometheusMetrics::PrometheusMetrics(const BuildInfo& build)
    : families_(std::make_unique<Families>()) {
  Families& f = *families_;
  f.build.At({build.version, build.git_commit, "none", "linux", kArchitecture}).Set(1);
  for (absl::string_view step : kStepNames) f.steps.At({step});
  for (absl::string_view result : {"success", "requeue", "requeue_after", "error"})
    f.reconciles.At({kScaledObjectController, result});
  f.reconcile_errors.At({kScaledObjectController});
  f.reconcile_time.At({kScaledObjectController});
  f.queue_depth.At({kScaledObjectController});
  f.queue_adds.At({kScaledObjectController});
  f.queue_retries.At({kScaledObjectController});
  f.queue_duration.At({kScaledObjectController});
  f.conflicts.At({});
  for (absl::string_view code : {"200", "400", "401", "403", "404", "405", "500", "503", "504"})
    f.reads.At({code});
  f.read_duration.At({});
  f.leader.At({});
}

PrometheusMetrics::~PrometheusMetrics() = default;

std::string PrometheusMetrics::Render() const {
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, families_->registry.Collect());
  families_->objects.Render(out);
  return std::move(out).str();
}

void PrometheusMetrics::Step(LoopStep step, absl::Duration took) {
  families_->steps.At({kStepNames[static_cast<size_t>(step)]}).Observe(absl::ToDoubleSeconds(took));
}

void PrometheusMetrics::Reconciled(absl::string_view controller, absl::string_view outcome,
                                   absl::Duration took) {
  families_->reconciles.At({controller, outcome}).Increment();
  if (outcome == "error") families_->reconcile_errors.At({controller}).Increment();
  families_->reconcile_time.At({controller}).Observe(absl::ToDoubleSeconds(took));
}

void PrometheusMetrics::QueueDepth(absl::string_view queue, size_t depth) {
  families_->queue_depth.At({queue}).Set(static_cast<double>(depth));
}

void PrometheusMetrics::QueueAdded(absl::string_view queue) {
  families_->queue_adds.At({queue}).Increment();
}

void PrometheusMetrics::QueueRetried(absl::string_view queue) {
  families_->queue_retries.At({queue}).Increment();
}

void PrometheusMetrics::QueueWaited(absl::string_view queue, absl::Duration waited) {
  families_->queue_duration.At({queue}).Observe(absl::ToDoubleSeconds(waited));
}

void PrometheusMetrics::StatusConflict() { families_->conflicts.At({}).Increment(); }

void PrometheusMetrics::InformerSynced(absl::string_view resource, bool synced) {
  families_->informers.At({resource}).Set(synced ? 1 : 0);
}

void PrometheusMetrics::ApiRequest(absl::string_view verb, absl::string_view resource, int code,
                                   absl::Duration took) {
  const std::string text = code > 0 ? absl::StrCat(code) : "error";
  families_->api_requests.At({text, verb, resource}).Increment();
  families_->api_duration.At({verb, resource}).Observe(absl::ToDoubleSeconds(took));
}

void PrometheusMetrics::MetricRead(int http_code, absl::Duration took) {
  families_->reads.At({absl::StrCat(http_code)}).Increment();
  families_->read_duration.At({}).Observe(absl::ToDoubleSeconds(took));
}

void PrometheusMetrics::ScalerValue(const ScalerLabels& labels, double value) {
  families_->objects.SetValue(labels, value);
}

void PrometheusMetrics::ScalerLatency(const ScalerLabels& labels, absl::Duration took) {
  families_->objects.SetLatency(labels, took);
}

void PrometheusMetrics::ScalerActive(const ScalerLabels& labels, bool active) {
  families_->objects.SetActive(labels, active);
}

void PrometheusMetrics::ScalerRegistered(const ScalerLabels& labels) {
  families_->objects.Register(labels);
}

void PrometheusMetrics::ScalerError(const ScalerLabels& labels) {
  families_->objects.CountScalerError(labels);
}

void PrometheusMetrics::ScaledObjectError(const api::NamespacedName& object) {
  families_->objects.CountObjectError(object);
}

void PrometheusMetrics::ScaledObjectPaused(const api::NamespacedName& object, bool paused) {
  families_->objects.SetPaused(object, paused);
}

void PrometheusMetrics::PollLateness(const api::NamespacedName& object, absl::Duration late) {
  families_->objects.SetLateness(object, late);
}

void PrometheusMetrics::ForgetScalers(const api::NamespacedName& object) {
  families_->objects.ForgetScalers(object);
}

void PrometheusMetrics::ForgetObject(const api::NamespacedName& object) {
  families_->objects.Forget(object);
}

void PrometheusMetrics::TriggersRegistered(absl::string_view type, int count) {
  families_->triggers.At({type}).Set(count);
}

// Unlike trigger types, namespaces come and go without end: none is kept at 0.
void PrometheusMetrics::ResourcesRegistered(absl::string_view type,
                                            absl::string_view namespace_name, int count) {
  const absl::string_view shown = namespace_name.empty() ? "default" : namespace_name;
  if (count > 0) {
    families_->resources.At({type, shown}).Set(count);
  } else {
    families_->resources.Remove({type, shown});
  }
}

void PrometheusMetrics::Leading(bool leading) { families_->leader.At({}).Set(leading ? 1 : 0); }

}  // namespace outrigger::controller::runtime
