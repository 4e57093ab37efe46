// SPDX-License-Identifier: Apache-2.0
#include "host/client/health_cache.h"

namespace outrigger::host {

void HealthCache::RecordSuccess(const HealthKey& key, double value, bool active) {
  HealthRecord& record = records_[key];
  record.status = absl::OkStatus();
  record.value = value;
  record.active = active;
  record.measured_at = clock_.WallNow();
  record.answered_at = record.good_at = clock_.SteadyNow();
  record.failed_cycles = 0;
}

void HealthCache::RecordFailure(const HealthKey& key, const absl::Status& status, bool ends_cycle) {
  HealthRecord& record = records_[key];
  record.status = status;
  record.answered_at = clock_.SteadyNow();
  if (ends_cycle) ++record.failed_cycles;
}

void HealthCache::Restore(const HealthKey& key, int failures, const absl::Status& status) {
  HealthRecord& record = records_[key];
  record.status = status;
  record.answered_at = clock_.SteadyNow();
  record.failed_cycles = failures;
}

const HealthRecord* HealthCache::Find(const HealthKey& key) const {
  auto it = records_.find(key);
  return it == records_.end() ? nullptr : &it->second;
}

const HealthRecord* HealthCache::ForConnectionTest(const HealthKey& key) const {
  const HealthRecord* record = Find(key);
  if (record == nullptr) return nullptr;
  const absl::Duration age = clock_.SteadyNow() - record->answered_at;
  const absl::Duration limit = record->status.ok() ? options_.success_ttl : options_.failure_ttl;
  return record->status.ok() ? (age <= limit ? record : nullptr) : (age < limit ? record : nullptr);
}

const HealthRecord* HealthCache::ForRead(const HealthKey& key, absl::Duration freshness) const {
  const HealthRecord* record = Find(key);
  if (record == nullptr) return nullptr;
  if (record->failed_cycles >= options_.unhealthy_after && !record->status.ok()) return record;
  const absl::Duration age = clock_.SteadyNow() - record->answered_at;
  if (record->status.ok()) return age <= freshness ? record : nullptr;
  return age < options_.failure_ttl ? record : nullptr;
}

int HealthCache::FailedCycles(const HealthKey& key) const {
  const HealthRecord* record = Find(key);
  return record == nullptr ? 0 : record->failed_cycles;
}

void HealthCache::Forget(const std::string& uid) {
  auto first = records_.lower_bound(HealthKey{.uid = uid});
  auto last = first;
  while (last != records_.end() && last->first.uid == uid) ++last;
  records_.erase(first, last);
}

}  // namespace outrigger::host
