// SPDX-License-Identifier: Apache-2.0
#include "operator/adapter/metrics_api.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

#include "host/base/status.h"
#include "host/client/scaler_service.h"
#include "operator/adapter/metric_request.h"
#include "operator/api/object_meta.h"
#include "operator/api/quantity.h"

namespace outrigger::controller::adapter {
namespace {

namespace json = boost::json;

constexpr char kGroupVersion[] = "external.metrics.k8s.io/v1beta1";

const char* ReasonOf(int http_code) {
  switch (http_code) {
    case 400:
      return "BadRequest";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "NotFound";
    case 405:
      return "MethodNotAllowed";
    case 503:
      return "ServiceUnavailable";
    case 504:
      return "Timeout";
    default:
      return "InternalError";
  }
}

json::object GroupVersion() { return {{"groupVersion", kGroupVersion}, {"version", "v1beta1"}}; }

json::object ApiGroup() {
  return {{"kind", "APIGroup"},
          {"apiVersion", "v1"},
          {"name", kExternalMetricsGroup},
          {"versions", json::array{GroupVersion()}},
          {"preferredVersion", GroupVersion()}};
}

json::object ApiGroupList() {
  return {{"kind", "APIGroupList"}, {"apiVersion", "v1"}, {"groups", json::array{ApiGroup()}}};
}

// One placeholder, whatever ScaledObjects exist: so that discovery never changes.
json::object ResourceList() {
  json::object resource;
  resource["name"] = "externalmetrics";
  resource["singularName"] = "";
  resource["namespaced"] = true;
  resource["kind"] = "ExternalMetricValueList";
  resource["verbs"] = json::array{"get"};
  return {{"kind", "APIResourceList"},
          {"apiVersion", "v1"},
          {"groupVersion", kGroupVersion},
          {"resources", json::array{std::move(resource)}}};
}

HttpResponse JsonResponse(const json::object& body) { return {.body = json::serialize(body)}; }

// The aggregator merges these into its own documents and complains about a server without them. A
// value has no schema that anybody needs.
json::object OpenApiV2() {
  return {{"swagger", "2.0"},
          {"info", {{"title", "Outrigger"}, {"version", OUTRIGGER_VERSION}}},
          {"paths", json::object()}};
}

HttpResponse Discovery(Route route) {
  switch (route) {
    case Route::kApis:
      return JsonResponse(ApiGroupList());
    case Route::kGroup:
      return JsonResponse(ApiGroup());
    case Route::kServerVersion:
      return JsonResponse({{"gitVersion", OUTRIGGER_VERSION}, {"platform", "linux"}});
    case Route::kOpenApiV2:
      return JsonResponse(OpenApiV2());
    case Route::kOpenApiV3:
      return JsonResponse({{"paths", json::object()}});
    default:
      return JsonResponse(ResourceList());
  }
}

// PERMISSION_DENIED is the user's; see Authorizer.
int HttpCodeOfAuthorization(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kPermissionDenied:
      return 403;
    case absl::StatusCode::kDeadlineExceeded:
      return 504;
    case absl::StatusCode::kUnavailable:
      return 503;
    default:
      return 500;
  }
}

}  // namespace

HttpResponse StatusResponse(int http_code, absl::string_view message) {
  json::object status;
  status["kind"] = "Status";
  status["apiVersion"] = "v1";
  status["metadata"] = json::object();
  status["status"] = "Failure";
  status["message"] = json::string_view(message.data(), message.size());
  status["reason"] = ReasonOf(http_code);
  status["code"] = http_code;
  return {.code = http_code, .body = json::serialize(status), .close = http_code == 503};
}

int HttpCodeOfRead(const absl::Status& status) {
  if (host::IsPluginUnreachable(status) || polling::IsNotSynced(status)) return 503;
  if (polling::IsNoSuchMetric(status)) return 404;
  return absl::IsDeadlineExceeded(status) ? 504 : 500;
}

