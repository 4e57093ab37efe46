// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <absl/time/time.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "host/base/clock.h"
#include "host/base/event.h"
#include "operator/api/namespaced_name.h"

namespace outrigger::controller::runtime {

// Which objects to reconcile, and when. A key is never in two workers; one that is added while it
// runs runs once more; equal keys merge. A failed key comes back after 100 ms, doubling to 16 s,
// and failed keys together at 10 a second with a burst of 100; new work is never throttled.
//
// Use from one strand. Never blocks: Get() is awaited.
// Source: requirements.md R18, R20, R22; design.md section 5.
class WorkQueue {
 public:
  struct Options {
    absl::Duration first_backoff = absl::Milliseconds(100);
    absl::Duration longest_backoff = absl::Seconds(16);
    double retries_per_second = 10;
    double retry_burst = 100;
  };
  // Told of each change of the depth, and how long a key waited when it is handed out. May be
  // empty.
  struct Observer {
    std::function<void(size_t depth)> on_depth;
    std::function<void(absl::Duration waited)> on_taken;
    std::function<void()> on_added;
    std::function<void()> on_retry;
  };

  WorkQueue(host::Clock& clock, Options options, Observer observer = {});

  void Add(const api::NamespacedName& key);
  // Adds at the end of `delay`; of several, the soonest counts.
  void AddAfter(const api::NamespacedName& key, absl::Duration delay);
  // After a failure: backoff of the key, and the rate of all failed keys.
  void AddAfterFailure(const api::NamespacedName& key);
  // After a success: the key's backoff starts anew and a retry that waits is dropped.
  void Forget(const api::NamespacedName& key);

  // The next key; nullopt after ShutDown(). The caller owes a Done() for each.
  host::Task<std::optional<api::NamespacedName>> Get();
  void Done(const api::NamespacedName& key);

  void ShutDown();
  size_t depth() const { return ready_.size(); }
  // Keys about which the queue knows anything: for tests of leaks.
  size_t known_keys() const {
    return ready_.size() + running_.size() + delayed_.size() + failures_.size();
  }

 private:
  struct Ready {
    api::NamespacedName key;
    host::SteadyTime since;
  };

  void Push(const api::NamespacedName& key);
  void PromoteDue();
  absl::Duration ReserveRetry();
  void DropDelayed(const api::NamespacedName& key);
  host::SteadyTime NextDue() const;
  void TellDepth();

  host::Clock& clock_;
  const Options options_;
  const Observer observer_;
  host::Event changed_;
  bool shut_down_ = false;
  std::deque<Ready> ready_;
  absl::flat_hash_set<api::NamespacedName> waiting_;  // those in ready_
  absl::flat_hash_set<api::NamespacedName> running_;
  absl::flat_hash_set<api::NamespacedName> dirty_;  // added while running
  absl::flat_hash_map<api::NamespacedName, host::SteadyTime> delayed_;
  std::set<std::pair<host::SteadyTime, api::NamespacedName>> by_due_;
  absl::flat_hash_map<api::NamespacedName, int> failures_;
  double tokens_;
  host::SteadyTime tokens_at_;
};

}  // namespace outrigger::controller::runtime
