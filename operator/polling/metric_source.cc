// SPDX-License-Identifier: Apache-2.0
#include "operator/polling/metric_source.h"

#include <absl/strings/cord.h>

namespace outrigger::controller::polling {
namespace {

constexpr char kSourceErrorUrl[] = "outrigger.dev/metric-source";
constexpr char kNoSuchMetric[] = "no such metric";
constexpr char kNotSynced[] = "not synced";

absl::Status Marked(absl::Status status, absl::string_view mark) {
  status.SetPayload(kSourceErrorUrl, absl::Cord(mark));
  return status;
}

bool Has(const absl::Status& status, absl::string_view mark) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kSourceErrorUrl);
  return payload.has_value() && *payload == mark;
}

}  // namespace

absl::Status NoSuchMetricError(absl::string_view message) {
  return Marked(absl::NotFoundError(message), kNoSuchMetric);
}
bool IsNoSuchMetric(const absl::Status& status) { return Has(status, kNoSuchMetric); }

absl::Status NotSyncedError() {
  return Marked(absl::FailedPreconditionError("caches are not synced yet"), kNotSynced);
}
bool IsNotSynced(const absl::Status& status) { return Has(status, kNotSynced); }

}  // namespace outrigger::controller::polling
