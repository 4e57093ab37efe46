// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/strings/string_view.h>

#include <map>
#include <string>
#include <tuple>

#include "host/base/clock.h"
#include "host/base/logging.h"
#include "host/base/task_group.h"
#include "operator/api/object_meta.h"
#include "operator/kube/api.h"
#include "operator/runtime/write_gate.h"

namespace outrigger::controller::runtime {

// What an event is about.
struct EventTarget {
  std::string kind = "ScaledObject";
  std::string api_version = "keda.sh/v1alpha1";
  api::NamespacedName key;
  std::string uid;
};

// Publishes Kubernetes Events (events.k8s.io/v1) of reporting controller outrigger-operator, in the
// last lane of the write gate. Losing one is no fault: a failure is logged and forgotten. Of one
// object and reason at most three come at once, then one in five minutes (a bucket of three that
// fills at that rate), so that a source that is down for a day does not fill etcd (case B146).
//
// Use from one strand. Forget() an object that is gone.
class EventRecorder {
 public:
  struct Options {
    std::string instance = "outrigger-operator";  // the Pod's name
    int at_once = 3;
    absl::Duration then_every = absl::Minutes(5);
    size_t most_waiting = 256;  // beyond, events are dropped
  };

  EventRecorder(host::Clock& clock, kube::Api& api, WriteGate& gate, host::Executor strand,
                host::Logger log, Options options);

  // `type` is "Normal" or "Warning"; `note` is cut to 1,024 bytes, the API's limit.
  void Record(const EventTarget& target, absl::string_view type, absl::string_view reason,
              absl::string_view note);
  void Forget(const std::string& uid);
  size_t remembered() const { return allowances_.size(); }
  // Waits for the events on their way. Before the recorder goes.
  host::Task<void> Join() { return sends_.Join(); }

 private:
  struct Allowance {
    double events = 0;  // that may come at once
    host::SteadyTime at;
  };

  bool Allow(const std::string& uid, absl::string_view reason);
  host::Task<void> Send(boost::json::object event, std::string namespace_name);

  host::Clock& clock_;
  kube::Api& api_;
  WriteGate& gate_;
  host::TaskGroup sends_;
  const host::Logger log_;
  const Options options_;
  std::map<std::pair<std::string, std::string>, Allowance> allowances_;  // by uid and reason
  uint64_t sequence_ = 0;
  size_t waiting_ = 0;
};

}  // namespace outrigger::controller::runtime
