// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <boost/json/value.hpp>
#include <string>
#include <vector>

#include "tests/cluster/control_plane.h"

namespace outrigger::tests {

// SharedControlPlane() with namespace, CRDs and rights of deploy/ applied, once per test program.
// Aborts when they are refused.
ControlPlane& DeployedControlPlane();

// What kubectl prints with -o json. FAILED_PRECONDITION when it fails or prints something else.
absl::StatusOr<boost::json::value> KubectlJson(ControlPlane& plane,
                                               std::vector<std::string> arguments);

}  // namespace outrigger::tests
