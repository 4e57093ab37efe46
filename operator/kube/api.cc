// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/api.h"

#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

namespace outrigger::controller::kube {
namespace {

constexpr absl::string_view kPayloadUrl = "outrigger.dev/kube.ApiError";

// A patch of an object that was deleted and made anew says this, not 409, when it holds the old uid
// and no resourceVersion.
bool IsFailedUidPrecondition(absl::string_view message) {
  return absl::StrContains(message, "metadata.uid: Invalid value") &&
         absl::StrContains(message, "field is immutable");
}

// Also while a new quota's use is not counted yet.
bool RefusedByQuota(absl::string_view message) {
  return absl::StrContains(message, "exceeded quota") ||
         absl::StrContains(message, "status unknown for quota");
}

absl::StatusCode CodeOf(const ApiError& error) {
  switch (error.http_code) {
    case 400:
      return absl::StatusCode::kInvalidArgument;
    case 422:
      return IsFailedUidPrecondition(error.message) ? absl::StatusCode::kAborted
                                                    : absl::StatusCode::kInvalidArgument;
    case 401:
      return absl::StatusCode::kUnauthenticated;
    case 403:
      return RefusedByQuota(error.message) ? absl::StatusCode::kResourceExhausted
                                           : absl::StatusCode::kPermissionDenied;
    case 404:
      return absl::StatusCode::kNotFound;
    case 405:
    case 501:
      return absl::StatusCode::kUnimplemented;
    case 408:
    case 504:
      return absl::StatusCode::kDeadlineExceeded;
    case 409:
      return error.reason == "AlreadyExists" ? absl::StatusCode::kAlreadyExists
                                             : absl::StatusCode::kAborted;
    case 410:
      return absl::StatusCode::kOutOfRange;
    case 429:
      return absl::StatusCode::kResourceExhausted;
    case 502:
    case 503:
      return absl::StatusCode::kUnavailable;
    default:
      return error.http_code >= 500 ? absl::StatusCode::kInternal : absl::StatusCode::kUnknown;
  }
}

}  // namespace

std::string Resource::ToString() const {
  return group.empty() ? plural : absl::StrCat(plural, ".", group);
}

#define OUTRIGGER_RESOURCE(function, group, version, plural, namespaced)                       \
  const Resource& function() {                                                                 \
    static const Resource* const kResource = new Resource{group, version, plural, namespaced}; \
    return *kResource;                                                                         \
  }
OUTRIGGER_RESOURCE(ScaledObjects, "keda.sh", "v1alpha1", "scaledobjects", true)
OUTRIGGER_RESOURCE(TriggerAuthentications, "keda.sh", "v1alpha1", "triggerauthentications", true)
OUTRIGGER_RESOURCE(ClusterTriggerAuthentications, "keda.sh", "v1alpha1",
                   "clustertriggerauthentications", false)
OUTRIGGER_RESOURCE(HorizontalPodAutoscalers, "autoscaling", "v2", "horizontalpodautoscalers", true)
OUTRIGGER_RESOURCE(Deployments, "apps", "v1", "deployments", true)
OUTRIGGER_RESOURCE(StatefulSets, "apps", "v1", "statefulsets", true)
OUTRIGGER_RESOURCE(Pods, "", "v1", "pods", true)
OUTRIGGER_RESOURCE(Secrets, "", "v1", "secrets", true)
OUTRIGGER_RESOURCE(ConfigMaps, "", "v1", "configmaps", true)
OUTRIGGER_RESOURCE(Leases, "coordination.k8s.io", "v1", "leases", true)
OUTRIGGER_RESOURCE(Events, "events.k8s.io", "v1", "events", true)
OUTRIGGER_RESOURCE(ApiServices, "apiregistration.k8s.io", "v1", "apiservices", false)
OUTRIGGER_RESOURCE(SubjectAccessReviews, "authorization.k8s.io", "v1", "subjectaccessreviews",
                   false)
#undef OUTRIGGER_RESOURCE

void SetApiError(absl::Status& status, const ApiError& error) {
  boost::json::object payload;
  payload["code"] = error.http_code;
  payload["reason"] = error.reason;
  payload["message"] = error.message;
  if (error.retry_after) payload["retryAfterMs"] = absl::ToInt64Milliseconds(*error.retry_after);
  const std::string text = boost::json::serialize(payload);
  // Not from the string itself: clang mangles that constructor otherwise than g++, which built the
  // library.
  status.SetPayload(kPayloadUrl, absl::Cord(absl::string_view(text)));
}

std::optional<ApiError> GetApiError(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kPayloadUrl);
  if (!payload) return std::nullopt;
  boost::json::error_code parse_error;
  const boost::json::value value = boost::json::parse(std::string(*payload), parse_error);
  if (parse_error || !value.is_object()) return std::nullopt;
  const boost::json::object& object = value.get_object();
  ApiError error;
  error.http_code = static_cast<int>(object.at("code").as_int64());
  error.reason = std::string(object.at("reason").as_string());
  error.message = std::string(object.at("message").as_string());
  if (const boost::json::value* after = object.if_contains("retryAfterMs")) {
    error.retry_after = absl::Milliseconds(after->as_int64());
  }
  return error;
}

absl::Status ToStatus(const ApiError& error) {
  absl::Status status(CodeOf(error), error.message.empty() ? absl::StrCat("HTTP ", error.http_code)
                                                           : error.message);
  SetApiError(status, error);
  return status;
}

}  // namespace outrigger::controller::kube
