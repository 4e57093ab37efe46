// SPDX-License-Identifier: Apache-2.0
#include "operator/adapter/metric_request.h"

#include <absl/strings/escaping.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>

#include <vector>

#include "host/base/status.h"
#include "operator/adapter/percent_encoding.h"
#include "operator/api/label_selector.h"
#include "operator/api/scaled_object.h"

namespace outrigger::controller::adapter {
namespace {

constexpr absl::string_view kMetricPrefix = "/apis/external.metrics.k8s.io/v1beta1/namespaces/";
constexpr size_t kLongestTarget = 8192;

// Sets scaled_object and the rest of the selector.
absl::Status ReadSelector(absl::string_view text, polling::MetricRead& read) {
  absl::StatusOr<api::Labels> labels = api::ParseEqualitySelector(text);
  if (!labels.ok()) return host::Annotate(labels.status(), "labelSelector");
  auto name = labels->find(api::kScaledObjectNameLabel);
  if (name == labels->end() || name->second.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("labelSelector: want ", api::kScaledObjectNameLabel,
                     "=<name of a ScaledObject>, got \"", absl::CHexEscape(text), "\""));
  }
  read.scaled_object = name->second;
  labels->erase(name);
  read.selector = absl::StrJoin(*labels, ",", absl::PairFormatter("="));
  return absl::OkStatus();
}

// The first labelSelector of the query, as Kubernetes takes it; "" if there is none.
absl::StatusOr<std::string> SelectorOf(absl::string_view query) {
  for (absl::string_view pair : absl::StrSplit(query, '&')) {
    const std::pair<absl::string_view, absl::string_view> parameter =
        absl::StrSplit(pair, absl::MaxSplits('=', 1));
    if (parameter.first != "labelSelector") continue;
    absl::StatusOr<std::string> selector = PercentDecode(parameter.second, Plus::kIsSpace);
    return selector.ok() ? selector : host::Annotate(selector.status(), "labelSelector");
  }
  return std::string();
}

absl::StatusOr<MetricRequest> ReadMetric(MetricRequest request, absl::string_view rest,
                                         absl::string_view query) {
  const std::vector<absl::string_view> parts = absl::StrSplit(rest, '/');
  if (parts.size() != 2 || parts[0].empty() || parts[1].empty()) {
    return absl::NotFoundError(absl::StrCat("want ", kMetricPrefix, "{namespace}/{metric}, got ",
                                            absl::CHexEscape(request.path)));
  }
  ASSIGN_OR_RETURN(request.read.namespace_name, PercentDecode(parts[0], Plus::kIsPlus));
  ASSIGN_OR_RETURN(request.read.metric_name, PercentDecode(parts[1], Plus::kIsPlus));
  ASSIGN_OR_RETURN(const std::string selector, SelectorOf(query));
  RETURN_IF_ERROR(ReadSelector(selector, request.read));
  return request;
}

}  // namespace

absl::StatusOr<MetricRequest> ParseMetricRequest(absl::string_view target) {
  if (target.size() > kLongestTarget) {
    return absl::InvalidArgumentError(absl::StrCat("want a request target of at most ",
                                                   kLongestTarget, " bytes, got ", target.size()));
  }
  const std::pair<absl::string_view, absl::string_view> split =
      absl::StrSplit(target, absl::MaxSplits('?', 1));
  MetricRequest request;
  request.path = std::string(split.first);
  absl::string_view path = split.first;
  while (path.size() > 1 && absl::EndsWith(path, "/")) path.remove_suffix(1);
  if (path == "/healthz" || path == "/readyz" || path == "/livez") {
    request.route = Route::kHealth;
  } else if (path == "/apis") {
    request.route = Route::kApis;
  } else if (path == "/apis/external.metrics.k8s.io") {
    request.route = Route::kGroup;
  } else if (path == "/apis/external.metrics.k8s.io/v1beta1") {
    request.route = Route::kVersion;
  } else if (path == "/version") {
    request.route = Route::kServerVersion;
  } else if (path == "/openapi/v2") {
    request.route = Route::kOpenApiV2;
  } else if (path == "/openapi/v3") {
    request.route = Route::kOpenApiV3;
  } else if (absl::StartsWith(path, kMetricPrefix)) {
    return ReadMetric(std::move(request), path.substr(kMetricPrefix.size()), split.second);
  } else {
    return absl::NotFoundError(
        absl::StrCat("the server has no path ", absl::CHexEscape(request.path)));
  }
  return request;
}

}  // namespace outrigger::controller::adapter
