// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <string>
#include <utility>
#include <vector>

#include "operator/kube/api.h"

namespace outrigger::controller::kube {

// The path of an object, or of its collection when `name` is "". Pure.
//
// INVALID_ARGUMENT when a part is no path segment: group, version and names come from custom
// resources, and one with "/" or "%" would reach another object than the one that was meant.
absl::StatusOr<std::string> RequestPath(const Resource& resource, absl::string_view namespace_name,
                                        absl::string_view name, absl::string_view subresource);

// "/apis/apps/v1", "/api/v1". Pure. INVALID_ARGUMENT as of RequestPath(): both may come from custom
// resources.
absl::StatusOr<std::string> GroupVersionPath(absl::string_view group, absl::string_view version);

// "?a=b&c=d" of the parameters whose value is not empty, percent-encoded; "" of none.
std::string QueryString(const std::vector<std::pair<std::string, std::string>>& parameters);

}  // namespace outrigger::controller::kube
