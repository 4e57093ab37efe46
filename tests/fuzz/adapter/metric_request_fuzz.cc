// SPDX-License-Identifier: Apache-2.0
// Any request target is refused with a printable message of bounded length, or names a metric
// whose selector can be read again.
#include <absl/strings/ascii.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "operator/adapter/metric_request.h"
#include "operator/api/label_selector.h"

namespace {

using outrigger::controller::adapter::MetricRequest;
using outrigger::controller::adapter::ParseMetricRequest;
using outrigger::controller::adapter::Route;
using outrigger::controller::api::LabelSelector;
using outrigger::controller::api::ParseEqualitySelector;

void Require(bool holds) {
  if (!holds) std::abort();
}

void CheckRefusal(const absl::Status& status) {
  Require(absl::IsInvalidArgument(status) || absl::IsNotFound(status));
  Require(!status.message().empty() && status.message().size() < size_t{5} * 8192);
  Require(std::none_of(status.message().begin(), status.message().end(),
                       [](char c) { return absl::ascii_iscntrl(static_cast<unsigned char>(c)); }));
}

void CheckMetric(const MetricRequest& request) {
  Require(!request.read.scaled_object.empty());
  if (request.read.selector.empty()) return;
  Require(ParseEqualitySelector(request.read.selector).ok());
  Require(LabelSelector::Parse(request.read.selector).ok());
}

void Check(absl::string_view target) {
  const absl::StatusOr<MetricRequest> request = ParseMetricRequest(target);
  if (!request.ok()) return CheckRefusal(request.status());
  if (request->route == Route::kMetric) CheckMetric(*request);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  Check(text);
  // The interesting part is behind a long prefix that a fuzzer would take long to guess.
  Check(absl::StrCat("/apis/external.metrics.k8s.io/v1beta1/namespaces/", text));
  Check(absl::StrCat("/apis/external.metrics.k8s.io/v1beta1/namespaces/a/b?labelSelector=", text));
  return 0;
}
