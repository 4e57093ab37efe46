// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <string>

#include "host/base/clock.h"
#include "host/base/deadline.h"
#include "host/base/task.h"
#include "operator/kube/api.h"

namespace outrigger::controller::kube {

// Under which path the API server has the objects of a kind, which only it knows for kinds that
// come from others.
//
// What is known of a group and version is good for 10 minutes, or 5 s where it lacks the kind or
// its scale subresource. Use from one strand; calls that run side by side each ask.
class RestMapper {
 public:
  struct Mapping {
    Resource resource;
    bool has_scale = false;  // a subresource "scale"
  };

  RestMapper(host::Clock& clock, Api& api) : clock_(clock), api_(api) {}

  // Of a kind without a scale subresource `has_scale` is false. NOT_FOUND: the API server does not
  // serve that group and version, or no such kind in it. Else the error of the call.
  host::Task<absl::StatusOr<Mapping>> Find(std::string group, std::string version, std::string kind,
                                           host::Deadline deadline);

 private:
  struct Known {
    host::SteadyTime asked_at = host::SteadyTime::InfinitePast();
    bool served = false;
    std::map<std::string, Mapping> kinds;
  };

  // The entry of the group and version, asked for if it is older than `oldest`.
  host::Task<absl::Status> Refresh(std::string group, std::string version, absl::Duration oldest,
                                   host::Deadline deadline);

  host::Clock& clock_;
  Api& api_;
  std::map<std::string, Known> known_;  // by "group/version"
};

}  // namespace outrigger::controller::kube
