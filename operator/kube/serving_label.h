// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>

#include <optional>
#include <string>

#include "host/base/clock.h"
#include "host/base/deadline.h"
#include "host/base/event.h"
#include "host/base/logging.h"
#include "host/base/random.h"
#include "host/base/task.h"
#include "operator/kube/api.h"

namespace outrigger::controller::kube {

// The label of our own Pod by which the Service of the metrics API selects it: only while we
// answer.
//
// That Service publishes addresses that are not ready (a plugin in CrashLoopBackOff must not take a
// replica out of service), and then Kubernetes publishes those of Pods that do not listen yet, and
// those of terminating Pods until their last container has ended: reads would be refused. So we
// say it ourselves. Without a Pod's name nothing is done (outside Kubernetes).
//
// Used by main(); on one strand. The writes are not the leader's: each replica labels itself. Each
// is tried until the API server takes it, with a backoff up to 30 s.
class ServingLabel {
 public:
  static constexpr char kName[] = "outrigger.dev/serving";

  ServingLabel(host::Clock& clock, Api& api, host::Random random, const host::Logger& log,
               std::string namespace_name, std::string pod)
      : clock_(clock),
        api_(api),
        random_(random),
        log_(log.With({{"pod", pod}})),
        namespace_(std::move(namespace_name)),
        pod_(std::move(pod)) {}

  // Once, until Stop() or the end of Remove(): keeps the label as it should be. At first it is
  // taken off: a container that was killed has left it.
  host::Task<void> Run();
  // We answer from now on.
  void Put();
  // For good. Returns when it is off, or at the deadline.
  host::Task<void> Remove(host::Deadline deadline);
  // Ends Run() without a further write.
  void Stop();

 private:
  host::Task<absl::Status> Patch(bool serving, host::Deadline deadline);

  host::Clock& clock_;
  Api& api_;
  host::Random random_;
  const host::Logger log_;
  const std::string namespace_;
  const std::string pod_;
  bool wanted_ = false;
  std::optional<bool> known_;  // what the API server has; nullopt: who knows
  bool removing_ = false;
  bool stopped_ = false;
  host::Event changed_;  // what is wanted
  host::Event settled_;  // what is known
};

}  // namespace outrigger::controller::kube
