// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>

#include <string>

#include "operator/kube/api.h"
#include "operator/kube/memory_kind.h"

// The answers of kube-apiserver that MemoryApi gives, word for word. Pure.
// Source: k8s.io/apimachinery v0.36 pkg/api/errors, k8s.io/apiserver v0.36 pkg/registry.
namespace outrigger::controller::kube::memory {

absl::Status NotFound(const Resource& resource, absl::string_view name);  // 404
absl::Status UnknownResource();     // 404: a path that nobody serves
absl::Status UnknownSubresource();  // 404
absl::Status AlreadyExists(const Resource& resource, absl::string_view name, bool being_deleted);
absl::Status BadRequest(std::string message);  // 400
absl::Status Expired(std::string message);     // 410

// 409. `qualified` is "deployments.apps", of a delete's precondition "Deployment.apps".
absl::Status Conflict(absl::string_view qualified, absl::string_view name,
                      absl::string_view message);
absl::Status ModifiedMeanwhile(const Resource& resource, absl::string_view name);
// What a PUT answers whose object carries another uid.
absl::Status UidPreconditionFailed(const MemoryKind& kind, absl::string_view namespace_name,
                                   absl::string_view name, absl::string_view wanted,
                                   absl::string_view got);

// 422. `qualified` is "Deployment.apps"; `fault` is "metadata.name: Invalid value: …".
absl::Status Invalid(absl::string_view qualified, absl::string_view name, absl::string_view fault);

// UNIMPLEMENTED without an ApiError: a real server would have answered something, MemoryApi does
// not know what.
absl::Status NotModelled(absl::string_view what);

}  // namespace outrigger::controller::kube::memory
