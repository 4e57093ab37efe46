// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

namespace outrigger::host {

// At most 3 reconciles wait for one plugin at a time, so that the objects of a hung plugin never
// hold all reconcile workers. Whoever gets no permit puts its key back into the queue.
//
// Never blocks; use from one strand; permits must not outlive it. Source: design.md section 5,
// bulkheads.
class ReconcilePermits {
 public:
  explicit ReconcilePermits(int limit = 3) : limit_(limit) {}

  // Gives itself back when it goes.
  class Permit {
   public:
    Permit(Permit&& other) noexcept
        : owner_(std::exchange(other.owner_, nullptr)), plugin_(std::move(other.plugin_)) {}
    Permit& operator=(Permit&&) = delete;
    ~Permit() {
      if (owner_ != nullptr) owner_->Release(plugin_);
    }

   private:
    friend class ReconcilePermits;
    Permit(ReconcilePermits* owner, std::string plugin)
        : owner_(owner), plugin_(std::move(plugin)) {}
    ReconcilePermits* owner_;
    std::string plugin_;
  };

  // nullopt: as many as may are at it.
  std::optional<Permit> TryAcquireReconcile(const std::string& plugin) {
    int& held = held_[plugin];
    if (held >= limit_) return std::nullopt;
    ++held;
    return Permit(this, plugin);
  }

 private:
  void Release(const std::string& plugin) {
    auto it = held_.find(plugin);
    if (--it->second == 0) held_.erase(it);
  }

  const int limit_;
  std::map<std::string, int> held_;
};

}  // namespace outrigger::host
