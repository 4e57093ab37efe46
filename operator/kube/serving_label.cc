// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/serving_label.h"

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <utility>

#include "host/base/status.h"

namespace outrigger::controller::kube {
namespace {

namespace json = boost::json;

constexpr absl::Duration kTimeout = absl::Seconds(2);            // of one try
constexpr absl::Duration kPause = absl::Seconds(1);              // before the next
constexpr absl::Duration kShortPause = absl::Milliseconds(100);  // when we are about to end

}  // namespace

host::Task<absl::Status> ServingLabel::Patch(bool serving, host::Deadline deadline) {
  json::object labels;
  labels[kName] = serving ? json::value("true") : json::value(nullptr);
  json::object metadata;
  metadata["labels"] = std::move(labels);
  json::object patch;
  patch["metadata"] = std::move(metadata);
  const absl::StatusOr<json::value> patched = co_await api_.Patch(
      Pods(), namespace_, pod_, PatchType::kMerge, std::move(patch), {}, deadline);
  co_return patched.status();
}

host::Task<void> ServingLabel::Put() {
  if (pod_.empty()) co_return;
  putting_ = true;
  bool warned = false;
  while (!removed_) {
    const absl::Status put = co_await Patch(true, host::Deadline::After(clock_, kTimeout));
    if (put.ok()) break;
    if (!warned) {
      log_.Warning("the Pod cannot be labelled as serving: no metric read will reach it",
                   {{"label", kName}, {"error", host::Describe(put)}});
    }
    warned = true;
    if (!removed_) co_await removing_.WaitUntil(clock_, clock_.SteadyNow() + kPause);
  }
  putting_ = false;
  put_ended_.NotifyAll();
}

host::Task<void> ServingLabel::Remove(host::Deadline deadline) {
  removed_ = true;
  removing_.NotifyAll();
  if (pod_.empty()) co_return;
  // One that is under way might arrive after ours.
  while (putting_ && !deadline.Expired(clock_)) {
    co_await put_ended_.WaitUntil(clock_, deadline.time());
  }
  absl::Status removed = absl::DeadlineExceededError("not tried");
  while (!removed.ok() && !absl::IsNotFound(removed) && !deadline.Expired(clock_)) {
    removed = co_await Patch(false, deadline);
    if (!removed.ok()) co_await clock_.Sleep(kShortPause);
  }
  if (removed.ok() || absl::IsNotFound(removed)) co_return;
  log_.Warning("the Pod cannot be labelled as no longer serving: reads may fail when it ends",
               {{"label", kName}, {"error", host::Describe(removed)}});
}

}  // namespace outrigger::controller::kube
