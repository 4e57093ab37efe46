// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>

#include <atomic>
#include <boost/json/value.hpp>
#include <functional>
#include <string>
#include <vector>

#include "host/base/mutex.h"
#include "operator/kube/api.h"

namespace outrigger::controller::adapter {

// What the adapter asks of an API server, scripted: the ConfigMap about authentication, and
// SubjectAccessReviews. Everything else is UNIMPLEMENTED. Thread-safe.
class ReviewApi : public kube::Api {
 public:
  // The answer to a review, by its spec.
  using Judge = std::function<absl::StatusOr<bool>(const boost::json::value& spec)>;

  void SetJudge(Judge judge);
  void SetConfigMap(absl::StatusOr<boost::json::value> config_map);
  // Reviews asked from now on are answered once Release() was called.
  void Hold();
  void Release();

  // The specs of all reviews, in order, as JSON text.
  std::vector<std::string> reviews() const;
  int config_map_reads() const { return config_map_reads_; }

  host::Task<absl::StatusOr<boost::json::value>> Get(kube::Resource resource,
                                                     std::string namespace_name, std::string name,
                                                     std::string subresource,
                                                     host::Deadline deadline) override;
  host::Task<absl::StatusOr<boost::json::value>> Create(kube::Resource resource,
                                                        std::string namespace_name,
                                                        boost::json::value object,
                                                        kube::WriteOptions options,
                                                        host::Deadline deadline) override;
  host::Task<absl::StatusOr<boost::json::value>> GetMetadata(kube::Resource, std::string,
                                                             std::string, host::Deadline) override;
  host::Task<absl::StatusOr<boost::json::value>> Discover(std::string, std::string,
                                                          host::Deadline) override;
  host::Task<absl::StatusOr<kube::ObjectList>> List(kube::Resource, std::string, kube::ListOptions,
                                                    host::Deadline) override;
  host::Task<absl::StatusOr<boost::json::value>> Update(kube::Resource, std::string, std::string,
                                                        boost::json::value, kube::WriteOptions,
                                                        host::Deadline) override;
  host::Task<absl::StatusOr<boost::json::value>> Patch(kube::Resource, std::string, std::string,
                                                       kube::PatchType, boost::json::value,
                                                       kube::WriteOptions, host::Deadline) override;
  host::Task<absl::Status> Delete(kube::Resource, std::string, std::string, kube::DeleteOptions,
                                  host::Deadline) override;
  host::Task<absl::Status> Watch(kube::Resource, std::string, kube::WatchOptions,
                                 std::function<void(kube::WatchEvent)>, host::Deadline) override;

 private:
  Judge judge() const;

  mutable host::Mutex mutex_;
  Judge judge_ ABSL_GUARDED_BY(mutex_);
  absl::StatusOr<boost::json::value> config_map_ ABSL_GUARDED_BY(mutex_) =
      absl::NotFoundError("no ConfigMap");
  std::vector<std::string> reviews_ ABSL_GUARDED_BY(mutex_);
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::function<void()>> waiting_ ABSL_GUARDED_BY(mutex_);
  std::atomic<int> config_map_reads_ = 0;
};

}  // namespace outrigger::controller::adapter
