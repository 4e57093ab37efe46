// SPDX-License-Identifier: Apache-2.0
#include "operator/runtime/work_queue.h"

#include <algorithm>
#include <utility>

namespace outrigger::controller::runtime {

using api::NamespacedName;
using host::SteadyTime;

WorkQueue::WorkQueue(host::Clock& clock, Options options, Observer observer)
    : clock_(clock),
      options_(options),
      observer_(std::move(observer)),
      tokens_(options.retry_burst),
      tokens_at_(clock.SteadyNow()) {}

void WorkQueue::TellDepth() {
  if (observer_.on_depth) observer_.on_depth(ready_.size());
}

void WorkQueue::Push(const NamespacedName& key) {
  if (shut_down_) return;
  if (running_.contains(key)) {
    dirty_.insert(key);
    return;
  }
  if (!waiting_.insert(key).second) return;
  ready_.push_back({key, clock_.SteadyNow()});
  TellDepth();
  changed_.Notify();
}

void WorkQueue::Add(const NamespacedName& key) {
  if (observer_.on_added) observer_.on_added();
  Push(key);
}

void WorkQueue::DropDelayed(const NamespacedName& key) {
  auto it = delayed_.find(key);
  if (it == delayed_.end()) return;
  by_due_.erase({it->second, key});
  delayed_.erase(it);
}

void WorkQueue::AddAfter(const NamespacedName& key, absl::Duration delay) {
  if (shut_down_) return;
  if (delay <= absl::ZeroDuration()) return Add(key);
  const SteadyTime due = clock_.SteadyNow() + delay;
  if (auto it = delayed_.find(key); it != delayed_.end() && it->second <= due) return;
  DropDelayed(key);
  delayed_.emplace(key, due);
  by_due_.insert({due, key});
  changed_.Notify();
}

absl::Duration WorkQueue::ReserveRetry() {
  const SteadyTime now = clock_.SteadyNow();
  tokens_ = std::min(options_.retry_burst, tokens_ + absl::ToDoubleSeconds(now - tokens_at_) *
                                                         options_.retries_per_second);
  tokens_at_ = now;
  tokens_ -= 1;
  return tokens_ >= 0 ? absl::ZeroDuration()
                      : absl::Seconds(-tokens_ / options_.retries_per_second);
}

void WorkQueue::AddAfterFailure(const NamespacedName& key) {
  if (observer_.on_retry) observer_.on_retry();
  const int failures = failures_[key]++;
  absl::Duration backoff = options_.longest_backoff;
  if (failures < 20) backoff = std::min(backoff, options_.first_backoff * (1 << failures));
  AddAfter(key, std::max(backoff, ReserveRetry()));
}

void WorkQueue::Forget(const NamespacedName& key) {
  failures_.erase(key);
  DropDelayed(key);
}

void WorkQueue::PromoteDue() {
  const SteadyTime now = clock_.SteadyNow();
  while (!by_due_.empty() && by_due_.begin()->first <= now) {
    const NamespacedName key = by_due_.begin()->second;
    DropDelayed(key);
    Push(key);
  }
}

SteadyTime WorkQueue::NextDue() const {
  return by_due_.empty() ? SteadyTime::InfiniteFuture() : by_due_.begin()->first;
}

host::Task<std::optional<NamespacedName>> WorkQueue::Get() {
  while (true) {
    if (shut_down_) {
      changed_.Notify();  // hand on: every waiting worker must hear of it
      co_return std::nullopt;
    }
    PromoteDue();
    if (!ready_.empty()) break;
    co_await changed_.WaitUntil(clock_, NextDue());
  }
  Ready next = std::move(ready_.front());
  ready_.pop_front();
  waiting_.erase(next.key);
  running_.insert(next.key);
  TellDepth();
  if (observer_.on_taken) observer_.on_taken(clock_.SteadyNow() - next.since);
  // Whoever watched for due keys has work now; if another worker is idle, it watches on.
  if (!ready_.empty() || !by_due_.empty()) changed_.Notify();
  co_return std::move(next.key);
}

void WorkQueue::Done(const NamespacedName& key) {
  running_.erase(key);
  if (dirty_.erase(key) > 0) Push(key);
}

void WorkQueue::ShutDown() {
  shut_down_ = true;
  ready_.clear();
  waiting_.clear();
  dirty_.clear();
  delayed_.clear();
  by_due_.clear();
  TellDepth();
  changed_.NotifyAll();
}

}  // namespace outrigger::controller::runtime
