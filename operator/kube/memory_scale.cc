// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/memory_scale.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <limits>
#include <utility>
#include <vector>

#include "operator/api/label_selector.h"
#include "operator/kube/memory_errors.h"
#include "operator/kube/memory_object.h"

namespace outrigger::controller::kube::memory {
namespace {

namespace json = boost::json;

std::vector<std::string> LabelParts(const json::object& selector) {
  std::vector<std::string> parts;
  const json::object* labels = FindObject(selector, "matchLabels");
  if (labels == nullptr) return parts;
  for (const json::key_value_pair& label : *labels) {
    const std::string key(label.key());
    parts.push_back(absl::StrCat(key, "=", StringOf(*labels, key)));
  }
  return parts;
}

std::string ExpressionPart(const json::object& expression) {
  std::string key = StringOf(expression, "key");
  const std::string op = StringOf(expression, "operator");
  if (op == "Exists") return key;
  if (op == "DoesNotExist") return absl::StrCat("!", key);
  std::vector<std::string> values;
  if (const json::array* list = FindArray(expression, "values")) {
    for (const json::value& value : *list) {
      if (value.is_string()) values.emplace_back(value.get_string());
    }
  }
  return absl::StrCat(key, op == "In" ? " in (" : " notin (", absl::StrJoin(values, ","), ")");
}

// The label selector of a workload as text, keys sorted.
std::string SelectorText(const json::object& spec) {
  const json::object* selector = FindObject(spec, "selector");
  if (selector == nullptr) return "";
  std::vector<std::string> parts = LabelParts(*selector);
  if (const json::array* expressions = FindArray(*selector, "matchExpressions")) {
    for (const json::value& item : *expressions) {
      if (item.is_object()) parts.push_back(ExpressionPart(item.get_object()));
    }
  }
  const std::string text = absl::StrJoin(parts, ",");
  const absl::StatusOr<api::LabelSelector> parsed = api::LabelSelector::Parse(text);
  return parsed.ok() ? parsed->Print() : text;
}

int64_t ReplicasOf(const json::object& object, absl::string_view part) {
  const json::object* parent = FindObject(object, part);
  return parent == nullptr ? 0 : IntOf(*parent, "replicas");
}

}  // namespace

json::object ScaleOf(const json::object& workload) {
  json::object metadata;
  for (absl::string_view key :
       {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"}) {
    CopyMember(*FindObject(workload, "metadata"), metadata, key);
  }
  json::object spec;
  if (const int64_t replicas = ReplicasOf(workload, "spec"); replicas != 0) {
    spec["replicas"] = replicas;
  }
  json::object status{{"replicas", ReplicasOf(workload, "status")}};
  if (const json::object* workload_spec = FindObject(workload, "spec")) {
    const std::string selector = SelectorText(*workload_spec);
    if (!selector.empty()) status["selector"] = selector;
  }
  return {{"apiVersion", "autoscaling/v1"},
          {"kind", "Scale"},
          {"metadata", std::move(metadata)},
          {"spec", std::move(spec)},
          {"status", std::move(status)}};
}

absl::StatusOr<json::object> WithScale(const MemoryKind& kind, json::object workload,
                                       const json::object& scale) {
  const std::string name = MetaString(workload, "name");
  const int64_t replicas = ReplicasOf(scale, "spec");
  if (replicas > std::numeric_limits<int32_t>::max()) {
    return NotModelled("replicas beyond 32 bits");
  }
  if (replicas < 0) {
    return Invalid("Scale.autoscaling", name,
                   absl::StrCat("spec.replicas: Invalid value: ", replicas,
                                ": must be greater than or equal to 0"));
  }
  const std::string uid = MetaString(scale, "uid");
  const std::string got = MetaString(workload, "uid");
  if (!uid.empty() && uid != got) {
    const std::string qualified =
        absl::StrCat(kind.resource.plural, "/scale.", kind.resource.group);
    return Conflict(qualified, name,
                    absl::StrCat("Precondition failed: UID in precondition: ", uid,
                                 ", UID in object meta: ", got));
  }
  MakeObject(workload, "spec")["replicas"] = replicas;
  CopyMember(*FindObject(scale, "metadata"), MakeObject(workload, "metadata"), "resourceVersion");
  return workload;
}

}  // namespace outrigger::controller::kube::memory
