// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/fenced_api.h"

#include <absl/strings/cord.h>
#include <absl/strings/str_cat.h>

#include <utility>

#include "host/base/status.h"

namespace outrigger::controller::kube {
namespace {

namespace json = boost::json;

constexpr absl::string_view kNotLeaderUrl = "outrigger.dev/kube.NotLeader";

bool IsReview(const Resource& resource) {
  return resource.group == "authorization.k8s.io" || resource.group == "authentication.k8s.io";
}

}  // namespace

bool IsNotLeader(const absl::Status& status) {
  return status.GetPayload(kNotLeaderUrl).has_value();
}

// Counts a write from before the fence is asked, so that whoever has closed it sees each that
// passed.
class FencedApi::UnderWay {
 public:
  explicit UnderWay(FencedApi& api) : api_(api) { ++api_.under_way_; }
  ~UnderWay() {
    if (--api_.under_way_ == 0) api_.ended_.Notify();
  }
  UnderWay(const UnderWay&) = delete;
  UnderWay& operator=(const UnderWay&) = delete;

 private:
  FencedApi& api_;
};

host::Task<bool> FencedApi::WaitForWrites(host::Deadline deadline) {
  while (under_way_ > 0 && !deadline.Expired(clock_)) {
    co_await ended_.WaitUntil(clock_, deadline.time());
  }
  co_return under_way_ == 0;
}

absl::Status FencedApi::Fence(absl::string_view verb, const Resource& resource,
                              host::Deadline& deadline) {
  if (IsReview(resource)) return absl::OkStatus();
  const host::SteadyTime end = writes_end_();
  if (clock_.SteadyNow() + kShortestWrite <= end) {
    deadline = deadline.Min(host::Deadline::At(end));
    return absl::OkStatus();
  }
  absl::Status refused = absl::FailedPreconditionError(absl::StrCat(
      verb, " ", resource.ToString(), ": not sent: ",
      end == host::SteadyTime::InfinitePast() ? "not the leader" : "the lease is about to end"));
  refused.SetPayload(kNotLeaderUrl, absl::Cord());
  return refused;
}

host::Task<absl::StatusOr<json::value>> FencedApi::Get(Resource resource,
                                                       std::string namespace_name, std::string name,
                                                       std::string subresource,
                                                       host::Deadline deadline) {
  return api_.Get(std::move(resource), std::move(namespace_name), std::move(name),
                  std::move(subresource), deadline);
}

host::Task<absl::StatusOr<json::value>> FencedApi::GetMetadata(Resource resource,
                                                               std::string namespace_name,
                                                               std::string name,
                                                               host::Deadline deadline) {
  return api_.GetMetadata(std::move(resource), std::move(namespace_name), std::move(name),
                          deadline);
}

host::Task<absl::StatusOr<ObjectList>> FencedApi::List(Resource resource,
                                                       std::string namespace_name,
                                                       ListOptions options,
                                                       host::Deadline deadline) {
  return api_.List(std::move(resource), std::move(namespace_name), std::move(options), deadline);
}

host::Task<absl::StatusOr<json::value>> FencedApi::Discover(std::string group, std::string version,
                                                            host::Deadline deadline) {
  return api_.Discover(std::move(group), std::move(version), deadline);
}

host::Task<absl::Status> FencedApi::Watch(Resource resource, std::string namespace_name,
                                          WatchOptions options,
                                          std::function<void(WatchEvent)> on_event,
                                          host::Deadline stop) {
  return api_.Watch(std::move(resource), std::move(namespace_name), std::move(options),
                    std::move(on_event), stop);
}

// The writes are coroutines of their own so that the fence is asked when the call is awaited, not
// when it is made.
host::Task<absl::StatusOr<json::value>> FencedApi::Create(Resource resource,
                                                          std::string namespace_name,
                                                          json::value object, WriteOptions options,
                                                          host::Deadline deadline) {
  const UnderWay under_way(*this);
  CO_RETURN_IF_ERROR(Fence("create", resource, deadline));
  absl::StatusOr<json::value> made =
      co_await api_.Create(std::move(resource), std::move(namespace_name), std::move(object),
                           std::move(options), deadline);
  co_return made;
}

host::Task<absl::StatusOr<json::value>> FencedApi::Update(Resource resource,
                                                          std::string namespace_name,
                                                          std::string name, json::value object,
                                                          WriteOptions options,
                                                          host::Deadline deadline) {
  const UnderWay under_way(*this);
  CO_RETURN_IF_ERROR(Fence("update", resource, deadline));
  absl::StatusOr<json::value> updated =
      co_await api_.Update(std::move(resource), std::move(namespace_name), std::move(name),
                           std::move(object), std::move(options), deadline);
  co_return updated;
}

host::Task<absl::StatusOr<json::value>> FencedApi::Patch(Resource resource,
                                                         std::string namespace_name,
                                                         std::string name, PatchType type,
                                                         json::value patch, WriteOptions options,
                                                         host::Deadline deadline) {
  const UnderWay under_way(*this);
  CO_RETURN_IF_ERROR(Fence("patch", resource, deadline));
  absl::StatusOr<json::value> patched =
      co_await api_.Patch(std::move(resource), std::move(namespace_name), std::move(name), type,
                          std::move(patch), std::move(options), deadline);
  co_return patched;
}

host::Task<absl::Status> FencedApi::Delete(Resource resource, std::string namespace_name,
                                           std::string name, DeleteOptions options,
                                           host::Deadline deadline) {
  const UnderWay under_way(*this);
  CO_RETURN_IF_ERROR(Fence("delete", resource, deadline));
  absl::Status deleted = co_await api_.Delete(std::move(resource), std::move(namespace_name),
                                              std::move(name), std::move(options), deadline);
  co_return deleted;
}

}  // namespace outrigger::controller::kube
