// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "host/base/clock.h"
#include "host/client/scaler_service.h"

namespace outrigger::controller {

// Plugins whose answers a test sets, in virtual time. A trigger is answered by the script that its
// metadata names ("script"), else by the script of its type. Triggers may change their scripts'
// answers at any time; calls under way answer with what the script says when their delay is over.
class ScriptedScalers : public host::ScalerService {
 public:
  struct Script {
    std::vector<std::pair<std::string, double>> specs = {{"queue", 5}};  // metric, target
    std::multimap<std::string, double> values = {{"queue", 0}};          // several of one: series
    std::optional<bool> active;  // absent: a value is above 0
    absl::Status error;          // of metrics
    absl::Status spec_error;
    std::vector<scaler::v1::Violation> violations;
    absl::Duration delay;  // of metrics; beyond the timeout: DEADLINE_EXCEEDED
    absl::Duration spec_delay;
    absl::Duration retry_after;
    bool silent = false;  // a batch entry that never gets an answer
  };
  struct Call {
    std::string method;  // metrics, spec, validate
    std::string script;
    bool poll = false;
    size_t batch = 0;  // number of the batch; 0: a single call
    scaler::v1::Trigger trigger;
  };

  explicit ScriptedScalers(host::Clock& clock) : clock_(clock) {}

  Script& operator[](const std::string& name) { return scripts_[name]; }
  void SetValue(const std::string& name, double value) {
    scripts_[name].values.begin()->second = value;
    scripts_[name].error = absl::OkStatus();
  }
  void SetSeries(const std::string& name, const std::vector<double>& values) {
    scripts_[name].values.clear();
    for (const double value : values) scripts_[name].values.emplace("queue", value);
  }
  void SetError(const std::string& name, absl::Status error) {
    scripts_[name].error = std::move(error);
  }

  // Types are open (all metadata is sent) unless a schema was set.
  void Connect(const std::string& plugin, const std::vector<std::string>& types);
  void Disconnect(const std::string& plugin);
  void SetSchema(scaler::v1::TriggerType schema) { schemas_[schema.name()] = std::move(schema); }

  const std::vector<Call>& calls() const { return calls_; }
  int Count(absl::string_view method, absl::string_view script = "") const;
  int Polls(absl::string_view script = "") const;
  size_t batches() const { return batches_; }
  size_t at_once() const { return most_at_once_; }  // most spec and metric calls that ran at once
  void Clear() { calls_.clear(); }

  std::optional<std::string> PluginFor(const std::string& trigger_type) const override;
  std::optional<scaler::v1::TriggerType> SchemaFor(const std::string& trigger_type) const override;
  std::string SchemaVersion(const std::string& trigger_type) const override;
  std::vector<host::PluginStatus> Plugins() const override { return {}; }
  host::Task<absl::StatusOr<std::vector<scaler::v1::Violation>>> ValidateTrigger(
      host::TriggerPtr trigger, host::Deadline deadline) override;
  host::Task<absl::StatusOr<std::vector<scaler::v1::MetricSpec>>> GetMetricSpecForScaling(
      host::TriggerPtr trigger, host::Deadline deadline) override;
  host::Task<absl::StatusOr<host::MetricsAnswer>> GetMetrics(host::TriggerPtr trigger,
                                                             host::MetricQuery query,
                                                             host::Deadline deadline) override;
  host::Task<void> BatchGetMetrics(
      std::vector<host::BatchItem> items,
      std::function<void(size_t, absl::StatusOr<host::MetricsAnswer>)> on_answer,
      host::Deadline deadline) override;
  void SetChangeListener(std::function<void(std::vector<std::string>)> on_change) override {
    on_change_ = std::move(on_change);
  }

 private:
  std::string NameOf(const scaler::v1::Trigger& trigger) const;
  absl::Status Reachable(const scaler::v1::Trigger& trigger) const;
  absl::StatusOr<host::MetricsAnswer> Answer(const Script& script, const std::string& metric) const;
  host::Task<absl::StatusOr<host::MetricsAnswer>> Ask(host::TriggerPtr trigger,
                                                      host::MetricQuery query,
                                                      host::Deadline deadline, size_t batch);
  void Record(absl::string_view method, const scaler::v1::Trigger& trigger, bool poll,
              size_t batch);

  host::Clock& clock_;
  std::map<std::string, Script> scripts_;
  std::map<std::string, std::string> plugin_of_;  // by type
  std::set<std::string> connected_;               // plugins
  std::map<std::string, scaler::v1::TriggerType> schemas_;
  std::function<void(std::vector<std::string>)> on_change_;
  std::vector<Call> calls_;
  size_t batches_ = 0;
  size_t now_at_once_ = 0;
  size_t most_at_once_ = 0;
};

}  // namespace outrigger::controller
