// SPDX-License-Identifier: Apache-2.0
// What the operator asked the API server for, as that server logged it.
#pragma once

#include <absl/strings/string_view.h>
#include <absl/time/time.h>

#include <ios>
#include <string>
#include <vector>

#include "tests/cluster/control_plane.h"

namespace outrigger::tests {

// One request that the API server logged.
struct AuditedRequest {
  std::string verb;
  std::string resource;  // "scaledobjects/status"
  std::string namespace_name;
  std::string name;
  std::string user_agent;
  int code = 0;
  absl::Time at;
};
// What the operator's service account asks for from now on. Reads on where it last stopped, for the
// log of a whole test program is long.
class OperatorAudit {
 public:
  explicit OperatorAudit(const ControlPlane& plane);
  // What came since the last call.
  std::vector<AuditedRequest> Take();

 private:
  const std::string file_;
  std::streamoff read_ = 0;
  std::string partial_line_;
};
// What `user` ("system:serviceaccount:<namespace>:<name>") asked for since `since`.
std::vector<AuditedRequest> RequestsOf(const ControlPlane& plane, absl::string_view user,
                                       absl::Time since);
// The same of the operator's service account.
std::vector<AuditedRequest> OperatorRequests(const ControlPlane& plane, absl::Time since);
// Those that write: create, update, patch, delete; less Leases and SubjectAccessReviews.
std::vector<AuditedRequest> WritesOf(std::vector<AuditedRequest> requests);
std::vector<AuditedRequest> OperatorWrites(const ControlPlane& plane, absl::Time since);
std::string Print(const std::vector<AuditedRequest>& requests);

}  // namespace outrigger::tests
