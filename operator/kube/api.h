// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/time/time.h>

#include <boost/json/value.hpp>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "host/base/deadline.h"
#include "host/base/task.h"

namespace outrigger::controller::kube {

// Names one kind of object as the API server's paths do: group "" is the core group.
struct Resource {
  std::string group;
  std::string version;
  std::string plural;
  bool namespaced = true;

  // "deployments.apps", "pods": for messages.
  std::string ToString() const;
  friend bool operator==(const Resource&, const Resource&) = default;
};

// The kinds that the operator works with.
const Resource& ScaledObjects();
const Resource& TriggerAuthentications();
const Resource& ClusterTriggerAuthentications();
const Resource& HorizontalPodAutoscalers();
const Resource& Deployments();
const Resource& StatefulSets();
const Resource& Pods();
const Resource& Secrets();
const Resource& ConfigMaps();
const Resource& Leases();
const Resource& Events();  // events.k8s.io/v1
const Resource& ApiServices();
const Resource& SubjectAccessReviews();

struct ListOptions {
  std::string label_selector;
  std::string field_selector;
  bool metadata_only = false;    // PartialObjectMetadata: nobody holds the cluster's secrets
  std::string resource_version;  // "" = most recent; "0" = any
  std::string continue_token;
  int limit = 500;
};

struct ObjectList {
  std::vector<boost::json::value> items;
  std::string resource_version;  // to watch from
  std::string continue_token;    // "" on the last page
};

enum class WatchEventType { kAdded, kModified, kDeleted, kBookmark };

struct WatchEvent {
  WatchEventType type;
  boost::json::value object;  // of a bookmark: only its resourceVersion means something
  host::SteadyTime received_at = host::SteadyTime::InfiniteFuture();  // by this process
};

struct WatchOptions {
  std::string label_selector;
  std::string field_selector;
  bool metadata_only = false;
  std::string resource_version;  // required
  std::stop_token cancel;        // ends the watch before its `stop`; may come from any thread
};

enum class PatchType { kMerge, kApply, kJson };

struct WriteOptions {
  std::string subresource;  // "status", "scale", or ""
  std::string field_manager = "outrigger";
  bool dry_run = false;
};

struct DeleteOptions {
  std::string uid;               // precondition; "" = none
  std::string resource_version;  // precondition; "" = none
  std::string propagation_policy = "Background";
};

// What the API server said, attached to every Status that an Api returns for an answer (not for a
// broken connection).
struct ApiError {
  int http_code = 0;   // 404, 409, 422, …
  std::string reason;  // metav1.Status.reason: "NotFound", "Conflict", "Forbidden", …
  std::string message;
  std::optional<absl::Duration> retry_after;
};

void SetApiError(absl::Status& status, const ApiError& error);
std::optional<ApiError> GetApiError(const absl::Status& status);

// The status of an error answer. Code by HTTP code and reason: 400, 422 INVALID_ARGUMENT, but
// ABORTED when a uid that was given as a precondition is another's; 401
// UNAUTHENTICATED; 403 PERMISSION_DENIED, but RESOURCE_EXHAUSTED when a quota refused ("exceeded
// quota"); 404 NOT_FOUND; 409 ABORTED, but ALREADY_EXISTS for reason AlreadyExists; 410
// OUT_OF_RANGE (Expired, Gone); 405, 501 UNIMPLEMENTED; 408, 504 DEADLINE_EXCEEDED; 429
// RESOURCE_EXHAUSTED; 500 INTERNAL; 502, 503 UNAVAILABLE.
absl::Status ToStatus(const ApiError& error);

// The Kubernetes API, as much of it as the operator uses. HttpApi speaks to a real server,
// MemoryApi is one.
//
// Objects are JSON as on the wire. Calls are made on, and return on, the caller's executor; an
// implementation does its I/O and parsing elsewhere. Every call ends by its deadline with
// DEADLINE_EXCEEDED; a broken connection is UNAVAILABLE. Errors of the server are as in ToStatus().
class Api {
 public:
  virtual ~Api() = default;

  // `namespace_name` is "" for cluster-scoped kinds and, in List and Watch, for all namespaces.
  virtual host::Task<absl::StatusOr<boost::json::value>> Get(Resource resource,
                                                             std::string namespace_name,
                                                             std::string name,
                                                             std::string subresource,
                                                             host::Deadline deadline) = 0;
  virtual host::Task<absl::StatusOr<boost::json::value>> GetMetadata(Resource resource,
                                                                     std::string namespace_name,
                                                                     std::string name,
                                                                     host::Deadline deadline) = 0;
  // One page.
  virtual host::Task<absl::StatusOr<ObjectList>> List(Resource resource, std::string namespace_name,
                                                      ListOptions options,
                                                      host::Deadline deadline) = 0;
  virtual host::Task<absl::StatusOr<boost::json::value>> Create(Resource resource,
                                                                std::string namespace_name,
                                                                boost::json::value object,
                                                                WriteOptions options,
                                                                host::Deadline deadline) = 0;
  // PUT. A resourceVersion in the object is a precondition.
  virtual host::Task<absl::StatusOr<boost::json::value>> Update(
      Resource resource, std::string namespace_name, std::string name, boost::json::value object,
      WriteOptions options, host::Deadline deadline) = 0;
  // metadata.uid and metadata.resourceVersion in a merge patch are preconditions.
  virtual host::Task<absl::StatusOr<boost::json::value>> Patch(
      Resource resource, std::string namespace_name, std::string name, PatchType type,
      boost::json::value patch, WriteOptions options, host::Deadline deadline) = 0;
  virtual host::Task<absl::Status> Delete(Resource resource, std::string namespace_name,
                                          std::string name, DeleteOptions options,
                                          host::Deadline deadline) = 0;

  // Which kinds there are in a group ("" is the core group) and version: an APIResourceList.
  // NOT_FOUND: it is not served.
  virtual host::Task<absl::StatusOr<boost::json::value>> Discover(std::string group,
                                                                  std::string version,
                                                                  host::Deadline deadline) = 0;

  // Calls `on_event` for each event, on the caller's executor, until the watch ends: OK when the
  // server closed it or fell silent (go on from the last version seen), OUT_OF_RANGE when the
  // version is too old in either form (410 answer or ERROR event: list again), UNAVAILABLE when no
  // answer begins, on a broken connection or an event that cannot be read. Ends with OK soon after
  // `stop` expires or `options.cancel` is requested.
  virtual host::Task<absl::Status> Watch(Resource resource, std::string namespace_name,
                                         WatchOptions options,
                                         std::function<void(WatchEvent)> on_event,
                                         host::Deadline stop) = 0;
};

}  // namespace outrigger::controller::kube
