// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/time/time.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "host/base/deadline.h"
#include "host/base/task.h"

namespace outrigger::controller::polling {

// One read of one external metric, as the HPA controller asks through the metrics API.
struct MetricRead {
  std::string namespace_name;
  std::string scaled_object;
  std::string metric_name;  // with the s<index>- prefix; matched without regard to case
  std::string selector;     // the rest of the label selector; "" = all values
};

struct MetricReading {
  std::string metric_name;  // in the spec's own case
  std::map<std::string, std::string> labels;
  double value = 0;  // finite, not negative
  absl::Time measured_at;
  std::optional<absl::Duration> window;
};

// What the source says of itself, told apart from a scaler's answer with the same code: NOT_FOUND,
// no such ScaledObject or metric; FAILED_PRECONDITION, the caches are not synced yet.
absl::Status NoSuchMetricError(absl::string_view message);
bool IsNoSuchMetric(const absl::Status& status);
absl::Status NotSyncedError();
bool IsNotSynced(const absl::Status& status);

// Answers metric reads from the record of the trigger's last answer, or by one shared live call, or
// with the fallback value that the leader published. Never a made-up zero. Call on the core strand.
//
// Errors: NoSuchMetricError(), NotSyncedError(); UNAVAILABLE with host::IsPluginUnreachable() when
// the plugin could not be asked; anything else is the scaler's own, whatever its code.
class MetricSource {
 public:
  virtual ~MetricSource() = default;
  virtual host::Task<absl::StatusOr<std::vector<MetricReading>>> Read(MetricRead read,
                                                                      host::Deadline deadline) = 0;
};

}  // namespace outrigger::controller::polling
