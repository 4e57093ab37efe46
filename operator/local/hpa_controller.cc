// SPDX-License-Identifier: Apache-2.0
#include "operator/local/hpa_controller.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <cmath>
#include <set>
#include <utility>

#include "host/base/status.h"
#include "host/base/task_group.h"
#include "operator/api/object_meta.h"
#include "operator/api/object_reader.h"

namespace outrigger::controller::local {
namespace {

namespace json = boost::json;
using host::Deadline;
using host::Task;

constexpr char kAbleToScale[] = "AbleToScale";

absl::StatusOr<kube::Resource> ResourceOf(const api::CrossVersionObjectReference& target) {
  for (const auto& [kind, resource] :
       {std::pair("Deployment", kube::Deployments()), {"StatefulSet", kube::StatefulSets()}}) {
    if (target.kind == kind && target.api_version == "apps/v1") return resource;
  }
  const std::pair<std::string, std::string> group_version =
      absl::StrSplit(target.api_version, absl::MaxSplits('/', 1));
  return absl::NotFoundError(absl::StrCat("no matches for kind \"", target.kind, "\" in group \"",
                                          group_version.first, "\""));
}

absl::StatusOr<ScaleState> ParseScale(const json::value& scale) {
  ScaleState state;
  api::ObjectReader reader("", scale);
  const json::value* spec = reader.FindObject("spec");
  const json::value* status = reader.FindObject("status");
  RETURN_IF_ERROR(reader.status());
  if (spec != nullptr) {
    api::ObjectReader part("spec", *spec);
    part.Read("replicas", state.spec_replicas);
    reader.Merge(part.status());
  }
  if (status != nullptr) {
    api::ObjectReader part("status", *status);
    part.Read("replicas", state.status_replicas);
    part.Read("selector", state.selector);
    reader.Merge(part.status());
  }
  RETURN_IF_ERROR(reader.status());
  return state;
}

int32_t ReadyReplicasOf(const json::value& target) {
  boost::json::error_code error;
  const json::value* ready = target.find_pointer("/status/readyReplicas", error);
  return ready != nullptr && ready->is_int64() ? static_cast<int32_t>(ready->get_int64()) : 0;
}

bool HasValueTarget(const api::HpaSpec& spec) {
  return std::any_of(spec.metrics.begin(), spec.metrics.end(),
                     [](const api::HpaMetric& metric) { return metric.target.value.has_value(); });
}

absl::StatusOr<std::vector<int64_t>> ToMilli(const absl::StatusOr<std::vector<double>>& values) {
  RETURN_IF_ERROR(values.status());
  std::vector<int64_t> milli;
  for (double value : *values) {
    if (!std::isfinite(value)) {
      return absl::InternalError(absl::StrCat("metric value: want a finite number, got ", value));
    }
    milli.push_back(api::Quantity::FromDouble(value).AsMilli());
  }
  return milli;
}

absl::Status NoSuchMetrics(const api::HpaMetric& metric) {
  constexpr absl::string_view kWhy = "not available in embedded mode";
  if (metric.type == api::kResourceMetric || metric.type == api::kContainerResourceMetric) {
    return absl::UnimplementedError(absl::StrCat(
        "failed to get ", metric.name,
        metric.target.average_value.has_value() ? " usage" : " utilization",
        ": unable to get metrics for resource ", metric.name, ": resource metrics are ", kWhy));
  }
  return absl::UnimplementedError(absl::StrCat(metric.type, " metrics are ", kWhy));
}

// The status of an HPA as Go prints it: zeros and absent members left out, currentMetrics always
// there.
json::object StatusJson(const json::object& before, int32_t current, int32_t desired,
                        json::value current_metrics, const api::Conditions& conditions) {
  json::object status;
  if (const json::value* time = before.if_contains("lastScaleTime"))
    status["lastScaleTime"] = *time;
  if (current != 0) status["currentReplicas"] = current;
  status["desiredReplicas"] = desired;
  status["currentMetrics"] = std::move(current_metrics);
  status["conditions"] = api::ConditionsToJson(conditions);
  return status;
}

}  // namespace

HpaController::HpaController(kube::Api& api, ExternalMetrics& metrics, host::Clock& clock,
                             Options options)
    : api_(api), metrics_(metrics), clock_(clock), options_(std::move(options)) {}

Task<void> HpaController::Run() {
  host::SteadyTime next = clock_.SteadyNow();
  while (!stopping_) {
    next = std::max(next, clock_.SteadyNow() - options_.sync_period) + options_.sync_period;
    // A list that failed is tried again at the next sync: the HPAs hold meanwhile.
    (co_await SyncAll()).IgnoreError();
    if (!stopping_) co_await wake_.WaitUntil(clock_, next);
  }
}

void HpaController::Stop() {
  stopping_ = true;
  wake_.Notify();
}

Deadline HpaController::CallDeadline() const {
  return Deadline::After(clock_, options_.call_timeout);
}

void HpaController::Emit(api::NamespacedName hpa, bool warning, std::string reason,
                         std::string message) const {
  if (!options_.on_event) return;
  options_.on_event({std::move(hpa), warning, std::move(reason), std::move(message)});
}

Task<absl::Status> HpaController::SyncAll() {
  auto items = std::make_shared<std::vector<json::value>>();
  kube::ListOptions options;
  do {
    absl::StatusOr<kube::ObjectList> page =
        co_await api_.List(kube::HorizontalPodAutoscalers(), "", options, CallDeadline());
    CO_RETURN_IF_ERROR(page.status());
    std::move(page->items.begin(), page->items.end(), std::back_inserter(*items));
    options.continue_token = page->continue_token;
  } while (!options.continue_token.empty());

  std::set<api::NamespacedName> present;
  for (const json::value& item : *items) {
    const absl::StatusOr<api::ObjectMeta> meta = api::ParseObjectMeta(item);
    if (meta.ok()) present.insert(meta->Key());
  }
  std::erase_if(histories_, [&](const auto& entry) { return !present.contains(entry.first); });

  host::TaskGroup workers(clock_, co_await boost::asio::this_coro::executor);
  auto next = std::make_shared<size_t>(0);
  for (int i = 0; i < options_.workers; ++i) workers.Spawn(Worker(items, next));
  co_await workers.Join();
  co_return absl::OkStatus();
}

Task<void> HpaController::Worker(std::shared_ptr<std::vector<json::value>> items,
                                 std::shared_ptr<size_t> next) {
  while (*next < items->size() && !stopping_) {
    json::value& item = (*items)[(*next)++];
    co_await SyncOne(std::move(item));
  }
}

Task<absl::StatusOr<HpaController::Target>> HpaController::ReadTarget(
    const api::HorizontalPodAutoscaler& hpa) {
  Target target;
  const api::CrossVersionObjectReference& reference = hpa.spec.scale_target_ref;
  CO_ASSIGN_OR_RETURN(target.resource, ResourceOf(reference));
  CO_ASSIGN_OR_RETURN(target.scale, co_await api_.Get(target.resource, hpa.meta.namespace_name,
                                                      reference.name, "scale", CallDeadline()));
  CO_ASSIGN_OR_RETURN(target.state, ParseScale(target.scale));
  if (HasValueTarget(hpa.spec)) {
    CO_ASSIGN_OR_RETURN(const json::value object,
                        co_await api_.Get(target.resource, hpa.meta.namespace_name, reference.name,
                                          "", CallDeadline()));
    target.state.ready_replicas = ReadyReplicasOf(object);
  }
  co_return target;
}

Task<absl::StatusOr<std::vector<int64_t>>> HpaController::ReadMetric(std::string namespace_name,
                                                                     const api::HpaMetric& metric) {
  if (metric.type != api::kExternalMetric) co_return NoSuchMetrics(metric);
  const absl::StatusOr<std::vector<double>> values =
      co_await metrics_.Get(namespace_name, metric.name, metric.match_labels, CallDeadline());
  absl::StatusOr<std::vector<int64_t>> milli = ToMilli(values);
  if (milli.ok()) co_return milli;
  co_return host::Annotate(milli.status(), "unable to get external metric ", namespace_name, "/",
                           metric.name, "/", SelectorText(metric));
}

Task<std::vector<MetricReading>> HpaController::ReadMetrics(
    const api::HorizontalPodAutoscaler& hpa) {
  std::vector<MetricReading> readings;
  for (const api::HpaMetric& metric : hpa.spec.metrics) {
    absl::StatusOr<std::vector<int64_t>> values =
        co_await ReadMetric(hpa.meta.namespace_name, metric);
    readings.push_back({.spec = metric, .values_milli = std::move(values)});
  }
  co_return readings;
}

Task<absl::Status> HpaController::WriteScale(const api::HorizontalPodAutoscaler& hpa,
                                             Target& target, int32_t replicas) {
  constexpr int kAttempts = 5;  // as upstream
  const std::string& name = hpa.spec.scale_target_ref.name;
  absl::Status written;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    target.scale.as_object()["spec"] = json::object{{"replicas", replicas}};
    kube::WriteOptions options{.subresource = "scale"};
    written = (co_await api_.Update(target.resource, hpa.meta.namespace_name, name, target.scale,
                                    std::move(options), CallDeadline()))
                  .status();
    if (!absl::IsAborted(written)) break;
    absl::StatusOr<json::value> latest =
        co_await api_.Get(target.resource, hpa.meta.namespace_name, name, "scale", CallDeadline());
    if (latest.ok()) target.scale = *std::move(latest);
  }
  co_return written;
}

