// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <boost/json/value.hpp>
#include <string>

#include "host/base/clock.h"
#include "host/base/deadline.h"
#include "operator/kube/api.h"
#include "operator/kube/curl_loop.h"

namespace outrigger::controller::kube {

// One request to the API server, with what its messages and its record need.
struct ApiCall {
  std::string verb;  // as in RBAC
  Resource resource;
  std::string target;  // "ns/name", "ns", "name" or ""
  HttpRequest request;
  host::SteadyTime started = {};

  // `name` "" for collections; `query` with its question mark, or "". INVALID_ARGUMENT: a name that
  // is no path segment.
  static absl::StatusOr<ApiCall> Make(std::string verb, std::string method,
                                      const Resource& resource, const std::string& namespace_name,
                                      const std::string& name, const std::string& subresource,
                                      const std::string& query, host::Deadline deadline);
  // The same for one object; INVALID_ARGUMENT, too, without a name.
  static absl::StatusOr<ApiCall> MakeFor(std::string verb, std::string method,
                                         const Resource& resource,
                                         const std::string& namespace_name, const std::string& name,
                                         const std::string& subresource, const std::string& query,
                                         host::Deadline deadline);

  void SetBody(absl::string_view content_type, const boost::json::value& body);

  // "patch deployments.apps ns/a: …", but a message of the server that names the resource stays as
  // it is: people know it.
  absl::Status Explain(const absl::Status& status) const;
};

// metadata[key] of an object or a list; "" when there is no such text.
std::string MetadataText(const boost::json::value& object, absl::string_view key);

// The answer as an error, whatever its body is: that of its Status object, or its code and the
// beginning of the body.
absl::Status ErrorOf(const HttpAnswer& answer);
// The body of a 2xx answer. UNAVAILABLE when it is not JSON, or no list; else as ErrorOf(), or the
// answer's transport error. Explained.
absl::StatusOr<boost::json::value> DecodeValue(const ApiCall& call, const HttpAnswer& answer);
absl::StatusOr<ObjectList> DecodeList(const ApiCall& call, const HttpAnswer& answer);

}  // namespace outrigger::controller::kube
