// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>

#include "host/base/deadline.h"
#include "operator/api/scaled_object.h"
#include "operator/kube/api.h"
#include "operator/polling/target_scaler.h"

namespace outrigger::controller::reconcile {

// Finds what a ScaledObject scales. Use on the core strand.
class TargetFinder {
 public:
  struct Target {
    api::GroupVersionKindResource gvkr;
    int32_t replicas = 0;  // spec.replicas
  };

  TargetFinder(kube::Api& api, polling::TargetScaler& scaler) : api_(api), scaler_(scaler) {}

  // Errors name the field. INVALID_ARGUMENT: the reference is malformed (or the API server's).
  // FAILED_PRECONDITION: there is no such target, or it cannot be scaled. Else the error of the API
  // server.
  host::Task<absl::StatusOr<Target>> Find(std::shared_ptr<const api::ScaledObject> object,
                                          host::Deadline deadline);
  // Whether the informers tell when such a target comes.
  static bool IsWatched(const api::ScaleTargetRef& ref);

 private:
  kube::Api& api_;
  polling::TargetScaler& scaler_;
};

}  // namespace outrigger::controller::reconcile