Task<void> HpaController::WriteStatus(Sync& sync, json::object status) {
  if (sync.old_status == status) co_return;
  json::object object = sync.object;
  object["status"] = std::move(status);
  kube::WriteOptions options{.subresource = "status"};
  const absl::StatusOr<json::value> written = co_await api_.Update(
      kube::HorizontalPodAutoscalers(), sync.hpa.meta.namespace_name, sync.hpa.meta.name,
      std::move(object), std::move(options), CallDeadline());
  // A conflict or an outage: the next sync starts from what is there then.
  if (!written.ok()) {
    Emit(sync.hpa.Key(), true, "FailedUpdateStatus", std::string(written.status().message()));
  }
}

absl::StatusOr<HpaController::Sync> HpaController::Prepare(json::value item) const {
  Sync sync;
  ASSIGN_OR_RETURN(sync.hpa, api::ParseHpa(item));
  sync.object = std::move(item.as_object());
  if (const json::value* status = sync.object.if_contains("status");
      status && status->is_object()) {
    sync.old_status = status->get_object();
  }
  const api::HpaSpec& spec = sync.hpa.spec;
  sync.limits = {.min_replicas = spec.min_replicas.value_or(1),
                 .max_replicas = spec.max_replicas,
                 .down_window = options_.down_window};
  sync.tolerances = {options_.tolerance, options_.tolerance};
  if (spec.behavior.is_null()) return sync;
  ASSIGN_OR_RETURN(HpaBehavior behavior, ParseHpaBehavior(spec.behavior, options_.down_window));
  sync.tolerances.scale_up = behavior.scale_up.tolerance.value_or(options_.tolerance);
  sync.tolerances.scale_down = behavior.scale_down.tolerance.value_or(options_.tolerance);
  sync.limits.behavior = std::move(behavior);
  return sync;
}

