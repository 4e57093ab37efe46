// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/time/time.h>

#include <boost/json/value.hpp>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "host/base/clock.h"
#include "host/base/event.h"
#include "host/base/logging.h"
#include "host/base/random.h"
#include "host/base/task.h"
#include "host/base/task_group.h"
#include "operator/api/namespaced_name.h"
#include "operator/kube/api.h"
#include "operator/kube/informer.h"
#include "operator/local/workload.h"

namespace outrigger::controller::local {

// The Deployment controller of the embedded mode: gives each Deployment a Workload that follows its
// spec, and writes the Workload's counts into the Deployment's status (replicas, readyReplicas,
// updatedReplicas, availableReplicas, observedGeneration; condition ReplicaFailure with the reason
// FailedCreate where the spec cannot be run), if they differ. No ReplicaSets, no pods, no rollouts.
//
// One strand only; never blocks. Run() returns after Stop() when every Workload has ended.
class DeploymentController {
 public:
  struct Options {
    absl::Duration call_timeout = absl::Seconds(10);
    absl::Duration retry_after = absl::Seconds(1);  // of a status that could not be written
  };

  DeploymentController(kube::Api& api, host::Clock& clock, const host::Logger& log,
                       host::Random random, WorkloadFactory factory, Options options);

  host::Task<void> Run();
  void Stop();
  // As Stop(), without a grace period: when it returns, nothing runs any more.
  void Kill();
  // What runs of a Deployment now; zeros for one that is not there.
  Workload::Counts CountsOf(const api::NamespacedName& key) const;

 private:
  using Key = api::NamespacedName;
  struct Entry {
    std::unique_ptr<Workload> workload;
    std::string applied_uid;
    int64_t applied_generation = 0;
    absl::Status applied;
    bool stopping = false;
  };

  void MarkDirty(const Key& key);
  host::Task<void> SyncOne(Key key);
  void Apply(const Key& key, const boost::json::object& deployment);
  host::Task<void> RunWorkload(Key key, Workload& workload);
  // The status that the Deployment should have.
  boost::json::object StatusOf(const Entry& entry) const;

  kube::Api& api_;
  host::Clock& clock_;
  const host::Logger log_;
  const WorkloadFactory factory_;
  const Options options_;
  const host::Event wake_;
  kube::Informer<boost::json::value> informer_;
  std::unique_ptr<host::TaskGroup> tasks_;  // while Run() runs
  std::map<Key, Entry> entries_;
  std::set<Key> dirty_;
  std::set<Key> retries_;  // their status could not be written
  host::SteadyTime retry_at_ = host::SteadyTime::InfiniteFuture();
  bool stopping_ = false;
};

}  // namespace outrigger::controller::local
