// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/time/time.h>

#include <boost/json/object.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "host/base/clock.h"
#include "host/base/event.h"
#include "host/base/logging.h"
#include "operator/api/namespaced_name.h"
#include "operator/local/child_process.h"
#include "operator/local/container_command.h"
#include "operator/local/workload.h"

namespace outrigger::controller::local {

// Runs a Deployment's container command as so many local processes as spec.replicas says.
//
// One that ends is started again, after 1 s doubling to 30 s, from 1 s again once it has run for a
// minute. One too many, or of an older template, gets SIGTERM and after the grace period SIGKILL,
// each to its process group. A process counts as ready while it runs. Each has HOSTNAME
// "<deployment>-<n>" in its environment, as a pod would.
//
// One strand. Starts processes from the strand's thread, which must live as long as they (see
// ChildProcess). Looks after its children every 50 ms while it has any: waitpid has no other way
// that needs neither a thread nor a signal handler.
class ProcessRunner : public Workload {
 public:
  struct Options {
    std::string log_folder;  // a file per replica, "<namespace>.<name>-<n>.log"; "": no output
    // One line for people when a replica ends by itself or cannot be started; may be empty.
    std::function<void(const std::string& line)> print;
    absl::Duration first_backoff = absl::Seconds(1);
    absl::Duration longest_backoff = absl::Seconds(30);
    absl::Duration reset_backoff_after = absl::Minutes(1);
    absl::Duration poll_period = absl::Milliseconds(50);
  };

  ProcessRunner(host::Clock& clock, const host::Logger& log, api::NamespacedName key,
                Options options, std::function<void()> changed);

  absl::Status Apply(const boost::json::object& spec) override;
  Counts counts() const override;
  host::Task<void> Run() override;
  void Stop() override;
  void Kill() override;

 private:
  struct Replica {
    std::unique_ptr<ChildProcess> process;  // null: not running
    ContainerCommand command;               // that it was started with
    host::SteadyTime started;
    host::SteadyTime start_at;  // not before: backoff
    host::SteadyTime kill_at;   // while ending
    absl::Duration backoff;
    bool ending = false;
  };

  bool Wanted(size_t index) const { return !stopping_ && index < wanted_; }
  // One look at all replicas.
  void Step();
  void Reap(Replica& replica, size_t index);
  void End(Replica& replica);
  void Start(Replica& replica, size_t index);
  void BackOff(Replica& replica, size_t index, const std::string& why);
  host::SteadyTime NextLook() const;

  host::Clock& clock_;
  const host::Logger log_;
  const api::NamespacedName key_;
  const Options options_;
  const std::function<void()> changed_;
  const host::Event wake_;
  ContainerCommand command_;
  size_t wanted_ = 0;
  bool stopping_ = false;
  std::vector<Replica> replicas_;
};

}  // namespace outrigger::controller::local
