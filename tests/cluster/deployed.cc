// SPDX-License-Identifier: Apache-2.0
#include "tests/cluster/deployed.h"

#include <absl/strings/str_cat.h>

#include <boost/json/parse.hpp>
#include <cstdio>
#include <cstdlib>

#include "host/base/status.h"

namespace outrigger::tests {
namespace {

bool ApplyOrAbort() {
  const absl::Status applied = SharedControlPlane().ApplyDeployFiles();
  if (applied.ok()) return true;
  std::fprintf(stderr, "deploy/: %s\n", applied.ToString().c_str());
  std::abort();
}

}  // namespace

ControlPlane& DeployedControlPlane() {
  [[maybe_unused]] static const bool applied = ApplyOrAbort();
  return SharedControlPlane();
}

absl::StatusOr<boost::json::value> KubectlJson(ControlPlane& plane,
                                               std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"-o", "json"});
  ASSIGN_OR_RETURN(const std::string text, plane.MustKubectl(std::move(arguments)));
  boost::system::error_code error;
  boost::json::parse_options deep;
  deep.max_depth = 100;  // schemas nest deeper than the default of 32
  boost::json::value value = boost::json::parse(text, error, {}, deep);
  if (error) {
    return absl::FailedPreconditionError(
        absl::StrCat("want JSON, got (", error.message(), ") ", text));
  }
  return value;
}

}  // namespace outrigger::tests
