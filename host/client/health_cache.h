// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/status/status.h>
#include <absl/time/time.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "host/base/clock.h"

namespace outrigger::host {

// One metric of one trigger of one object. The uid, not the name: an object that was deleted and
// made again starts anew.
struct HealthKey {
  std::string uid;
  uint32_t trigger_index = 0;
  std::string metric;  // without prefix; "" while the trigger has never given a spec

  friend auto operator<=>(const HealthKey&, const HealthKey&) = default;
};

// The last thing that a metric's trigger said.
struct HealthRecord {
  absl::Status status;          // OK: `value` and `active` are of the last answer
  std::optional<double> value;  // sum of the values of the last good answer; kept through failures
  bool active = false;          // of the last good answer
  absl::Time measured_at;       // wall time of the last good answer
  SteadyTime answered_at;       // of the last answer, good or bad
  SteadyTime good_at = SteadyTime::InfinitePast();  // of the last good answer
  int failed_cycles = 0;                            // poll cycles in a row that failed
};

// Remembers the last answer of each metric and says who may reuse it, so that a source is asked as
// seldom as can be:
//
//   asker                  may reuse                                         counts a failure
//   poll at the due time   nothing                                           yes, one per cycle
//   connection test        a success <= 30 s, a failure <= 5 s old           no
//   HPA read               a value <= freshness, a failure <= 5 s old;       no
//                          while unhealthy always the failure
//
// Three failed cycles in a row make a metric unhealthy until one success. Ages are steady time.
// Never blocks; use from one strand. Records go by Forget(). Source: requirements.md R14-R16;
// design.md section 5.
class HealthCache {
 public:
  struct Options {
    absl::Duration success_ttl = absl::Seconds(30);
    absl::Duration failure_ttl = absl::Seconds(5);
    int unhealthy_after = 3;
  };
  HealthCache(const Clock& clock, Options options) : clock_(clock), options_(options) {}

  void RecordSuccess(const HealthKey& key, double value, bool active);
  // `ends_cycle`: the failure of a poll cycle; counted. Other failures only replace the last
  // answer.
  void RecordFailure(const HealthKey& key, const absl::Status& status, bool ends_cycle);
  // What the leader before us published: `failures` failed cycles, kept until one success.
  void Restore(const HealthKey& key, int failures, const absl::Status& status);

  // nullptr: nothing is known.
  const HealthRecord* Find(const HealthKey& key) const;
  // The record, if this asker may reuse it; nullptr: ask.
  const HealthRecord* ForConnectionTest(const HealthKey& key) const;
  const HealthRecord* ForRead(const HealthKey& key, absl::Duration freshness) const;

  int FailedCycles(const HealthKey& key) const;
  bool Unhealthy(const HealthKey& key) const {
    return FailedCycles(key) >= options_.unhealthy_after;
  }

  void Forget(const std::string& uid);
  void Forget(const HealthKey& key) { records_.erase(key); }
  void Clear() { records_.clear(); }
  size_t size() const { return records_.size(); }

 private:
  const Clock& clock_;
  const Options options_;
  std::map<HealthKey, HealthRecord> records_;
};

}  // namespace outrigger::host
