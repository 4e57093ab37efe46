// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/target_finder.h"

#include <absl/strings/str_cat.h>

#include <string>
#include <utility>

#include "host/base/status.h"
#include "operator/api/scale_target.h"

namespace outrigger::controller::reconcile {

host::Task<absl::StatusOr<TargetFinder::Target>> TargetFinder::Find(
    std::shared_ptr<const api::ScaledObject> object, host::Deadline deadline) {
  const api::NamespacedName key{object->meta.namespace_name, object->spec.scale_target_ref.name};
  CO_ASSIGN_OR_RETURN(api::GroupVersionKindResource named,
                      api::ResolveTarget(object->spec.scale_target_ref));
  CO_ASSIGN_OR_RETURN(const api::GroupVersionKindResource gvkr,
                      co_await scaler_.Map(std::move(named), deadline));
  const absl::StatusOr<int32_t> replicas = co_await scaler_.CurrentReplicas(gvkr, key, deadline);
  if (replicas.ok()) co_return Target{gvkr, *replicas};
  if (!absl::IsNotFound(replicas.status())) co_return replicas.status();
  const std::string found = absl::StrCat(api::ScaleTargetKindText(gvkr), " ", key.ToString());
  const absl::StatusOr<boost::json::value> exists =
      co_await api_.GetMetadata(polling::ResourceOf(gvkr), key.namespace_name, key.name, deadline);
  if (exists.ok() && IsWatched(object->spec.scale_target_ref)) {
    co_return absl::UnavailableError(
        absl::StrCat("spec.scaleTargetRef: ", found, " is not in the cache yet"));
  }
  if (!exists.ok() && !absl::IsNotFound(exists.status())) {
    co_return host::Annotate(exists.status(), "spec.scaleTargetRef: ", found);
  }
  if (exists.ok()) {
    co_return absl::FailedPreconditionError(
        absl::StrCat("spec.scaleTargetRef: want a target with a scale subresource, got ", found));
  }
  co_return absl::FailedPreconditionError(
      absl::StrCat("spec.scaleTargetRef: want an existing target, got none: ", found));
}

bool TargetFinder::IsWatched(const api::ScaleTargetRef& ref) {
  const absl::StatusOr<api::GroupVersionKindResource> target = api::ResolveTarget(ref);
  return target.ok() && target->group == "apps" &&
         (target->kind == "Deployment" || target->kind == "StatefulSet");
}

}  // namespace outrigger::controller::reconcile
