// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/time/time.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace outrigger::controller::local {

// What there is to see of an embedded run at one moment. Plain values: StepReporter makes lines of
// two of them, outriggerctl's table shows one.

struct TriggerView {
  std::string metric;           // with the s<index>- prefix; the type while there is no spec
  std::optional<double> value;  // of the last good answer
  std::optional<double> target;
  bool active = false;
  bool failed = false;  // the last answer was none
};

struct ObjectView {
  std::string name;      // "default/worker"
  std::string target;    // "worker"
  std::string active;    // of the condition Active: "True", "False", "Unknown"
  int32_t running = 0;   // replicas that are up
  int32_t replicas = 0;  // that are wanted: spec.replicas of the target
  std::vector<TriggerView> triggers;
  // The operator's last decision; empty before the first.
  std::string explanation;  // inputs, limits, rule and result, in one line
  std::string outcome;      // its end: rule and result
  // The one that last changed the replicas; the last may be another already. Empty: none has.
  std::string scaled_because;
  // The HPA's last step; empty before the first.
  std::string hpa_message;  // "New size: 5; reason: external metric s0-redis-orders above target"
  std::optional<int32_t> hpa_replicas;  // what it set
  std::string not_ready;                // "REASON: message" of the condition Ready; empty: it is
  absl::Time since;                     // of the decision, apart from the numbers in it
};

struct PluginView {
  std::string name;
  std::string state;   // connecting, ready, unavailable, refused
  std::string reason;  // of a state other than ready
  absl::Time since;    // of the state
  int restarts = 0;    // of its process
};

struct LocalState {
  absl::Time now;
  std::vector<ObjectView> objects;  // by name
  std::vector<PluginView> plugins;  // by name
};

// Kubernetes prints a metric's selector as Go does: "s0-a(&LabelSelector{…}) above target". For
// people: "s0-a above target".
std::string WithoutSelector(const std::string& message);

// The text with "#" for each digit: equal for two decisions that differ in a count-down only.
std::string WithoutNumbers(const std::string& text);

}  // namespace outrigger::controller::local