std::string PrintMetricList(const std::vector<polling::MetricReading>& readings) {
  json::array items;
  for (const polling::MetricReading& reading : readings) {
    json::object item;
    item["metricName"] = reading.metric_name;
    if (reading.labels.empty()) {
      item["metricLabels"] = nullptr;
    } else {
      json::object labels;
      for (const auto& [key, value] : reading.labels) labels[key] = value;
      item["metricLabels"] = std::move(labels);
    }
    item["timestamp"] = api::FormatTimestamp(reading.measured_at);
    if (reading.window) item["window"] = absl::ToInt64Seconds(*reading.window);
    const absl::StatusOr<api::Quantity> value = api::Quantity::FromMetricValue(reading.value);
    if (value.ok()) item["value"] = value->ToString();  // finite by the contract of MetricSource
    items.push_back(std::move(item));
  }
  json::object list;
  list["kind"] = "ExternalMetricValueList";
  list["apiVersion"] = kGroupVersion;
  list["metadata"] = json::object();
  list["items"] = std::move(items);
  return json::serialize(list);
}

absl::StatusOr<UserInfo> MetricsApi::Who(const HttpRequest& request) const {
  return Authenticate(
      config_.Current(), *request.peer, clock_.WallNow(),
      [&](absl::string_view name) { return request.Header(name); },
      [&](absl::string_view prefix) {
        std::vector<std::pair<std::string, std::string>> found;
        for (const auto& [key, value] : request.headers) {
          if (absl::StartsWithIgnoreCase(key, prefix))
            found.emplace_back(key.substr(prefix.size()), value);
        }
        return found;
      });
}

host::Task<HttpResponse> MetricsApi::Handle(std::shared_ptr<const HttpRequest> request) {
  const host::SteadyTime start = clock_.SteadyNow();
  const absl::StatusOr<MetricRequest> parsed = ParseMetricRequest(request->target);
  HttpResponse response = co_await Dispatch(std::move(request), parsed);
  // A selector that is no selector was meant for a metric, too.
  if (parsed.ok() ? parsed->route == Route::kMetric : !absl::IsNotFound(parsed.status()))
    metrics_.MetricRead(response.code, clock_.SteadyNow() - start);
  co_return response;
}

host::Task<HttpResponse> MetricsApi::Dispatch(std::shared_ptr<const HttpRequest> request,
                                              const absl::StatusOr<MetricRequest>& parsed) {
  if (parsed.ok() && parsed->route == Route::kHealth)
    co_return HttpResponse{.body = "ok", .content_type = "text/plain"};
  absl::StatusOr<UserInfo> user = Who(*request);
  if (!user.ok())
    co_return StatusResponse(absl::IsUnavailable(user.status()) ? 503 : 401,
                             user.status().message());
  if (absl::IsNotFound(parsed.status())) co_return StatusResponse(404, parsed.status().message());
  if (request->method != "GET")
    co_return StatusResponse(405, absl::StrCat("want GET, got ", request->method));
  if (!parsed.ok()) co_return StatusResponse(400, parsed.status().message());
  if (parsed->route != Route::kMetric) co_return Discovery(parsed->route);
  host::Task<HttpResponse> on_core = ReadMetric(*std::move(user), parsed->read);
  co_return co_await boost::asio::co_spawn(core_, std::move(on_core), boost::asio::use_awaitable);
}

host::Task<HttpResponse> MetricsApi::ReadMetric(UserInfo user, polling::MetricRead read) {
  const host::Deadline deadline = host::Deadline::After(clock_, options_.read_timeout);
  const absl::Status may = co_await authorizer_.Authorize(std::move(user), read.namespace_name,
                                                          read.metric_name, deadline);
  if (!may.ok()) co_return StatusResponse(HttpCodeOfAuthorization(may), may.message());
  const absl::StatusOr<std::vector<polling::MetricReading>> readings =
      co_await source_.Read(std::move(read), deadline);
  if (!readings.ok())
    co_return StatusResponse(HttpCodeOfRead(readings.status()), readings.status().message());
  co_return HttpResponse{.body = PrintMetricList(*readings)};
}

}  // namespace outrigger::controller::adapter
