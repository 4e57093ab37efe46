// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/strings/string_view.h>
#include <absl/time/time.h>

#include <boost/json/value.hpp>
#include <cstdint>
#include <string>

namespace outrigger::controller::kube {

// spec of a coordination.k8s.io/v1 Lease. Pure.
struct LeaseRecord {
  std::string holder;  // "" = nobody: never taken, or released
  absl::Duration duration;
  absl::Time acquired;
  absl::Time renewed;
  int64_t transitions = 0;  // changes of the holder

  friend bool operator==(const LeaseRecord&, const LeaseRecord&) = default;
};

// Reads what is there: a Lease that somebody else wrote in his own way is still a Lease, and what
// is missing or malformed has its zero value.
LeaseRecord ParseLease(const boost::json::value& lease);

// A whole new Lease.
boost::json::value MakeLease(absl::string_view namespace_name, absl::string_view name,
                             const LeaseRecord& record);
// `lease`, whose metadata stays as it is, resourceVersion included, with this spec.
boost::json::value WithRecord(boost::json::value lease, const LeaseRecord& record);

}  // namespace outrigger::controller::kube
