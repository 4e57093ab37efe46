// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <utility>
#include <vector>

#include "host/base/mutex.h"
#include "operator/polling/metric_source.h"

namespace outrigger::controller::adapter {

// A MetricSource that answers as a test says (at first 23 of s0-redis-orders) and remembers what
// was asked. Thread-safe.
class ScriptedSource : public polling::MetricSource {
 public:
  using Answer = absl::StatusOr<std::vector<polling::MetricReading>>;

  host::Task<Answer> Read(polling::MetricRead read, host::Deadline) override {
    host::MutexLock lock(&mutex_);
    reads_.push_back(std::move(read));
    co_return answer_;
  }
  void Set(Answer answer) {
    host::MutexLock lock(&mutex_);
    answer_ = std::move(answer);
  }
  std::vector<polling::MetricRead> reads() const {
    host::MutexLock lock(&mutex_);
    return reads_;
  }

 private:
  mutable host::Mutex mutex_;
  Answer answer_ ABSL_GUARDED_BY(mutex_) = std::vector<polling::MetricReading>(
      1, {.metric_name = "s0-redis-orders", .labels = {}, .value = 23});
  std::vector<polling::MetricRead> reads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace outrigger::controller::adapter
