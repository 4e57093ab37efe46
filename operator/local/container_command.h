// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <boost/json/object.hpp>
#include <map>
#include <string>
#include <vector>

namespace outrigger::controller::local {

// What a Deployment's pod would run, as a local process.
struct ContainerCommand {
  std::vector<std::string> argv;           // command and args, $(NAME) expanded
  std::map<std::string, std::string> env;  // literal values only
  std::string working_dir;                 // "": where outriggerctl runs
  absl::Duration grace = absl::Seconds(30);

  friend bool operator==(const ContainerCommand&, const ContainerCommand&) = default;
};

// Reads spec.template of a Deployment's `spec`: exactly one container with a command (the image is
// not looked at). INVALID_ARGUMENT with path, wanted and got; UNIMPLEMENTED, naming the path, for
// what a local process cannot have: more containers, init containers, env from other sources.
absl::StatusOr<ContainerCommand> ParseContainerCommand(const boost::json::object& spec);

}  // namespace outrigger::controller::local
