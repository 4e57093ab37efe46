// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>

#include <boost/json/object.hpp>
#include <cstdint>
#include <functional>
#include <memory>

#include "host/base/task.h"
#include "operator/api/namespaced_name.h"

namespace outrigger::controller::local {

// The replicas of one Deployment, as whatever stands for pods where there is no cluster: processes
// (ProcessRunner), or nothing but numbers in a simulation. Made and driven by DeploymentController,
// on its strand. Never blocks.
class Workload {
 public:
  struct Counts {
    int32_t replicas = 0;  // exist, those that are ending included
    int32_t ready = 0;
    friend bool operator==(const Counts&, const Counts&) = default;
  };
  virtual ~Workload() = default;

  // Follows the Deployment's spec from now on; called for each change of it. INVALID_ARGUMENT or
  // UNIMPLEMENTED, naming the field, when the spec cannot be run: then what runs goes on as it is.
  virtual absl::Status Apply(const boost::json::object& spec) = 0;
  virtual Counts counts() const = 0;

  // Runs until Stop(), and returns when no replica is left.
  virtual host::Task<void> Run() = 0;
  virtual void Stop() = 0;
  // As Stop(), without a grace period: when it returns, nothing runs any more.
  virtual void Kill() = 0;
};

// Makes the Workload of a Deployment; `changed` is to be called after each change of its counts.
using WorkloadFactory = std::function<std::unique_ptr<Workload>(const api::NamespacedName& key,
                                                                std::function<void()> changed)>;

}  // namespace outrigger::controller::local
