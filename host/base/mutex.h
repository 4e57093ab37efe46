// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/base/thread_annotations.h>

#include <condition_variable>
#include <mutex>

namespace outrigger::host {

// std::mutex with clang's thread-safety annotations. Not absl::Mutex: Debian's Abseil is not built
// for ThreadSanitizer, which then sees a race on everything that an absl::Mutex guards. Never held
// across a co_await.
class ABSL_LOCKABLE Mutex {
 public:
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }

 private:
  friend class MutexLock;
  std::mutex mutex_;
};

class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : lock_(mutex->mutex_) {}
  ~MutexLock() ABSL_UNLOCK_FUNCTION() = default;
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  // Waits on `condition` while the lock is held; for plain threads only, never in a coroutine.
  template <typename Predicate>
  void Wait(std::condition_variable& condition, Predicate predicate) {
    condition.wait(lock_, predicate);
  }
  template <typename Duration, typename Predicate>
  bool WaitFor(std::condition_variable& condition, Duration duration, Predicate predicate) {
    return condition.wait_for(lock_, duration, predicate);
  }

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace outrigger::host
