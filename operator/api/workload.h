// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <boost/json/value.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "operator/api/object_meta.h"

namespace outrigger::controller::api {

// One environment variable of a container, as far as a trigger may refer to it.
struct EnvVar {
  enum class Source { kLiteral, kSecretKey, kConfigMapKey, kOther };
  std::string name;
  Source source = Source::kLiteral;
  std::string value;        // literal text
  std::string object_name;  // of the Secret or ConfigMap
  std::string key;
  bool optional = false;
};

struct EnvFrom {
  bool secret = false;  // else ConfigMap
  std::string prefix;
  std::string object_name;
  bool optional = false;
};

struct Container {
  std::string name;
  std::vector<EnvFrom> env_from;  // first, in order
  std::vector<EnvVar> env;        // then these, overriding
};

// A scale target that informers hold (Deployment, StatefulSet), trimmed to what the operator reads.
struct Workload {
  ObjectMeta meta;
  int32_t replicas = 1;  // spec.replicas; absent counts as 1
  std::vector<Container> containers;
  uint64_t template_hash =
      0;  // of containers: tells a changed pod template from a changed replica count

  NamespacedName Key() const { return meta.Key(); }
};

// INVALID_ARGUMENT with path, wanted and got.
absl::StatusOr<Workload> ParseWorkload(const boost::json::value& object);

// Expands $(NAME) against `known` as the kubelet does: $$ is $, an unknown reference stays as it
// is, a '$' within the last three characters means nothing, and there is one pass only. Source:
// spec/authentication.md section 6.
std::string ExpandVariables(absl::string_view text,
                            const std::map<std::string, std::string>& known);

}  // namespace outrigger::controller::api