Task<void> HpaController::SyncOne(json::value item) {
  const absl::StatusOr<api::ObjectMeta> meta = api::ParseObjectMeta(item);
  absl::StatusOr<Sync> prepared = Prepare(std::move(item));
  if (!prepared.ok()) {
    // An API server lets no such HPA in, but the one in memory does not look.
    Emit(meta.ok() ? meta->Key() : api::NamespacedName(), true, "FailedConvertHPA",
         std::string(prepared.status().message()));
    co_return;
  }
  Sync& sync = *prepared;
  absl::StatusOr<Target> target = co_await ReadTarget(sync.hpa);
  if (!target.ok()) {
    co_await ReportNoScale(sync, target.status());
    co_return;
  }
  std::vector<MetricReading> readings;
  if (NeedsMetrics(sync.hpa.spec, target->state)) readings = co_await ReadMetrics(sync.hpa);
  HpaDecision decision = DecideHpa(sync.hpa.spec, sync.limits, sync.tolerances, target->state,
                                   readings, sync.hpa.status.conditions, clock_.WallNow(),
                                   clock_.SteadyNow(), histories_[sync.hpa.Key()]);
  if (!decision.error.ok()) {
    Emit(sync.hpa.Key(), true, "FailedComputeMetricsReplicas",
         std::string(decision.error.message()));
  }
  co_await Act(sync, *target, std::move(decision));
}

