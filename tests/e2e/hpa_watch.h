// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/e2e/scene.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace outrigger::tests {

// What every version of every HPA of a scene's namespace said at one path, as a watch sees them
// from the start on. Fails the test when kubectl cannot be started.
class HpaWatch {
 public:
  // `path`: a jsonpath, ".spec.metrics[*].type".
  HpaWatch(Scene& scene, const std::string& path);

  // In the order of their coming. One that the path says nothing of is "".
  std::vector<std::string> Seen() const;

 private:
  const TempDir dir_;
  std::unique_ptr<Process> kubectl_;
};

}  // namespace outrigger::tests
