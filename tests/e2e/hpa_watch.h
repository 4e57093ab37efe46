// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/cluster/control_plane.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace outrigger::tests {

// What every version of every HPA of a namespace said, as a watch sees them from the start on.
// Fails the test when kubectl cannot be started.
class HpaWatch {
 public:
  // `scope`: of kubectl, {"-n", "orders"} or {"-A"}. `what`: a jsonpath template,
  // "{.metadata.namespace} {.spec.metrics[*].type}".
  HpaWatch(ControlPlane& plane, const std::vector<std::string>& scope, const std::string& what);

  // In the order of their coming. One that the template says nothing of is "".
  std::vector<std::string> Seen() const;

 private:
  const TempDir dir_;
  std::unique_ptr<Process> kubectl_;
};

}  // namespace outrigger::tests
