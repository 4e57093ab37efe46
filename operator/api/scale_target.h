// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "operator/api/hpa.h"
#include "operator/api/scaled_object.h"

namespace outrigger::controller::api {

// What spec.scaleTargetRef names, with the defaults applied: apps/v1 and Deployment. `resource` is
// known without discovery for Deployment, StatefulSet and ReplicaSet, else empty: whoever has a
// REST mapping fills it in. INVALID_ARGUMENT when apiVersion has more than one '/' or an empty
// part, naming field, wanted and got. Source: spec/scaledobject.md section 8.
absl::StatusOr<GroupVersionKindResource> ResolveTarget(const ScaleTargetRef& ref);

// "apps/v1.Deployment"; of the core group "/v1.Pod": status.scaleTargetKind.
std::string ScaleTargetKindText(const GroupVersionKindResource& target);

// "apps/v1", or "v1" for the core group.
std::string ApiVersionOf(const GroupVersionKindResource& target);

// Deployment, StatefulSet and ReplicaSet of apps hold spec.replicas where an informer sees it;
// others go through /scale.
bool IsBuiltinTarget(const GroupVersionKindResource& target);

}  // namespace outrigger::controller::api
