// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/time/time.h>

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "outrigger/scaler/v1/scaler.pb.h"
#include "tests/support/certificates.h"

namespace outrigger::tests {

// A plain blocking client of the Scaler service, for tests of plugins. Thread-safe. Errors carry
// the code and message of the wire.
class PluginClient {
 public:
  // "unix:/…/scaler.sock" or "127.0.0.1:port".
  explicit PluginClient(const std::string& address);
  // TCP with mutual TLS; the server's certificate must be made out to localhost. Without a client
  // certificate the server should refuse.
  PluginClient(const std::string& address, const std::string& ca, const KeyPair& client);
  ~PluginClient();

  absl::StatusOr<scaler::v1::DescribeResponse> Describe();
  absl::StatusOr<scaler::v1::ValidateTriggerResponse> Validate(const scaler::v1::Trigger& trigger);
  absl::StatusOr<scaler::v1::GetMetricSpecForScalingResponse> Specs(
      const scaler::v1::Trigger& trigger);
  absl::StatusOr<scaler::v1::GetMetricsResponse> Metrics(
      const scaler::v1::GetMetricsRequest& request, absl::Duration timeout = absl::Seconds(3));
  absl::StatusOr<scaler::v1::GetMetricsResponse> Metrics(const scaler::v1::Trigger& trigger,
                                                         absl::Duration timeout = absl::Seconds(3));
  // Each answer of the batch as it comes, then how the call ended.
  absl::Status Batch(const scaler::v1::BatchGetMetricsRequest& request, absl::Duration timeout,
                     const std::function<void(const scaler::v1::BatchGetMetricsResponse&)>& each);
  // "SERVING", "NOT_SERVING", …
  absl::StatusOr<std::string> Health(const std::string& service);
  // How a WatchMetrics call ends.
  absl::Status Watch();

 private:
  struct Stubs;
  const std::unique_ptr<Stubs> stubs_;
};

// A trigger with metadata and authentication parameters.
scaler::v1::Trigger MakeTrigger(absl::string_view type,
                                const std::map<std::string, std::string>& metadata,
                                const std::map<std::string, std::string>& authentication = {});

}  // namespace outrigger::tests
