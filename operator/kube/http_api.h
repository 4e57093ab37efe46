// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <functional>
#include <memory>
#include <string>

#include "host/base/clock.h"
#include "host/base/logging.h"
#include "operator/kube/api.h"
#include "operator/kube/api_call.h"
#include "operator/kube/api_config.h"
#include "operator/kube/curl_loop.h"

namespace outrigger::controller::kube {

// One request to the API server, for metrics.
struct RequestRecord {
  std::string verb;         // as in RBAC: get, list, watch, create, update, patch, delete
  std::string resource;     // "deployments.apps"
  int code = 0;             // of HTTP; 0: no answer
  absl::Duration duration;  // of a watch: its life
};

// Api over HTTPS to a real kube-apiserver.
//
// Made in main(), used by whoever has an Api&. Thread-safe; must outlive every Task that it gave,
// so the order at stop is: end the callers, Stop(), destroy. Requests run on three threads of its
// own, one for Leases, one for other calls, one for watches, so that a flood of the one never
// delays the other; JSON is read there too, and results are posted to the caller's executor.
//
// A write whose deadline has passed is not sent, also when the process was stopped meanwhile
// (see CurlLoop). There is no retry here and no throttle: Retry-After is in ApiError, and the
// caller's queue decides. Errors: as in Api; INVALID_ARGUMENT for a name that is no path segment.
// Source: design.md section 5, "Kubernetes client".
class HttpApi : public Api {
 public:
  struct Options {
    ApiConfig config;
    std::string user_agent = "outrigger-operator/" OUTRIGGER_VERSION;
    // Both are called on threads of the client, must be thread-safe and quick. May be empty.
    std::function<void(const RequestRecord&)> on_request;
    // After each accepted write that is neither of a Lease nor a review: see fail_point.h.
    std::function<void()> after_write;
    absl::Duration watch_silence = absl::Seconds(75);  // the server sends a bookmark each minute
    size_t watch_queue_events = 4096;  // a watch whose consumer is further behind is dropped
  };

  HttpApi(host::Clock& clock, host::Logger log, Options options);
  ~HttpApi() override;

  // Ends all calls and watches with UNAVAILABLE and joins the threads. Blocks for that long only.
  void Stop();

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
  // With a subresource: of the object that metadata.name names.
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
  // kApply forces: the operator is the one owner of the fields that it sends.
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

 private:
  class WatchStream;

  template <typename T>
  host::Task<T> Send(ApiCall call, T (*decode)(const ApiCall& call, const HttpAnswer& answer));
  host::Task<absl::StatusOr<boost::json::value>> SendForObject(absl::StatusOr<ApiCall> call);
  void Record(const ApiCall& call, const HttpAnswer& answer) const;
  absl::StatusOr<ApiCall> MakeWatch(const Resource& resource, const std::string& namespace_name,
                                    const WatchOptions& options, host::Deadline stop) const;
  CurlLoop& LoopFor(const Resource& resource);

  host::Clock& clock_;
  const host::Logger log_;
  const Options options_;
  CurlLoop lease_;
  CurlLoop calls_;
  CurlLoop watches_;
};

}  // namespace outrigger::controller::kube
