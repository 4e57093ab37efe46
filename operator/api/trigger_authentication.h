// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <boost/json/value.hpp>
#include <string>
#include <vector>

#include "operator/api/object_meta.h"

namespace outrigger::controller::api {

inline constexpr char kTriggerAuthenticationKind[] = "TriggerAuthentication";
inline constexpr char kClusterTriggerAuthenticationKind[] = "ClusterTriggerAuthentication";

// One parameter whose value is a key of a Secret. Holds names only, never a secret.
struct SecretTargetRef {
  std::string parameter;
  std::string name;  // of the Secret
  std::string key;   // in its data

  friend bool operator==(const SecretTargetRef&, const SecretTargetRef&) = default;
};

// TriggerAuthentication and ClusterTriggerAuthentication; the kind tells them apart.
struct TriggerAuthentication {
  std::string kind;
  ObjectMeta meta;
  std::vector<SecretTargetRef>
      secret_target_refs;  // in order: a later one of the same parameter wins
  // Names of the other sources that are given ("env", "hashiCorpVault", "podIdentity", …): not
  // supported yet. A podIdentity of provider "none" is no source.
  std::vector<std::string> other_sources;
};

// INVALID_ARGUMENT with path, wanted and got: another kind, a member of the wrong type, or a
// secretTargetRef without parameter, name or key.
absl::StatusOr<TriggerAuthentication> ParseTriggerAuthentication(const boost::json::value& object);

}  // namespace outrigger::controller::api
