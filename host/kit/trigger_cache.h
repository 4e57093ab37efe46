// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "host/base/mutex.h"
#include "host/kit/trigger_scaler.h"

namespace outrigger::host::kit {

// Parsed triggers by (type, fingerprint), so that a poll does not parse certificates again. Holds
// the `capacity` ones used last. Thread-safe, never blocks for long. Equal fingerprints mean equal
// parameters by contract, so content is not compared.
class TriggerCache {
 public:
  explicit TriggerCache(size_t capacity) : capacity_(capacity) {}

  // nullptr: not here.
  std::shared_ptr<const ParsedTrigger> Find(const std::string& key);
  void Insert(const std::string& key, std::shared_ptr<const ParsedTrigger> trigger);
  size_t size() const;

 private:
  using Entry = std::pair<std::string, std::shared_ptr<const ParsedTrigger>>;

  const size_t capacity_;
  mutable Mutex mutex_;
  std::list<Entry> entries_ ABSL_GUARDED_BY(mutex_);  // used last first
  std::unordered_map<std::string, std::list<Entry>::iterator> by_key_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace outrigger::host::kit
