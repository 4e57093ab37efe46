// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/api_weather.h"

#include <absl/strings/str_cat.h>

#include <string>

namespace outrigger::simulation {

namespace kube = controller::kube;

namespace {

// As the admission plugin ResourceQuota words it.
absl::Status QuotaRefusal() {
  return kube::ToStatus(
      {.http_code = 403,
       .reason = "Forbidden",
       .message = "horizontalpodautoscalers.autoscaling \"keda-hpa\" is forbidden: exceeded quota: "
                  "few, requested: count/horizontalpodautoscalers.autoscaling=1, used: "
                  "count/horizontalpodautoscalers.autoscaling=4, limited: "
                  "count/horizontalpodautoscalers.autoscaling=4"});
}

}  // namespace

// FNV-1a: equal runs give equal traces, in another process too.
void ApiWeather::Trace(const Call& call) {
  const std::string text = absl::StrCat(absl::ToInt64Microseconds(clock_.SteadyNow().since_epoch()),
                                        " ", call.verb, " ", call.resource.plural, "/",
                                        call.subresource, " ", call.namespace_name, "/", call.name);
  for (const char c : text) trace_ = (trace_ ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
}

ApiWeather::Fault ApiWeather::BeforeCall(const Call& call) {
  Trace(call);
  const bool others =
      call.resource == kube::Deployments() ||
      (call.resource == kube::HorizontalPodAutoscalers() && call.subresource == "status");
  if (call.IsWrite() && !others) ++operator_writes_;
  Fault fault;
  if (Strikes(0.3)) fault.delay = SomeDelay();
  if (quota_full_ && call.verb == "create" && call.resource == kube::HorizontalPodAutoscalers()) {
    ++faults_;
    ++quota_refusals_;
    fault.error = QuotaRefusal();
    return fault;
  }
  if (!Strikes(0.15)) return fault;
  ++faults_;
  switch (random_.Next() % 4) {
    case 0:
      fault.error = absl::UnavailableError("connection refused");
      break;
    case 1:
      fault.error = kube::ToStatus({.http_code = 429,
                                    .reason = "TooManyRequests",
                                    .message = "too many requests",
                                    .retry_after = absl::Seconds(1)});
      break;
    case 2:
      fault.error = kube::ToStatus(
          {.http_code = 500, .reason = "InternalError", .message = "etcdserver: leader changed"});
      break;
    default:
      fault.error = call.IsWrite() ? kube::ToStatus({.http_code = 409,
                                                     .reason = "Conflict",
                                                     .message = "the object has been modified"})
                                   : absl::DeadlineExceededError("no answer");
  }
  return fault;
}

ApiWeather::Fault ApiWeather::AfterCall(const Call& call, const absl::Status& outcome) {
  if (on_done_) on_done_(call, outcome);
  Fault fault;
  if (!Strikes(0.05)) return fault;
  ++faults_;
  fault.error = absl::UnavailableError("the answer was lost");
  return fault;
}

ApiWeather::WatchFault ApiWeather::BeforeEvent(const Call&, const kube::WatchEvent&) {
  WatchFault fault;
  if (Strikes(0.5)) fault.lag = SomeDelay();
  if (!Strikes(0.03)) return fault;
  ++faults_;
  const uint64_t kind = random_.Next() % 3;
  fault.end = kind == 0   ? absl::OkStatus()
              : kind == 1 ? absl::UnavailableError("connection cut")
                          : absl::OutOfRangeError("too old resource version");
  return fault;
}

}  // namespace outrigger::simulation
