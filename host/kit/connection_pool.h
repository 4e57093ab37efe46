// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/strings/string_view.h>

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "host/base/clock.h"
#include "host/base/mutex.h"

namespace outrigger::host::kit {

// The key under which a connection is shared: equal parts give equal keys, different parts
// different ones, and secrets among them cannot be read back (HMAC under a key made at start).
std::string ConnectionFingerprint(std::initializer_list<absl::string_view> parts);

// Shares one Connection per fingerprint among all triggers with the same endpoint and identity.
//
// Thread-safe; Get() and DropIdle() never block on I/O (`make` only builds the object, dialling is
// the Connection's work). The pool forgets, users of a connection keep it alive.
template <typename Connection>
class ConnectionPool {
 public:
  using Make = std::function<std::shared_ptr<Connection>()>;

  std::shared_ptr<Connection> Get(const std::string& fingerprint, SteadyTime now,
                                  const Make& make) {
    MutexLock lock(&mutex_);
    Entry& entry = entries_[fingerprint];
    if (entry.connection == nullptr) entry.connection = make();
    entry.last_used = now;
    return entry.connection;
  }

  // Takes out what was not asked for since `before`; the caller closes it.
  std::vector<std::shared_ptr<Connection>> TakeIdle(SteadyTime before) {
    std::vector<std::shared_ptr<Connection>> idle;
    MutexLock lock(&mutex_);
    for (auto it = entries_.begin(); it != entries_.end();) {
      if (it->second.last_used >= before) {
        ++it;
        continue;
      }
      idle.push_back(std::move(it->second.connection));
      it = entries_.erase(it);
    }
    return idle;
  }

  size_t size() const {
    MutexLock lock(&mutex_);
    return entries_.size();
  }

 private:
  struct Entry {
    std::shared_ptr<Connection> connection;
    SteadyTime last_used;
  };

  mutable Mutex mutex_;
  std::map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace outrigger::host::kit
