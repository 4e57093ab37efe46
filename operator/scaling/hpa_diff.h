// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "operator/api/hpa.h"

namespace outrigger::controller::scaling {

// Why the HPA in the cluster must be written, in words ("spec.maxReplicas: want 5, found 10"), or
// nothing when it is as wanted: then no request is sent. Compares what is ours: the spec, our
// labels and annotations (a foreign one beside them is none of our business), the controller
// reference. `found` went through the API server, so a partly given behavior is compared with the
// server's defaults filled in, quantities by value and metrics by content, not by order. Source:
// spec/scaledobject.md section 10; requirements.md R3, R7.
std::optional<std::string> HpaDifference(const api::HorizontalPodAutoscaler& desired,
                                         const api::HorizontalPodAutoscaler& found);

// What to send when they differ: `desired` with the identity of `found` (uid, resourceVersion) and
// its finalizers and other owners. Labels and annotations are replaced as a whole, so that one
// removed from the ScaledObject goes with the next write.
api::HorizontalPodAutoscaler MergeForUpdate(const api::HorizontalPodAutoscaler& desired,
                                            const api::HorizontalPodAutoscaler& found);

}  // namespace outrigger::controller::scaling
