// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <memory>
#include <string>

#include "host/base/deadline.h"
#include "host/base/event.h"
#include "operator/adapter/authenticator.h"
#include "operator/kube/api.h"

namespace outrigger::controller::adapter {

// Asks the API server whether a user may read a metric: first whether the user may list all of the
// group (the binding of the stock HPA controller allows it; one review per user and 10 s), and only
// if not, for the exact namespace and metric. Equal questions at one time become one. Never open on
// failure. Members of system:masters may all.
//
// Use on the core strand; outlive its questions. OK; PERMISSION_DENIED naming user, verb and
// resource: this user may not; DEADLINE_EXCEEDED, UNAVAILABLE: the API server did not answer;
// INTERNAL: it refused the question, most likely because we may not create reviews. Source:
// design.md section 5.
class Authorizer {
 public:
  struct Options {
    absl::Duration ttl = absl::Seconds(10);
    absl::Duration review_timeout = absl::Seconds(5);
    size_t most_entries = 4096;
  };
  Authorizer(host::Clock& clock, kube::Api& api, Options options)
      : clock_(clock), api_(api), options_(options) {}

  host::Task<absl::Status> Authorize(UserInfo user, std::string namespace_name, std::string metric,
                                     host::Deadline deadline);
  // Answers that are kept; at most Options::most_entries.
  size_t remembered() const { return answers_.size(); }

 private:
  // One question. While `asking`, all who ask the same wait for `answered`.
  struct Answer {
    bool asking = false;
    absl::StatusOr<bool> allowed = false;  // once answered
    host::SteadyTime until = host::SteadyTime::InfinitePast();
    host::Event answered;
  };
  using AnswerPtr = std::shared_ptr<Answer>;

  // May `user` list this metric of this namespace; "" for both: all of the group.
  host::Task<absl::StatusOr<bool>> Ask(UserInfo user, std::string namespace_name,
                                       std::string metric, host::Deadline deadline);
  host::Task<absl::StatusOr<bool>> Review(UserInfo user, std::string namespace_name,
                                          std::string metric, host::Deadline deadline);
  host::Task<absl::StatusOr<bool>> Wait(AnswerPtr answer, host::Deadline deadline);
  void MakeRoom();

  host::Clock& clock_;
  kube::Api& api_;
  const Options options_;
  absl::flat_hash_map<std::string, AnswerPtr> answers_;
};

}  // namespace outrigger::controller::adapter
