// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <boost/json/value.hpp>
#include <string>
#include <vector>

#include "operator/kube/api.h"

namespace outrigger::controller::local {

// One object of a file that the user named, checked.
struct ManifestObject {
  kube::Resource resource;
  std::string namespace_name;  // "default" where the file gives none; "" of a cluster-scoped kind
  boost::json::value object;
  std::string source;  // "worker.yaml, document 2, ScaledObject default/worker": for messages
};

// Reads YAML files of several documents each. Kinds: Deployment, ScaledObject,
// TriggerAuthentication, ClusterTriggerAuthentication, Secret (data and stringData), ConfigMap.
// Blocking; at start only.
//
// Everything that is wrong with any of them is told at once: INVALID_ARGUMENT with a line for each
// fault, "FILE, document N, line L, KIND NAMESPACE/NAME: field: want …, got …". That is YAML,
// apiVersion and kind, the kind's own rules (see CheckManifest()), and what only all files together
// show: an object given twice, a scale target or an authentication that none of them has.
absl::StatusOr<std::vector<ManifestObject>> LoadManifests(const std::vector<std::string>& files);

}  // namespace outrigger::controller::local
