// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/time/time.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "host/base/deadline.h"
#include "host/kit/parameter.h"
#include "outrigger/scaler/v1/scaler.pb.h"

namespace outrigger::host::kit {

// What a scaler makes of a trigger's parameters; each trigger type derives its own. Immutable,
// shared between calls, kept in a cache by fingerprint. Must not print its secrets.
class ParsedTrigger {
 public:
  virtual ~ParsedTrigger() = default;
};

// What a source said: the values, and whether the workload should run at all. A value without
// measured_at was measured now.
struct Reading {
  std::vector<scaler::v1::MetricValue> values;
  bool active = false;
  absl::Duration retry_after = absl::ZeroDuration();  // 0: no wish
};

// One question to a scaler.
struct ReadRequest {
  std::shared_ptr<const ParsedTrigger> trigger;
  // An answer after this is dropped. Slightly before the caller's own, so that the scaler's error,
  // which knows more, arrives before the kit's "no answer".
  Deadline deadline = Deadline::Never();
  bool poll = false;        // the operator's poll at the due time; stateful types advance on it
  std::string metric_name;  // "": all metrics of the trigger
  // Call exactly once, from any thread, also from inside Read(). Codes: those of the Scaler
  // contract's GetMetrics. Never INVALID_ARGUMENT for something that only the source knows.
  std::function<void(absl::StatusOr<Reading>)> done;
};

// One trigger type of a plugin: what an author writes. The kit does the rest (wire, schema, cache,
// deadlines, batches, limits).
//
// All functions may be called from several threads at once and must not block: Read() hands the
// work to the plugin's executor or pool and returns.
class TriggerScaler {
 public:
  virtual ~TriggerScaler() = default;

  // Constant for the life of the scaler.
  virtual const TriggerSchema& schema() const = 0;

  // Builds the trigger from its typed parameters and adds what is wrong beyond single parameters.
  // The result is ignored when there are violations, also such as the kit found before; so it may
  // be null then. Touches no source.
  virtual std::shared_ptr<const ParsedTrigger> Parse(const Parameters& parameters,
                                                     const scaler::v1::Trigger& trigger,
                                                     Violations& violations) const = 0;

  // At least one, targets > 0. Touches no source.
  virtual std::vector<scaler::v1::MetricSpec> Specs(const ParsedTrigger& trigger) const = 0;

  // All reads of a batch for this type come in one call, so that they can be pipelined; equal
  // questions come once.
  virtual void Read(std::vector<ReadRequest> requests) = 0;
};

// `text` with each of / . : % ( ) replaced by '-', as external metric names need.
std::string NormaliseMetricName(absl::string_view text);

}  // namespace outrigger::host::kit
