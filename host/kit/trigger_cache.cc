// SPDX-License-Identifier: Apache-2.0
#include "host/kit/trigger_cache.h"

namespace outrigger::host::kit {

std::shared_ptr<const ParsedTrigger> TriggerCache::Find(const std::string& key) {
  MutexLock lock(&mutex_);
  const auto it = by_key_.find(key);
  if (it == by_key_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, it->second);
  return it->second->second;
}

void TriggerCache::Insert(const std::string& key, std::shared_ptr<const ParsedTrigger> trigger) {
  MutexLock lock(&mutex_);
  if (by_key_.count(key) > 0) return;  // another call parsed the same meanwhile
  entries_.emplace_front(key, std::move(trigger));
  by_key_[key] = entries_.begin();
  if (entries_.size() <= capacity_) return;
  by_key_.erase(entries_.back().first);
  entries_.pop_back();
}

size_t TriggerCache::size() const {
  MutexLock lock(&mutex_);
  return entries_.size();
}

}  // namespace outrigger::host::kit
