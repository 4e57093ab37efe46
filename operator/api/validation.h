// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>

#include <string>
#include <vector>

#include "operator/api/scaled_object.h"

namespace outrigger::controller::api {

// One fault of an object, for the person who wrote it.
struct Violation {
  std::string field;   // path: "spec.triggers[0].metricType"
  std::string wanted;  // "AverageValue or Value"
  std::string got;     // "Utilization"

  std::string ToString()
      const;  // "spec.triggers[0].metricType: want AverageValue or Value, got Utilization"
  friend bool operator==(const Violation&, const Violation&) = default;
};

// Everything that is wrong with a ScaledObject and can be seen without asking the cluster or a
// plugin; empty: valid. Whether the trigger type is known, the authentication reference resolves
// and the target exists is the reconciler's question, and the parameters' are the plugin's. Pure.
// Source: spec/scaledobject.md sections 2 and 3, webhook.md.
std::vector<Violation> ValidateScaledObject(const ScaledObject& object);

// All of them in one line, "; " between. Empty for none.
std::string JoinViolations(const std::vector<Violation>& violations);

// OK for none, else INVALID_ARGUMENT with JoinViolations().
absl::Status ViolationsToStatus(const std::vector<Violation>& violations);

}  // namespace outrigger::controller::api
