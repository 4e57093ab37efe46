// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <functional>
#include <optional>

#include "host/base/deadline.h"
#include "host/base/logging.h"
#include "operator/api/namespaced_name.h"
#include "operator/runtime/work_queue.h"

namespace outrigger::controller::runtime {

// What a reconcile that did not fail says of its key.
struct Result {
  std::optional<absl::Duration> requeue_after;

  static Result Done() { return {}; }
  static Result After(absl::Duration d) { return {.requeue_after = d}; }
};

// Idempotent: a second run without a change makes no write. Runs on the strand, awaits, never
// blocks, ends by its deadline.
using Reconciler =
    std::function<host::Task<absl::StatusOr<Result>>(api::NamespacedName, host::Deadline)>;

// Runs a Reconciler with at most `workers` keys at once. Objects are independent: one that waits
// holds up no other but by its worker. What an error means for the queue is decided here, by its
// code:
//
//   NOT_FOUND            the object is gone: done
//   INVALID_ARGUMENT     only a change can heal it: done, the reconciler has said so in the status
//   RESOURCE_EXHAUSTED   again after the time that the server gave, else 30 s
//   ABORTED              conflict: again, soon (100 ms; the reads come from a newer cache)
//   all others           backoff
//
// Source: requirements.md R3, R18, R19, R22; style.md section 5.
class Controller {
 public:
  struct Options {
    int workers = 10;
    absl::Duration reconcile_timeout = absl::Seconds(60);
    absl::Duration quota_retry = absl::Seconds(30);
  };
  // `outcome` is "success", "requeue_after", "requeue" or "error".
  using Observer = std::function<void(absl::string_view outcome, absl::Duration took,
                                      const absl::Status& status)>;

  Controller(host::Clock& clock, WorkQueue& queue, Reconciler reconciler, host::Logger log,
             Options options, Observer observer = {});

  // Starts the workers on the caller's executor; returns when the queue was shut down and all of
  // them ended.
  host::Task<void> Run();

 private:
  host::Task<void> Worker();
  host::Task<void> Process(api::NamespacedName key);
  void Requeue(const api::NamespacedName& key, const absl::StatusOr<Result>& result,
               absl::string_view& outcome);

  host::Clock& clock_;
  WorkQueue& queue_;
  const Reconciler reconciler_;
  const host::Logger log_;
  const Options options_;
  const Observer observer_;
};

}  // namespace outrigger::controller::runtime
