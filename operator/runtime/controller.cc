// SPDX-License-Identifier: Apache-2.0
#include "operator/runtime/controller.h"

#include <boost/asio/this_coro.hpp>
#include <string>
#include <utility>

#include "host/base/status.h"
#include "host/base/task_group.h"
#include "operator/kube/api.h"

namespace outrigger::controller::runtime {

using api::NamespacedName;

Controller::Controller(host::Clock& clock, WorkQueue& queue, Reconciler reconciler,
                       host::Logger log, Options options, Observer observer)
    : clock_(clock),
      queue_(queue),
      reconciler_(std::move(reconciler)),
      log_(std::move(log)),
      options_(options),
      observer_(std::move(observer)) {}

host::Task<void> Controller::Run() {
  const host::Executor executor = co_await boost::asio::this_coro::executor;
  host::TaskGroup workers(clock_, executor);
  for (int i = 0; i < options_.workers; ++i) workers.Spawn(Worker());
  co_await workers.Join();
}

host::Task<void> Controller::Worker() {
  while (true) {
    std::optional<NamespacedName> key = co_await queue_.Get();
    if (!key) co_return;
    co_await Process(*std::move(key));
  }
}

host::Task<void> Controller::Process(NamespacedName key) {
  const host::SteadyTime start = clock_.SteadyNow();
  const host::Deadline deadline = host::Deadline::After(clock_, options_.reconcile_timeout);
  absl::StatusOr<Result> result = co_await reconciler_(key, deadline);
  absl::string_view outcome;
  Requeue(key, result, outcome);
  queue_.Done(key);
  if (observer_) observer_(outcome, clock_.SteadyNow() - start, result.status());
}

void Controller::Requeue(const NamespacedName& key, const absl::StatusOr<Result>& result,
                         absl::string_view& outcome) {
  if (result.ok() || absl::IsNotFound(result.status())) {
    queue_.Forget(key);
    outcome = "success";
    if (result.ok() && result->requeue_after) {
      queue_.AddAfter(key, *result->requeue_after);
      outcome = "requeue_after";
    }
    return;
  }
  const absl::Status& status = result.status();
  outcome = "error";
  if (absl::IsInvalidArgument(status)) {
    queue_.Forget(key);
    log_.Warning("reconcile: waits for a change",
                 {{"object", key.ToString()}, {"error", host::Describe(status)}});
  } else if (absl::IsResourceExhausted(status)) {
    const std::optional<kube::ApiError> error = kube::GetApiError(status);
    const absl::Duration wait =
        error && error->retry_after ? *error->retry_after : options_.quota_retry;
    queue_.Forget(key);
    queue_.AddAfter(key, wait);
    outcome = "requeue_after";
    log_.Warning("reconcile: refused for now", {{"object", key.ToString()},
                                                {"error", host::Describe(status)},
                                                {"retryAfter", absl::FormatDuration(wait)}});
  } else {
    queue_.AddAfterFailure(key);
    if (absl::IsAborted(status)) {
      outcome = "requeue";
      log_.Debug("reconcile: conflict",
                 {{"object", key.ToString()}, {"error", host::Describe(status)}});
    } else {
      log_.Error("reconcile failed",
                 {{"object", key.ToString()}, {"error", host::Describe(status)}});
    }
  }
}

}  // namespace outrigger::controller::runtime
