// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/serving_label.h"

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <utility>

#include "host/base/status.h"

namespace outrigger::controller::kube {
namespace {

namespace json = boost::json;

constexpr absl::Duration kTimeout = absl::Seconds(2);            // of one try
constexpr absl::Duration kFirstPause = absl::Milliseconds(500);  // before the next; doubles
constexpr absl::Duration kLongestPause = absl::Seconds(30);
// When we are about to end.
constexpr absl::Duration kLastTimeout = absl::Seconds(1);
constexpr absl::Duration kLastPause = absl::Milliseconds(100);

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
  // A Pod that is gone has no label.
  if (!serving && absl::IsNotFound(patched.status())) co_return absl::OkStatus();
  co_return patched.status();
}

host::Task<void> ServingLabel::Run() {
  absl::Duration backoff = kFirstPause;
  bool warned = false;
  while (!stopped_ && !pod_.empty()) {
    const bool wanted = wanted_;
    if (known_ == wanted) {
      co_await changed_.Wait(clock_);
      continue;
    }
    known_.reset();  // from now on the server may have taken it, whatever comes back
    const absl::Status patched =
        co_await Patch(wanted, host::Deadline::After(clock_, removing_ ? kLastTimeout : kTimeout));
    if (patched.ok()) {
      known_ = wanted;
      backoff = kFirstPause;
      warned = false;
      settled_.NotifyAll();
      continue;
    }
    if (!std::exchange(warned, true)) {
      log_.Warning(wanted ? "the Pod cannot be labelled as serving: no metric read will reach it"
                          : "the Pod cannot be labelled as not serving: reads may come and fail",
                   {{"label", kName}, {"error", host::Describe(patched)}});
    }
    if (wanted != wanted_ || stopped_) continue;
    const absl::Duration pause = removing_ ? kLastPause : random_.Jitter(backoff);
    backoff = std::min(2 * backoff, kLongestPause);
    co_await changed_.WaitUntil(clock_, clock_.SteadyNow() + pause);
  }
}

void ServingLabel::Put() {
  wanted_ = !removing_;
  changed_.NotifyAll();
}

host::Task<void> ServingLabel::Remove(host::Deadline deadline) {
  wanted_ = false;
  removing_ = true;
  changed_.NotifyAll();
  while (!pod_.empty() && known_ != false && !deadline.Expired(clock_)) {
    co_await settled_.WaitUntil(clock_, deadline.time());
  }
  Stop();
}

void ServingLabel::Stop() {
  stopped_ = true;
  changed_.NotifyAll();
}

}  // namespace outrigger::controller::kube
