// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "host/base/deadline.h"
#include "host/base/task.h"
#include "host/client/plugin_address.h"
#include "outrigger/scaler/v1/scaler.pb.h"

namespace outrigger::host {

// One BatchGetMetrics call under way. The call goes on until Next() has returned its `end`, so
// whoever holds it reads that far (after Cancel(), at once).
class BatchStream {
 public:
  virtual ~BatchStream() = default;

  struct Received {
    std::vector<scaler::v1::BatchGetMetricsResponse> responses;
    std::optional<absl::Status> end;  // nothing comes any more
  };
  // Returns when something came, or at `until` with nothing.
  virtual Task<Received> Next(SteadyTime until) = 0;
  virtual void Cancel() = 0;
};

// One connection to one plugin: the calls of the contract as coroutines, and nothing else. It dials
// once, with its first call, and is thrown away when it is no longer Ready(): whoever owns it
// decides about the next. The real one is in grpc_channel.h, tests script one.
//
// Calls run on the caller's executor; the caller keeps the channel until they have ended. Each call
// ends at its deadline. A status keeps the code and message that came over the wire; a message from
// the plugin above the limit is RESOURCE_EXHAUSTED with IsMessageTooLarge().
class PluginChannel {
 public:
  virtual ~PluginChannel() = default;

  // Connected at this moment. Never blocks.
  virtual bool Ready() const = 0;
  // Ends all calls with CANCELLED.
  virtual void CancelAll() = 0;

  virtual Task<absl::StatusOr<scaler::v1::DescribeResponse>> Describe(
      scaler::v1::DescribeRequest request, Deadline deadline) = 0;
  virtual Task<absl::StatusOr<scaler::v1::ValidateTriggerResponse>> ValidateTrigger(
      scaler::v1::ValidateTriggerRequest request, Deadline deadline) = 0;
  virtual Task<absl::StatusOr<scaler::v1::GetMetricSpecForScalingResponse>> GetMetricSpecForScaling(
      scaler::v1::GetMetricSpecForScalingRequest request, Deadline deadline) = 0;
  virtual Task<absl::StatusOr<scaler::v1::GetMetricsResponse>> GetMetrics(
      scaler::v1::GetMetricsRequest request, Deadline deadline) = 0;
  virtual std::unique_ptr<BatchStream> BatchGetMetrics(scaler::v1::BatchGetMetricsRequest request,
                                                       Deadline deadline) = 0;
  // grpc.health.v1 Check of "". Whatever the plugin says counts, UNIMPLEMENTED too: true.
  virtual Task<bool> AnswersCheck(Deadline deadline) = 0;
};

// Makes a channel that has not dialled yet. Errors (certificates that cannot be read, plain TCP to
// another machine) are worth another try later.
using PluginConnector =
    std::function<absl::StatusOr<std::shared_ptr<PluginChannel>>(const PluginAddress& address)>;

void MarkMessageTooLarge(absl::Status& status);
bool IsMessageTooLarge(const absl::Status& status);

}  // namespace outrigger::host
