// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "operator/kube/api.h"

namespace outrigger::controller {

// An Api that passes every call on; a test overrides what it wants to change.
class ForwardingApi : public kube::Api {
 public:
  explicit ForwardingApi(kube::Api& api) : api_(api) {}

  host::Task<absl::StatusOr<boost::json::value>> Get(kube::Resource resource,
                                                     std::string namespace_name, std::string name,
                                                     std::string subresource,
                                                     host::Deadline deadline) override {
    return api_.Get(std::move(resource), std::move(namespace_name), std::move(name),
                    std::move(subresource), deadline);
  }
  host::Task<absl::StatusOr<boost::json::value>> GetMetadata(kube::Resource resource,
                                                             std::string namespace_name,
                                                             std::string name,
                                                             host::Deadline deadline) override {
    return api_.GetMetadata(std::move(resource), std::move(namespace_name), std::move(name),
                            deadline);
  }
  host::Task<absl::StatusOr<kube::ObjectList>> List(kube::Resource resource,
                                                    std::string namespace_name,
                                                    kube::ListOptions options,
                                                    host::Deadline deadline) override {
    return api_.List(std::move(resource), std::move(namespace_name), std::move(options), deadline);
  }
  host::Task<absl::StatusOr<boost::json::value>> Create(kube::Resource resource,
                                                        std::string namespace_name,
                                                        boost::json::value object,
                                                        kube::WriteOptions options,
                                                        host::Deadline deadline) override {
    return api_.Create(std::move(resource), std::move(namespace_name), std::move(object),
                       std::move(options), deadline);
  }
  host::Task<absl::StatusOr<boost::json::value>> Update(kube::Resource resource,
                                                        std::string namespace_name,
                                                        std::string name, boost::json::value object,
                                                        kube::WriteOptions options,
                                                        host::Deadline deadline) override {
    return api_.Update(std::move(resource), std::move(namespace_name), std::move(name),
                       std::move(object), std::move(options), deadline);
  }
  host::Task<absl::StatusOr<boost::json::value>> Patch(
      kube::Resource resource, std::string namespace_name, std::string name, kube::PatchType type,
      boost::json::value patch, kube::WriteOptions options, host::Deadline deadline) override {
    return api_.Patch(std::move(resource), std::move(namespace_name), std::move(name), type,
                      std::move(patch), std::move(options), deadline);
  }
  host::Task<absl::Status> Delete(kube::Resource resource, std::string namespace_name,
                                  std::string name, kube::DeleteOptions options,
                                  host::Deadline deadline) override {
    return api_.Delete(std::move(resource), std::move(namespace_name), std::move(name),
                       std::move(options), deadline);
  }
  host::Task<absl::StatusOr<boost::json::value>> Discover(std::string group, std::string version,
                                                          host::Deadline deadline) override {
    return api_.Discover(std::move(group), std::move(version), deadline);
  }
  host::Task<absl::Status> Watch(kube::Resource resource, std::string namespace_name,
                                 kube::WatchOptions options,
                                 std::function<void(kube::WatchEvent)> on_event,
                                 host::Deadline stop) override {
    return api_.Watch(std::move(resource), std::move(namespace_name), std::move(options),
                      std::move(on_event), stop);
  }

 protected:
  kube::Api& api_;
};

}  // namespace outrigger::controller
