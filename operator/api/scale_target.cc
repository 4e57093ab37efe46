// SPDX-License-Identifier: Apache-2.0
#include "operator/api/scale_target.h"

#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <vector>

namespace outrigger::controller::api {
namespace {

// Known without asking discovery, whatever the group, as in KEDA.
std::string ResourceOf(absl::string_view kind) {
  if (kind == "Deployment") return "deployments";
  if (kind == "StatefulSet") return "statefulsets";
  if (kind == "ReplicaSet") return "replicasets";
  return "";
}

}  // namespace

absl::StatusOr<GroupVersionKindResource> ResolveTarget(const ScaleTargetRef& ref) {
  GroupVersionKindResource target;
  target.kind = ref.kind.empty() ? "Deployment" : ref.kind;
  target.resource = ResourceOf(target.kind);
  if (ref.api_version.empty()) {
    target.group = "apps";
    target.version = "v1";
    return target;
  }
  const std::vector<std::string> parts = absl::StrSplit(ref.api_version, '/');
  if (parts.size() > 2 || parts.front().empty() || parts.back().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("spec.scaleTargetRef.apiVersion: want group/version or version, got \"",
                     absl::CHexEscape(ref.api_version), "\""));
  }
  if (parts.size() == 2) target.group = parts[0];
  target.version = parts.back();
  return target;
}

std::string ApiVersionOf(const GroupVersionKindResource& target) {
  return target.group.empty() ? target.version : absl::StrCat(target.group, "/", target.version);
}

std::string ScaleTargetKindText(const GroupVersionKindResource& target) {
  return absl::StrCat(target.group, "/", target.version, ".", target.kind);
}

bool IsBuiltinTarget(const GroupVersionKindResource& target) {
  return target.group == "apps" && target.version == "v1" && !ResourceOf(target.kind).empty();
}

}  // namespace outrigger::controller::api
