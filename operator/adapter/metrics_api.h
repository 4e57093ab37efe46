// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "host/base/deadline.h"
#include "host/base/logging.h"
#include "operator/adapter/authorizer.h"
#include "operator/adapter/http_server.h"
#include "operator/adapter/metric_request.h"
#include "operator/adapter/request_header_config.h"
#include "operator/polling/metric_source.h"
#include "operator/runtime/metrics_sink.h"

namespace outrigger::controller::adapter {

// The handler of external.metrics.k8s.io/v1beta1: who asks, may they, what is it, answer. Requests
// come on the server's executor and hop to the core strand for authorisation and the read.
//
//   400  bad path or selector
//   401  who asks is not known      403  may not
//   404  no such path, ScaledObject or metric
//   405  not GET
//   500  the scaler's own error; we may not ask the API server
//   503  not synced, plugin unreachable, breaker open, API server unreachable; with
//        `Connection: close`, for another replica may do better
//   504  deadline
//
// Never a redirect. Errors are metav1.Status. Discovery names one placeholder resource, whatever
// ScaledObjects exist. Source: design.md section 5; spec/adapter.md.
class MetricsApi {
 public:
  struct Options {
    absl::Duration read_timeout = absl::Seconds(10);
  };
  MetricsApi(host::Executor core, host::Clock& clock, const RequestHeaderConfigLoader& config,
             Authorizer& authorizer, polling::MetricSource& source, runtime::MetricsSink& metrics,
             Options options)
      : core_(std::move(core)),
        clock_(clock),
        config_(config),
        authorizer_(authorizer),
        source_(source),
        metrics_(metrics),
        options_(options) {}

  host::Task<HttpResponse> Handle(std::shared_ptr<const HttpRequest> request);

 private:
  host::Task<HttpResponse> Dispatch(std::shared_ptr<const HttpRequest> request,
                                    const absl::StatusOr<MetricRequest>& parsed);
  host::Task<HttpResponse> ReadMetric(UserInfo user, polling::MetricRead read);
  absl::StatusOr<UserInfo> Who(const HttpRequest& request) const;

  const host::Executor core_;
  host::Clock& clock_;
  const RequestHeaderConfigLoader& config_;
  Authorizer& authorizer_;
  polling::MetricSource& source_;
  runtime::MetricsSink& metrics_;
  const Options options_;
};

// metav1.Status with code and reason by `http_code`.
HttpResponse StatusResponse(int http_code, absl::string_view message);
// The HTTP code of a failed read, by what MetricSource::Read() returned.
int HttpCodeOfRead(const absl::Status& status);
// ExternalMetricValueList.
std::string PrintMetricList(const std::vector<polling::MetricReading>& readings);

}  // namespace outrigger::controller::adapter
