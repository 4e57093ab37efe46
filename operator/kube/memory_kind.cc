// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/memory_kind.h"

#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>

#include <boost/json/array.hpp>
#include <utility>

#include "host/base/status.h"
#include "operator/api/quantity.h"
#include "operator/kube/memory_errors.h"
#include "operator/kube/memory_object.h"

namespace outrigger::controller::kube {
namespace {

namespace json = boost::json;
using Generation = MemoryKind::Generation;
using StatusWrite = MemoryKind::StatusWrite;

// The behaviour that the API server fills in where a part is missing.
// Source: k8s.io/kubernetes v1.36 pkg/apis/autoscaling/v2/defaults.go.
json::object DefaultScaleUp() {
  return {{"stabilizationWindowSeconds", 0},
          {"selectPolicy", "Max"},
          {"policies",
           json::array{json::object{{"type", "Pods"}, {"value", 4}, {"periodSeconds", 15}},
                       json::object{{"type", "Percent"}, {"value", 100}, {"periodSeconds", 15}}}}};
}

json::object DefaultScaleDown() {
  return {{"selectPolicy", "Max"},
          {"policies",
           json::array{json::object{{"type", "Percent"}, {"value", 100}, {"periodSeconds", 15}}}}};
}

json::object CpuAt80Percent() {
  return {{"type", "Resource"},
          {"resource", json::object{{"name", "cpu"},
                                    {"target", json::object{{"type", "Utilization"},
                                                            {"averageUtilization", 80}}}}}};
}

absl::Status Canonicalise(json::object& parent, const char* key) {
  json::value* value = parent.if_contains(key);
  if (value == nullptr) return absl::OkStatus();
  std::string text;
  if (value->is_string()) text = std::string(value->get_string());
  if (value->is_int64()) text = absl::StrCat(value->get_int64());
  if (value->is_double()) text = absl::StrCat(value->get_double());
  absl::StatusOr<api::Quantity> quantity = api::Quantity::Parse(text);
  if (!quantity.ok()) {
    return memory::BadRequest(absl::StrCat(key, ": ", quantity.status().message()));
  }
  *value = json::string(quantity->ToString());
  return absl::OkStatus();
}

absl::Status DefaultRules(json::object& behavior, const char* key, json::object rules) {
  if (json::object* given = memory::FindObject(behavior, key)) {
    for (json::key_value_pair& member : *given) rules[member.key()] = std::move(member.value());
  }
  RETURN_IF_ERROR(Canonicalise(rules, "tolerance"));
  behavior[key] = std::move(rules);
  return absl::OkStatus();
}

absl::Status CanonicaliseMetric(json::value& metric) {
  if (!metric.is_object()) return absl::OkStatus();
  for (json::key_value_pair& member : metric.get_object()) {
    if (!member.value().is_object()) continue;
    json::object* target = memory::FindObject(member.value().get_object(), "target");
    if (target == nullptr) continue;
    RETURN_IF_ERROR(Canonicalise(*target, "averageValue"));
    RETURN_IF_ERROR(Canonicalise(*target, "value"));
  }
  return absl::OkStatus();
}

absl::Status DefaultHpaSpec(json::object& spec) {
  spec.emplace("minReplicas", 1);
  json::array* metrics = memory::FindArray(spec, "metrics");
  if (metrics == nullptr || metrics->empty()) {
    spec["metrics"] = json::array{CpuAt80Percent()};
    metrics = memory::FindArray(spec, "metrics");
  }
  for (json::value& metric : *metrics) RETURN_IF_ERROR(CanonicaliseMetric(metric));
  if (json::object* behavior = memory::FindObject(spec, "behavior")) {
    RETURN_IF_ERROR(DefaultRules(*behavior, "scaleUp", DefaultScaleUp()));
    RETURN_IF_ERROR(DefaultRules(*behavior, "scaleDown", DefaultScaleDown()));
  }
  return absl::OkStatus();
}

absl::Status DefaultHpa(json::object& object) {
  if (json::object* spec = memory::FindObject(object, "spec")) {
    RETURN_IF_ERROR(DefaultHpaSpec(*spec));
  }
  if (json::object* status = memory::FindObject(object, "status")) {
    memory::EraseZeros(*status, {"currentReplicas"});
    status->emplace("desiredReplicas", 0);
    status->emplace("currentMetrics", nullptr);  // Go prints a nil slice without omitempty
  }
  return absl::OkStatus();
}

void DefaultWorkload(json::object& object) {
  if (json::object* spec = memory::FindObject(object, "spec")) spec->emplace("replicas", 1);
  if (json::object* status = memory::FindObject(object, "status")) {
    memory::EraseZeros(*status,
                       {"observedGeneration", "replicas", "updatedReplicas", "readyReplicas",
                        "availableReplicas", "unavailableReplicas", "currentReplicas"});
  }
}

void DefaultStatefulSet(json::object& object) {
  DefaultWorkload(object);
  if (json::object* status = memory::FindObject(object, "status")) {
    status->emplace("replicas", 0);
    status->emplace("availableReplicas", 0);
  }
}

void DefaultSecret(json::object& object) {
  object.emplace("type", "Opaque");
  const json::object* text = memory::FindObject(object, "stringData");
  if (text == nullptr) return;
  const json::object copy = *text;
  json::value& data = object["data"];
  if (!data.is_object()) data = json::object();
  for (const json::key_value_pair& member : copy) {
    if (!member.value().is_string()) continue;
    data.get_object()[member.key()] = absl::Base64Escape(
        absl::string_view(member.value().get_string().data(), member.value().get_string().size()));
  }
  object.erase("stringData");
}

}  // namespace

std::string MemoryKind::ApiVersion() const {
  return resource.group.empty() ? resource.version
                                : absl::StrCat(resource.group, "/", resource.version);
}

std::string MemoryKind::QualifiedKind() const {
  return resource.group.empty() ? kind : absl::StrCat(kind, ".", resource.group);
}

MemoryKind CustomKind(Resource resource, std::string kind) {
  return {.resource = std::move(resource),
          .kind = std::move(kind),
          .custom = true,
          .has_status = true,
          .generation = Generation::kAllButMetadata,
          .status_write = StatusWrite::kNothingElse,
          .unconditional_update = false};
}

std::vector<MemoryKind> DefaultMemoryKinds() {
  return {
      CustomKind(ScaledObjects(), "ScaledObject"),
      CustomKind(TriggerAuthentications(), "TriggerAuthentication"),
      CustomKind(ClusterTriggerAuthentications(), "ClusterTriggerAuthentication"),
      {.resource = HorizontalPodAutoscalers(),
       .kind = "HorizontalPodAutoscaler",
       .has_status = true},
      {.resource = Deployments(),
       .kind = "Deployment",
       .has_status = true,
       .has_scale = true,
       .generation = Generation::kSpecAndAnnotations,
       .status_write = StatusWrite::kMetadataButLabels},
      {.resource = StatefulSets(),
       .kind = "StatefulSet",
       .has_status = true,
       .has_scale = true,
       .generation = Generation::kSpec},
      {.resource = Pods(),
       .kind = "Pod",
       .has_status = true,
       .generation = Generation::kSpec,
       .status_write = StatusWrite::kMetadataButOwners},
      {.resource = Secrets(), .kind = "Secret"},
      {.resource = ConfigMaps(), .kind = "ConfigMap"},
      {.resource = Leases(),
       .kind = "Lease",
       .unconditional_update = false,
       .create_on_update = true},
      {.resource = Events(), .kind = "Event", .create_on_update = true},
      {.resource = ApiServices(),
       .kind = "APIService",
       .has_status = true,
       .unconditional_update = false},
      {.resource = SubjectAccessReviews(), .kind = "SubjectAccessReview", .stored = false},
  };
}

namespace memory {

absl::Status ApplyDefaults(const MemoryKind& kind, json::object& object) {
  if (kind.resource == HorizontalPodAutoscalers()) return DefaultHpa(object);
  if (kind.resource == Deployments()) DefaultWorkload(object);
  if (kind.resource == StatefulSets()) DefaultStatefulSet(object);
  if (kind.resource == Secrets()) DefaultSecret(object);
  return absl::OkStatus();
}

json::object InitialStatus(const MemoryKind& kind) {
  if (kind.resource == Pods()) return {{"phase", "Pending"}};
  return {};
}

}  // namespace memory
}  // namespace outrigger::controller::kube
