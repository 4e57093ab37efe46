// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json/value.hpp>
#include <string>
#include <vector>

#include "operator/kube/api.h"

namespace outrigger::controller::local {

// What `outriggerctl local` can be given.
struct KnownKind {
  const char* api_version;
  const char* kind;
  const kube::Resource& (*resource)();
};
const std::vector<KnownKind>& KnownKinds();

// All that is wrong with one object of a known kind, seen alone, each "field: want …, got …";
// empty: nothing. Of a ScaledObject that is what the operator's own validation says and what it
// does not support yet; of a Deployment also whether its command can be run here. Looks at the file
// system for the latter.
std::vector<std::string> CheckManifest(const std::string& kind, const boost::json::value& object);

}  // namespace outrigger::controller::local
