// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>

#include <functional>
#include <string>

#include "operator/kube/api.h"

namespace outrigger::controller::kube {

// Turns the bytes of a watch answer, split anywhere, into events: one JSON object per line. Pure;
// HttpApi feeds it on its own thread.
//
// The first error is final and comes after the events before it: OUT_OF_RANGE for an ERROR event
// with code 410, other ERROR events as in ToStatus(); UNAVAILABLE, naming the resource, for a line
// that is no event or is longer than `max_line_bytes`. A watch that broke off is resumed from the
// last version, so an event that could not be read is asked for again and never skipped.
class WatchFramer {
 public:
  static constexpr size_t kMaxLineBytes = 8 << 20;  // etcd refuses objects above 1.5 MiB

  explicit WatchFramer(std::string resource, size_t max_line_bytes = kMaxLineBytes)
      : resource_(std::move(resource)), max_line_bytes_(max_line_bytes) {}

  // Calls `on_event` for each event that these bytes complete.
  absl::Status Feed(absl::string_view bytes, const std::function<void(WatchEvent)>& on_event);
  // The stream has ended: UNAVAILABLE when it ended inside a line.
  absl::Status Finish() const;

 private:
  absl::Status OnLine(absl::string_view line, const std::function<void(WatchEvent)>& on_event);
  absl::Status Malformed(absl::string_view what, absl::string_view line) const;

  const std::string resource_;
  const size_t max_line_bytes_;
  std::string partial_;  // the beginning of a line whose end has not come
  absl::Status error_;
};

// The metav1.Status in `value` (an error answer or the object of an ERROR event); nullopt when it
// is none.
std::optional<ApiError> ParseStatusObject(const boost::json::value& value);

// A value of any size and of the depth that Kubernetes objects have (managedFields nest deeper than
// Boost.JSON's default). INVALID_ARGUMENT says what is wrong and where.
absl::StatusOr<boost::json::value> ParseJson(absl::string_view text);

}  // namespace outrigger::controller::kube
