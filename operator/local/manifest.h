// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <boost/json/value.hpp>
#include <string>
#include <vector>

#include "operator/kube/api.h"

namespace outrigger::controller::local {

// One object of a file that the user named.
struct ManifestObject {
  kube::Resource resource;
  std::string namespace_name;  // "default" where the file gives none
  boost::json::value object;
};

// Reads YAML files of several documents each. Kinds: Deployment, ScaledObject,
// TriggerAuthentication, Secret (data and stringData), ConfigMap. Blocking; at start only.
// NOT_FOUND: the file; INVALID_ARGUMENT names file, document and what was wanted; UNIMPLEMENTED:
// another kind.
absl::StatusOr<std::vector<ManifestObject>> LoadManifests(const std::vector<std::string>& files);

}  // namespace outrigger::controller::local
