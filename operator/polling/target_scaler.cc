// SPDX-License-Identifier: Apache-2.0
#include "operator/polling/target_scaler.h"

#include <absl/strings/str_cat.h>

#include <utility>

#include "host/base/status.h"
#include "operator/api/condition.h"
#include "operator/api/object_reader.h"
#include "operator/api/scale_target.h"

namespace outrigger::controller::polling {
namespace {

namespace json = boost::json;

absl::StatusOr<ScaleReading> ParseScale(const json::value& object) {
  ScaleReading reading;
  ASSIGN_OR_RETURN(const api::ObjectMeta meta, api::ParseObjectMeta(object));
  reading.uid = meta.uid;
  reading.resource_version = meta.resource_version;
  api::ObjectReader reader("", object);
  if (const json::value* spec = reader.FindObject("spec")) {
    api::ObjectReader spec_reader("spec", *spec);
    spec_reader.Read("replicas", reading.spec_replicas);
    reader.Merge(spec_reader.status());
  }
  if (const json::value* status = reader.FindObject("status")) {
    api::ObjectReader status_reader("status", *status);
    status_reader.Read("replicas", reading.status_replicas);
    status_reader.Read("selector", reading.selector);
    reader.Merge(status_reader.status());
  }
  if (!reader.status().ok()) return reader.status();
  return reading;
}

bool IsReady(const json::value& pod) {
  const json::value* status = pod.is_object() ? pod.get_object().if_contains("status") : nullptr;
  if (status == nullptr || !status->is_object()) return false;
  const json::value* phase = status->get_object().if_contains("phase");
  const json::value* conditions = status->get_object().if_contains("conditions");
  if (phase == nullptr || !phase->is_string() || phase->get_string() != "Running" ||
      conditions == nullptr)
    return false;
  const absl::StatusOr<api::Conditions> parsed =
      api::ParseConditions("status.conditions", *conditions);
  return parsed.ok() && api::StatusOf(*parsed, "Ready") == api::kTrue;
}

// For whoever may grant it: deploy/rbac has the role that takes such rules in.
absl::Status WithMissingRule(const absl::Status& status,
                             const api::GroupVersionKindResource& target) {
  if (!absl::IsPermissionDenied(status) || api::IsBuiltinTarget(target)) return status;
  return host::Annotate(status,
                        "needs a ClusterRole with the label outrigger.dev/aggregate-to-operator: ",
                        "\"true\" and the rules {apiGroups: [\"", target.group, "\"], resources: [",
                        target.resource, "], verbs: [get]} and {apiGroups: [\"", target.group,
                        "\"], resources: [", target.resource, "/scale], verbs: [get, patch]}");
}

}  // namespace

kube::Resource ResourceOf(const api::GroupVersionKindResource& target) {
  return {target.group, target.version, target.resource, true};
}

host::Task<absl::StatusOr<api::GroupVersionKindResource>> TargetScaler::Map(
    api::GroupVersionKindResource target, host::Deadline deadline) {
  if (!target.resource.empty()) co_return target;
  const absl::StatusOr<kube::RestMapper::Mapping> mapping =
      co_await mapper_.Find(target.group, target.version, target.kind, deadline);
  if (absl::IsNotFound(mapping.status())) {
    co_return absl::FailedPreconditionError(
        absl::StrCat("spec.scaleTargetRef: want a kind that the API server has, got ",
                     api::ScaleTargetKindText(target), ": ", mapping.status().message()));
  }
  if (!mapping.ok()) co_return host::Annotate(mapping.status(), "spec.scaleTargetRef");
  if (!mapping->has_scale || !mapping->resource.namespaced) {
    co_return absl::FailedPreconditionError(
        absl::StrCat("spec.scaleTargetRef: want a target with a scale subresource",
                     mapping->resource.namespaced ? "" : " in a namespace", ", got ",
                     api::ScaleTargetKindText(target)));
  }
  target.resource = mapping->resource.plural;
  co_return target;
}

host::Task<absl::StatusOr<int32_t>> TargetScaler::CurrentReplicas(
    api::GroupVersionKindResource target, api::NamespacedName key, host::Deadline deadline) {
  if (target.group == "apps" && (target.kind == "Deployment" || target.kind == "StatefulSet")) {
    const auto workload = view_.Workload(target.kind, key);
    if (workload == nullptr) {
      co_return absl::NotFoundError(absl::StrCat(target.kind, " ", key.ToString(), ": not found"));
    }
    co_return workload->replicas;
  }
  absl::StatusOr<ScaleReading> reading = co_await ReadLive(target, key, deadline);
  if (!reading.ok()) co_return reading.status();
  co_return reading->spec_replicas;
}

host::Task<absl::StatusOr<ScaleReading>> TargetScaler::ReadLive(
    api::GroupVersionKindResource target, api::NamespacedName key, host::Deadline deadline) {
  absl::StatusOr<json::value> scale =
      co_await api_.Get(ResourceOf(target), key.namespace_name, key.name, "scale", deadline);
  if (!scale.ok()) {
    co_return host::Annotate(WithMissingRule(scale.status(), target),
                             api::ScaleTargetKindText(target), " ", key.ToString(), " /scale");
  }
  co_return ParseScale(*scale);
}

host::Task<absl::Status> TargetScaler::SetReplicas(api::GroupVersionKindResource target,
                                                   api::NamespacedName key, ScaleReading read,
                                                   int32_t replicas, host::Deadline deadline) {
  runtime::WriteGate::Permit permit = co_await gate_.Acquire(runtime::WriteLane::kScale);
  json::object metadata;
  metadata["uid"] = read.uid;
  metadata["resourceVersion"] = read.resource_version;
  json::object spec;
  spec["replicas"] = replicas;
  json::object patch;
  patch["metadata"] = std::move(metadata);
  patch["spec"] = std::move(spec);
  kube::WriteOptions options;
  options.subresource = "scale";
  absl::StatusOr<json::value> answer =
      co_await api_.Patch(ResourceOf(target), key.namespace_name, key.name, kube::PatchType::kMerge,
                          std::move(patch), std::move(options), deadline);
  co_return host::Annotate(WithMissingRule(answer.status(), target),
                           api::ScaleTargetKindText(target), " ", key.ToString(), " scale to ",
                           replicas);
}

host::Task<absl::StatusOr<int32_t>> TargetScaler::ReadyPods(api::GroupVersionKindResource target,
                                                            api::NamespacedName key,
                                                            host::Deadline deadline) {
  absl::StatusOr<ScaleReading> reading = co_await ReadLive(target, key, deadline);
  if (!reading.ok()) co_return reading.status();
  kube::ListOptions options;
  options.label_selector = reading->selector;
  int32_t ready = 0;
  do {
    absl::StatusOr<kube::ObjectList> page =
        co_await api_.List(kube::Pods(), key.namespace_name, options, deadline);
    if (!page.ok()) co_return host::Annotate(page.status(), "pods of ", key.ToString());
    for (const json::value& pod : page->items) ready += IsReady(pod) ? 1 : 0;
    options.continue_token = page->continue_token;
  } while (!options.continue_token.empty());
  co_return ready;
}

}  // namespace outrigger::controller::polling
