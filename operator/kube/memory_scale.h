// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <boost/json/object.hpp>
#include <string>

#include "operator/kube/memory_kind.h"

// The scale subresource of Deployment and StatefulSet. Pure.
// Source: k8s.io/kubernetes v1.36 pkg/registry/apps/deployment/storage.
namespace outrigger::controller::kube::memory {

// autoscaling/v1 Scale of a workload. As Go prints it: a zero spec.replicas is left out.
boost::json::object ScaleOf(const boost::json::object& workload);

// The workload as it should be after `scale` was written to it: replicas, and the resourceVersion
// as the precondition. INVALID_ARGUMENT (422) for negative replicas, ABORTED (409) for another uid.
absl::StatusOr<boost::json::object> WithScale(const MemoryKind& kind, boost::json::object workload,
                                              const boost::json::object& scale);

}  // namespace outrigger::controller::kube::memory
