// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/hpa_keeper.h"

#include <absl/strings/str_cat.h>

#include <boost/json/value.hpp>
#include <optional>
#include <string>
#include <utility>

#include "host/base/status.h"
#include "operator/scaling/hpa_diff.h"

namespace outrigger::controller::reconcile {

using api::NamespacedName;
namespace json = boost::json;

namespace {

// Of the ScaledObject that an HPA is built for.
std::string UidOf(const api::HorizontalPodAutoscaler& wanted) {
  const api::OwnerReference* owner = api::ControllerOf(wanted.meta);
  return owner == nullptr ? "" : owner->uid;
}

}  // namespace

host::Task<absl::Status> HpaKeeper::Apply(ObjectPtr object, api::HorizontalPodAutoscaler wanted,
                                          host::Deadline deadline) {
  const NamespacedName key = wanted.Key();
  const auto found = p_.view.Hpa(key);
  const host::SteadyTime start = p_.clock.SteadyNow();
  absl::Status status;
  if (found == nullptr) {
    status = co_await Create(std::move(wanted), deadline);
  } else if (const std::optional<std::string> difference = scaling::HpaDifference(wanted, *found)) {
    p_.log.Info("HPA differs", {{"object", object->Key().ToString()}, {"difference", *difference}});
    status = co_await Update(std::move(wanted), found, deadline);
  } else {
    co_return co_await DeleteOld(std::move(object), deadline);
  }
  p_.metrics.Step(runtime::LoopStep::kWrite, p_.clock.SteadyNow() - start);
  // Deleted while we looked: the next pass makes it anew.
  if (absl::IsNotFound(status)) status = absl::AbortedError(status.message());
  if (!status.ok()) co_return host::Annotate(status, "HorizontalPodAutoscaler ", key.ToString());
  co_return co_await DeleteOld(std::move(object), deadline);
}

absl::Status HpaKeeper::CheckName(const api::ScaledObject& object) const {
  const auto found = p_.view.Hpa({object.meta.namespace_name, object.HpaName()});
  return found == nullptr ? absl::OkStatus() : CheckOwner(object.meta.uid, *found);
}

absl::Status HpaKeeper::CheckOwner(const std::string& uid,
                                   const api::HorizontalPodAutoscaler& found) const {
  const api::OwnerReference* owner = api::ControllerOf(found.meta);
  if (owner == nullptr || owner->kind != api::kScaledObjectKind || owner->uid == uid) {
    return absl::OkStatus();
  }
  const NamespacedName other{found.meta.namespace_name, owner->name};
  const auto living = p_.view.ScaledObject(other);
  if (living == nullptr || living->meta.uid != owner->uid || living->HpaName() != found.meta.name) {
    return absl::OkStatus();  // gone, or about to leave it
  }
  return absl::AlreadyExistsError(absl::StrCat(
      "spec.advanced.horizontalPodAutoscalerConfig.name: want an HPA of its own, got \"",
      found.meta.name, "\", which is that of ScaledObject ", other.ToString()));
}

host::Task<absl::Status> HpaKeeper::Create(api::HorizontalPodAutoscaler wanted,
                                           host::Deadline deadline) {
  const NamespacedName key = wanted.Key();
  {
    runtime::WriteGate::Permit permit = co_await p_.gate.Acquire(runtime::WriteLane::kHpa);
    absl::StatusOr<json::value> created =
        co_await p_.api.Create(kube::HorizontalPodAutoscalers(), key.namespace_name,
                               api::HpaToJson(wanted), kube::WriteOptions{}, deadline);
    if (!absl::IsAlreadyExists(created.status())) co_return created.status();
  }
  // There, but not in our cache yet: made a moment ago, perhaps by us.
  co_return co_await UpdateLive(std::move(wanted), deadline);
}

// The HPA controller writes the status of an HPA at each sync, so what the cache holds is often one
// version behind: a conflict is normal.
host::Task<absl::Status> HpaKeeper::Update(
    api::HorizontalPodAutoscaler wanted, std::shared_ptr<const api::HorizontalPodAutoscaler> found,
    host::Deadline deadline) {
  const NamespacedName key = wanted.Key();
  absl::StatusOr<json::value> updated;
  {
    runtime::WriteGate::Permit permit = co_await p_.gate.Acquire(runtime::WriteLane::kHpa);
    updated = co_await p_.api.Update(kube::HorizontalPodAutoscalers(), key.namespace_name, key.name,
                                     api::HpaToJson(scaling::MergeForUpdate(wanted, *found)),
                                     kube::WriteOptions{}, deadline);
  }
  if (!absl::IsAborted(updated.status())) co_return updated.status();
  co_return co_await UpdateLive(std::move(wanted), deadline);
}

host::Task<absl::Status> HpaKeeper::UpdateLive(api::HorizontalPodAutoscaler wanted,
                                               host::Deadline deadline) {
  const NamespacedName key = wanted.Key();
  absl::Status status;
  for (int attempt = 0; attempt <= conflict_retries_; ++attempt) {
    absl::StatusOr<json::value> live = co_await p_.api.Get(
        kube::HorizontalPodAutoscalers(), key.namespace_name, key.name, "", deadline);
    if (!live.ok()) co_return live.status();
    absl::StatusOr<api::HorizontalPodAutoscaler> found = api::ParseHpa(*live);
    if (!found.ok()) co_return found.status();
    CO_RETURN_IF_ERROR(CheckOwner(UidOf(wanted), *found));
    if (!scaling::HpaDifference(wanted, *found)) co_return absl::OkStatus();
    runtime::WriteGate::Permit permit = co_await p_.gate.Acquire(runtime::WriteLane::kHpa);
    absl::StatusOr<json::value> updated = co_await p_.api.Update(
        kube::HorizontalPodAutoscalers(), key.namespace_name, key.name,
        api::HpaToJson(scaling::MergeForUpdate(wanted, *found)), kube::WriteOptions{}, deadline);
    status = updated.status();
    if (!absl::IsAborted(status)) break;
  }
  co_return status;
}

// The HPA of an earlier horizontalPodAutoscalerConfig.name, if it still is ours.
host::Task<absl::Status> HpaKeeper::DeleteOld(ObjectPtr object, host::Deadline deadline) {
  const std::string old_name = object->status.hpa_name;
  if (old_name.empty() || old_name == object->HpaName()) co_return absl::OkStatus();
  const NamespacedName key{object->meta.namespace_name, old_name};
  absl::StatusOr<json::value> live = co_await p_.api.Get(
      kube::HorizontalPodAutoscalers(), key.namespace_name, key.name, "", deadline);
  if (absl::IsNotFound(live.status())) co_return absl::OkStatus();
  if (!live.ok()) co_return live.status();
  absl::StatusOr<api::HorizontalPodAutoscaler> found = api::ParseHpa(*live);
  if (!found.ok()) co_return found.status();
  const api::OwnerReference* owner = api::ControllerOf(found->meta);
  if (owner == nullptr || owner->uid != object->meta.uid) co_return absl::OkStatus();
  runtime::WriteGate::Permit permit = co_await p_.gate.Acquire(runtime::WriteLane::kHpa);
  kube::DeleteOptions options;
  options.uid = found->meta.uid;
  const absl::Status deleted = co_await p_.api.Delete(
      kube::HorizontalPodAutoscalers(), key.namespace_name, key.name, std::move(options), deadline);
  if (absl::IsNotFound(deleted)) co_return absl::OkStatus();
  co_return host::Annotate(deleted, "HorizontalPodAutoscaler ", key.ToString(), ": delete");
}

}  // namespace outrigger::controller::reconcile
