// SPDX-License-Identifier: Apache-2.0
#include "tests/operator/support/scripted_scalers.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <utility>

#include "host/base/task_group.h"

namespace outrigger::controller {

void ScriptedScalers::Connect(const std::string& plugin, const std::vector<std::string>& types) {
  connected_.insert(plugin);
  for (const std::string& type : types) {
    plugin_of_[type] = plugin;
    scaler::v1::TriggerType& schema = schemas_[type];
    if (!schema.name().empty()) continue;
    schema.set_name(type);
    schema.set_open(true);
  }
  if (on_change_) on_change_(types);
}

void ScriptedScalers::Disconnect(const std::string& plugin) {
  connected_.erase(plugin);
  std::vector<std::string> types;
  for (const auto& [type, owner] : plugin_of_) {
    if (owner == plugin) types.push_back(type);
  }
  if (on_change_) on_change_(types);
}

int ScriptedScalers::Count(absl::string_view method, absl::string_view script) const {
  return static_cast<int>(std::count_if(calls_.begin(), calls_.end(), [&](const Call& call) {
    return call.method == method && (script.empty() || call.script == script);
  }));
}

int ScriptedScalers::Polls(absl::string_view script) const {
  return static_cast<int>(std::count_if(calls_.begin(), calls_.end(), [&](const Call& call) {
    return call.poll && (script.empty() || call.script == script);
  }));
}

std::optional<std::string> ScriptedScalers::PluginFor(const std::string& trigger_type) const {
  auto it = plugin_of_.find(trigger_type);
  return it == plugin_of_.end() ? std::nullopt : std::make_optional(it->second);
}

std::optional<scaler::v1::TriggerType> ScriptedScalers::SchemaFor(
    const std::string& trigger_type) const {
  if (!plugin_of_.contains(trigger_type)) return std::nullopt;
  return schemas_.at(trigger_type);
}

std::string ScriptedScalers::SchemaVersion(const std::string& trigger_type) const {
  const auto schema = SchemaFor(trigger_type);
  return schema ? schema->SerializeAsString() : "";
}

std::string ScriptedScalers::NameOf(const scaler::v1::Trigger& trigger) const {
  auto named = trigger.metadata().find("script");
  return named == trigger.metadata().end() ? trigger.type() : named->second;
}

absl::Status ScriptedScalers::Reachable(const scaler::v1::Trigger& trigger) const {
  auto plugin = plugin_of_.find(trigger.type());
  if (plugin != plugin_of_.end() && connected_.contains(plugin->second)) return absl::OkStatus();
  absl::Status status =
      absl::UnavailableError(absl::StrCat("plugin of type ", trigger.type(), " is not connected"));
  host::MarkPluginUnreachable(status);
  return status;
}

void ScriptedScalers::Record(absl::string_view method, const scaler::v1::Trigger& trigger,
                             bool poll, size_t batch) {
  calls_.push_back({.method = std::string(method),
                    .script = NameOf(trigger),
                    .poll = poll,
                    .batch = batch,
                    .trigger = trigger});
}

host::Task<absl::StatusOr<std::vector<scaler::v1::Violation>>> ScriptedScalers::ValidateTrigger(
    host::TriggerPtr trigger, host::Deadline) {
  if (const absl::Status reachable = Reachable(*trigger); !reachable.ok()) co_return reachable;
  Record("validate", *trigger, false, 0);
  co_return scripts_[NameOf(*trigger)].violations;
}

host::Task<absl::StatusOr<std::vector<scaler::v1::MetricSpec>>>
ScriptedScalers::GetMetricSpecForScaling(host::TriggerPtr trigger, host::Deadline deadline) {
  if (const absl::Status reachable = Reachable(*trigger); !reachable.ok()) co_return reachable;
  Record("spec", *trigger, false, 0);
  const std::string name = NameOf(*trigger);
  most_at_once_ = std::max(most_at_once_, ++now_at_once_);
  const host::SteadyTime ready = clock_.SteadyNow() + scripts_[name].spec_delay;
  co_await clock_.SleepUntil(std::min(ready, deadline.time()));
  --now_at_once_;
  if (ready > deadline.time()) co_return absl::DeadlineExceededError("no spec in time");
  const Script& script = scripts_[name];
  if (!script.spec_error.ok()) co_return script.spec_error;
  std::vector<scaler::v1::MetricSpec> specs;
  for (const auto& [metric, target] : script.specs) {
    specs.emplace_back();
    specs.back().set_name(metric);
    specs.back().set_target(target);
  }
  co_return specs;
}

absl::StatusOr<host::MetricsAnswer> ScriptedScalers::Answer(const Script& script,
                                                            const std::string& metric) const {
  if (!script.error.ok()) return script.error;
  host::MetricsAnswer answer;
  answer.retry_after = script.retry_after;
  for (const auto& [name, value] : script.values) {
    answer.active |= value > 0;
    if (!metric.empty() && name != metric) continue;
    answer.values.emplace_back();
    answer.values.back().set_name(name);
    answer.values.back().set_value(value);
  }
  answer.active = script.active.value_or(answer.active);
  return answer;
}

host::Task<absl::StatusOr<host::MetricsAnswer>> ScriptedScalers::Ask(host::TriggerPtr trigger,
                                                                     host::MetricQuery query,
                                                                     host::Deadline deadline,
                                                                     size_t batch) {
  if (const absl::Status reachable = Reachable(*trigger); !reachable.ok()) co_return reachable;
  Record("metrics", *trigger, query.poll, batch);
  const std::string name = NameOf(*trigger);
  most_at_once_ = std::max(most_at_once_, ++now_at_once_);
  const host::SteadyTime ready = clock_.SteadyNow() + scripts_[name].delay;
  const host::SteadyTime end = deadline.Within(clock_, query.timeout).time();
  co_await clock_.SleepUntil(std::min(ready, end));
  --now_at_once_;
  if (ready > end) co_return absl::DeadlineExceededError("no answer in time");
  if (const absl::Status reachable = Reachable(*trigger); !reachable.ok()) co_return reachable;
  co_return Answer(scripts_[name], query.metric_name);
}

host::Task<absl::StatusOr<host::MetricsAnswer>> ScriptedScalers::GetMetrics(
    host::TriggerPtr trigger, host::MetricQuery query, host::Deadline deadline) {
  co_return co_await Ask(std::move(trigger), std::move(query), deadline, 0);
}

host::Task<void> ScriptedScalers::BatchGetMetrics(
    std::vector<host::BatchItem> items,
    std::function<void(size_t, absl::StatusOr<host::MetricsAnswer>)> on_answer,
    host::Deadline deadline) {
  const host::Executor executor = co_await boost::asio::this_coro::executor;
  const size_t batch = ++batches_;
  host::TaskGroup group(clock_, executor);
  auto one = [this, &items, &on_answer, deadline, batch](size_t i) -> host::Task<void> {
    absl::StatusOr<host::MetricsAnswer> answer =
        co_await Ask(items[i].trigger, items[i].query, deadline, batch);
    if (!scripts_[NameOf(*items[i].trigger)].silent) on_answer(i, std::move(answer));
  };
  for (size_t i = 0; i < items.size(); ++i) group.Spawn(one(i));
  co_await group.Join();
}

}  // namespace outrigger::controller
