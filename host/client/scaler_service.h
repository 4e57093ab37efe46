// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/base/deadline.h"
#include "host/base/task.h"
#include "outrigger/scaler/v1/scaler.pb.h"

namespace outrigger::host {

// Immutable once built; shared by polls, reads and connection tests. `fingerprint` is set.
using TriggerPtr = std::shared_ptr<const scaler::v1::Trigger>;

// What is asked of one trigger.
struct MetricQuery {
  std::string metric_name;  // without prefix; "" = all metrics of the trigger
  std::string selector;     // label-selector text; "" = all values
  bool poll = false;        // true only for the poll engine at the due time
  // How long the answer is waited for; never beyond the deadline of the call.
  absl::Duration timeout = absl::Seconds(3);
};

// A checked answer: every value finite, at most 1,000 of them.
struct MetricsAnswer {
  std::vector<scaler::v1::MetricValue> values;
  bool active = false;
  absl::Duration retry_after = absl::ZeroDuration();  // already cut to 30 s
};

struct BatchItem {
  TriggerPtr trigger;
  MetricQuery query;
};

enum class PluginState { kConnecting, kReady, kUnavailable, kRefused };
// "connecting", "ready", "unavailable", "refused": what people read.
const char* PluginStateName(PluginState state);

struct PluginStatus {
  std::string name;  // identity
  std::string address;
  PluginState state = PluginState::kConnecting;
  std::string reason;  // of a state other than ready
  absl::Time since;    // of the state
  std::string version;
  std::vector<std::string> trigger_types;  // that it is asked for
  std::vector<std::string> ignored_types;  // announced, but another plugin serves them
  uint32_t waiting_calls = 0;
};

// What the operator knows of scalers: which plugin serves a type, and asking it. ScalerClient
// implements it over gRPC; the simulation scripts it.
//
// Call from one strand; results come on the caller's executor. Every call ends by its deadline.
// Errors keep the code that the plugin returned, with "plugin <name>" in the message; a plugin that
// could not be asked at all (no plugin for the type, not connected, breaker open, too many calls
// waiting) is UNAVAILABLE with IsPluginUnreachable().
class ScalerService {
 public:
  virtual ~ScalerService() = default;

  // The plugin that serves a trigger type; nullopt: none is known (yet).
  virtual std::optional<std::string> PluginFor(const std::string& trigger_type) const = 0;
  // What its plugin announced; kept while the plugin is away. nullopt: never connected.
  virtual std::optional<scaler::v1::TriggerType> SchemaFor(
      const std::string& trigger_type) const = 0;
  // Changes when SchemaFor() would tell something else; "" where it would tell nothing. Cheap.
  virtual std::string SchemaVersion(const std::string& trigger_type) const = 0;
  virtual std::vector<PluginStatus> Plugins() const = 0;

  // A plugin without ValidateTrigger gives no violations.
  virtual Task<absl::StatusOr<std::vector<scaler::v1::Violation>>> ValidateTrigger(
      TriggerPtr trigger, Deadline deadline) = 0;
  // At least one spec, names non-empty, targets finite; else INTERNAL.
  virtual Task<absl::StatusOr<std::vector<scaler::v1::MetricSpec>>> GetMetricSpecForScaling(
      TriggerPtr trigger, Deadline deadline) = 0;
  // Equal questions in flight (fingerprint, metric, selector, not poll) become one call; calls
  // within one 5 ms window go as one batch.
  virtual Task<absl::StatusOr<MetricsAnswer>> GetMetrics(TriggerPtr trigger, MetricQuery query,
                                                         Deadline deadline) = 0;

  // Asks one plugin for many triggers, split into as many calls as its limits need. `on_answer`
  // runs exactly once per item, as its answer comes, on the caller's executor, before this returns;
  // an item without an answer gets DEADLINE_EXCEEDED.
  virtual Task<void> BatchGetMetrics(
      std::vector<BatchItem> items,
      std::function<void(size_t, absl::StatusOr<MetricsAnswer>)> on_answer, Deadline deadline) = 0;

  // `on_change(types)` runs on the strand when a plugin connects, goes, or announces other types or
  // schemas; `types` are those concerned. One listener.
  virtual void SetChangeListener(std::function<void(std::vector<std::string> types)> on_change) = 0;
};

void MarkPluginUnreachable(absl::Status& status);
bool IsPluginUnreachable(const absl::Status& status);

// When a scaler that failed asks not to be asked again sooner; nullopt: it did not say. At most
// 30 s.
void SetRetryAfter(absl::Status& status, absl::Duration delay);
std::optional<absl::Duration> RetryAfter(const absl::Status& status);

// Sets `fingerprint`: HMAC under `key` of type, metadata, environment, authentication and metric
// type, and of the object reference where the type is per_object. Canonical: the order of map
// entries does not matter.
void SetFingerprint(scaler::v1::Trigger& trigger, bool per_object, absl::string_view key);

}  // namespace outrigger::host
