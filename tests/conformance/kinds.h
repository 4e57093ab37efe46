// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "operator/kube/api.h"

namespace outrigger::conformance {

// The kinds that are compared.
enum class Kind {
  kConfigMap,
  kSecret,
  kLease,
  kDeployment,
  kStatefulSet,
  kHpa,
  kScaledObject,
  kUnknown  // a resource that no server has
};

const std::vector<Kind>& AllKinds();  // without kUnknown
const controller::kube::Resource& ResourceOf(Kind kind);

// A valid object of that name, labelled team=x. All that the server would fill in and MemoryApi
// does not (the Pod template's defaults) is written out.
boost::json::object Sample(Kind kind, const std::string& name);

}  // namespace outrigger::conformance