Task<void> HpaController::ReportNoScale(Sync& sync, absl::Status error) {
  const std::string message(error.message());
  Emit(sync.hpa.Key(), true, "FailedGetScale", message);
  api::Conditions conditions = sync.hpa.status.conditions;
  api::SetCondition(
      conditions, kAbleToScale, api::kFalse, "FailedGetScale",
      absl::StrCat("the HPA controller was unable to get the target's current scale: ", message),
      clock_.WallNow(), 0);
  json::object status = sync.old_status;
  status["conditions"] = api::ConditionsToJson(conditions);
  co_await WriteStatus(sync, std::move(status));
}

Task<void> HpaController::Act(Sync& sync, Target& target, HpaDecision decision) {
  const int32_t current = target.state.spec_replicas;
  int32_t desired = decision.keeps_desired ? sync.hpa.status.desired_replicas : current;
  bool rescaled = false;
  if (decision.rescale_to.has_value()) {
    const absl::Status written = co_await WriteScale(sync.hpa, target, *decision.rescale_to);
    rescaled = written.ok();
    desired = rescaled ? *decision.rescale_to : sync.hpa.status.desired_replicas;
    RecordRescale(sync, current, decision, written);
  }
  json::object status = StatusJson(sync.old_status, current, desired,
                                   std::move(decision.current_metrics), decision.conditions);
  if (rescaled) status["lastScaleTime"] = api::FormatTimestamp(clock_.WallNow());
  co_await WriteStatus(sync, std::move(status));
}

void HpaController::RecordRescale(const Sync& sync, int32_t before, HpaDecision& decision,
                                  const absl::Status& written) {
  const int32_t after = *decision.rescale_to;
  std::string event = absl::StrCat("New size: ", after, "; reason: ", decision.rescale_reason);
  if (!written.ok()) {
    absl::StrAppend(&event, "; error: ", written.message());
    Emit(sync.hpa.Key(), true, "FailedRescale", std::move(event));
    api::SetCondition(decision.conditions, kAbleToScale, api::kFalse, "FailedUpdateScale",
                      absl::StrCat("the HPA controller was unable to update the target scale: ",
                                   written.message()),
                      clock_.WallNow(), 0);
    return;
  }
  Emit(sync.hpa.Key(), false, "SuccessfulRescale", std::move(event));
  api::SetCondition(
      decision.conditions, kAbleToScale, api::kTrue, "SucceededRescale",
      absl::StrCat("the HPA controller was able to update the target scale to ", after),
      clock_.WallNow(), 0);
  StoreScaleEvent(sync.limits, before, after, clock_.SteadyNow(), histories_[sync.hpa.Key()]);
}

}  // namespace outrigger::controller::local
