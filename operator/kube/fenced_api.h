// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>

#include <atomic>
#include <functional>
#include <string>

#include "host/base/clock.h"
#include "host/base/event.h"
#include "operator/kube/api.h"

namespace outrigger::controller::kube {

// An Api whose writes are the leader's only: each ends before the lease does, and none is sent
// after. Reads pass, and so do reviews (SubjectAccessReview and the like), which are questions in
// the form of a create.
//
// FAILED_PRECONDITION (IsNotLeader() tells it from others): not leading, or less than
// kShortestWrite of the lease is left; nothing was sent. Else as the Api beneath it; a deadline
// beyond the end of the lease is brought forward to it. As thread-safe as the Api beneath it and
// `writes_end`; both must outlive it.
// Source: design.md section 5, StatusWriter.
class FencedApi : public Api {
 public:
  // With less than this left a write would mostly be cut off by its deadline, done or not.
  static constexpr absl::Duration kShortestWrite = absl::Seconds(1);

  // `writes_end`: LeaderElector::WritesEnd().
  FencedApi(host::Clock& clock, Api& api, std::function<host::SteadyTime()> writes_end)
      : clock_(clock), api_(api), writes_end_(std::move(writes_end)) {}

  host::Task<absl::StatusOr<boost::json::value>> Get(Resource resource, std::string namespace_name,
                                                     std::string name, std::string subresource,
                                                     host::Deadline deadline) override;
  host::Task<absl::StatusOr<boost::json::value>> GetMetadata(Resource resource,
                                                             std::string namespace_name,
                                                             std::string name,
                                                             host::Deadline deadline) override;
  host::Task<absl::StatusOr<ObjectList>> List(Resource resource, std::string namespace_name,
                                              ListOptions options,
                                              host::Deadline deadline) override;
  host::Task<absl::StatusOr<boost::json::value>> Create(Resource resource,
                                                        std::string namespace_name,
                                                        boost::json::value object,
                                                        WriteOptions options,
                                                        host::Deadline deadline) override;
  host::Task<absl::StatusOr<boost::json::value>> Update(Resource resource,
                                                        std::string namespace_name,
                                                        std::string name, boost::json::value object,
                                                        WriteOptions options,
                                                        host::Deadline deadline) override;
  host::Task<absl::StatusOr<boost::json::value>> Patch(Resource resource,
                                                       std::string namespace_name, std::string name,
                                                       PatchType type, boost::json::value patch,
                                                       WriteOptions options,
                                                       host::Deadline deadline) override;
  host::Task<absl::Status> Delete(Resource resource, std::string namespace_name, std::string name,
                                  DeleteOptions options, host::Deadline deadline) override;
  host::Task<absl::StatusOr<boost::json::value>> Discover(std::string group, std::string version,
                                                          host::Deadline deadline) override;
  host::Task<absl::Status> Watch(Resource resource, std::string namespace_name,
                                 WatchOptions options, std::function<void(WatchEvent)> on_event,
                                 host::Deadline stop) override;

  // Waits until no write is under way; false: some still are at the deadline. For whoever closes
  // the fence and wants to be sure that nothing comes after. One waiter at a time.
  host::Task<bool> WaitForWrites(host::Deadline deadline);

 private:
  class UnderWay;

  // Brings `deadline` forward, or says why the write may not be sent.
  absl::Status Fence(absl::string_view verb, const Resource& resource, host::Deadline& deadline);

  host::Clock& clock_;
  Api& api_;
  const std::function<host::SteadyTime()> writes_end_;
  std::atomic<int> under_way_ = 0;
  host::Event ended_;
};

// Whether FencedApi refused: the work is another's now, and there is nothing to retry.
bool IsNotLeader(const absl::Status& status);

}  // namespace outrigger::controller::kube
