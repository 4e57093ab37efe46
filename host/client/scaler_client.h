// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "host/base/clock.h"
#include "host/client/batch_plan.h"
#include "host/client/plugin_directory.h"
#include "host/client/scaler_service.h"

namespace outrigger::host {

// Asks scalers over gRPC: the operator's ScalerService.
//
// Use from the strand of the directory, which must outlive this; PluginDirectory::Stop() ends what
// runs here. Each call has a deadline, each answer is checked (answer_check.h), each plugin is
// asked within its bounds (PluginConnection). Besides the codes of ScalerService:
// RESOURCE_EXHAUSTED for a message above its limit, FAILED_PRECONDITION for a secret that would go
// over a plain connection. Source: design.md sections 3 and 5.
class ScalerClient : public ScalerService {
 public:
  struct Options {
    absl::Duration call_timeout = absl::Seconds(3);  // of calls whose query names none
    absl::Duration window = absl::Milliseconds(5);   // reads within it go as one batch
    // Calls at a time of one batch, for a plugin that has no BatchGetMetrics.
    size_t calls_per_batch = 16;
    // For metrics; may be empty. `rpc` is the method's name.
    std::function<void(const std::string& plugin, const char* rpc, absl::StatusCode code,
                       absl::Duration took)>
        on_call;
  };
  ScalerClient(PluginDirectory& directory, Options options);

  std::optional<std::string> PluginFor(const std::string& trigger_type) const override;
  std::optional<scaler::v1::TriggerType> SchemaFor(const std::string& trigger_type) const override;
  std::string SchemaVersion(const std::string& trigger_type) const override;
  std::vector<PluginStatus> Plugins() const override { return directory_.Plugins(); }
  Task<absl::StatusOr<std::vector<scaler::v1::Violation>>> ValidateTrigger(
      TriggerPtr trigger, Deadline deadline) override;
  Task<absl::StatusOr<std::vector<scaler::v1::MetricSpec>>> GetMetricSpecForScaling(
      TriggerPtr trigger, Deadline deadline) override;
  Task<absl::StatusOr<MetricsAnswer>> GetMetrics(TriggerPtr trigger, MetricQuery query,
                                                 Deadline deadline) override;
  Task<void> BatchGetMetrics(std::vector<BatchItem> items,
                             std::function<void(size_t, absl::StatusOr<MetricsAnswer>)> on_answer,
                             Deadline deadline) override;
  void SetChangeListener(std::function<void(std::vector<std::string> types)> on_change) override {
    directory_.SetChangeListener(std::move(on_change));
  }

 private:
  using ConnectionPtr = std::shared_ptr<PluginConnection>;
  struct Batch;   // what one plugin is asked at once
  struct Flight;  // one question under way, and who waits for its answer
  using FlightPtr = std::shared_ptr<Flight>;
  // Fingerprint, metric, selector: equal questions have equal answers.
  using FlightKey = std::tuple<std::string, std::string, std::string>;

  // The plugin that may be sent this trigger.
  absl::StatusOr<ConnectionPtr> Route(const scaler::v1::Trigger& trigger) const;
  // One unary call within the plugin's bounds. `Call` is (channel, deadline) -> Task<StatusOr<R>>.
  template <typename Response, typename Call>
  Task<absl::StatusOr<Response>> Ask(ConnectionPtr connection, const char* rpc, Call call,
                                     Deadline deadline);
  Task<absl::StatusOr<MetricsAnswer>> AskOnce(ConnectionPtr connection, BatchItem item,
                                              Deadline deadline);
  Task<absl::StatusOr<MetricsAnswer>> AskTwice(ConnectionPtr connection, BatchItem item,
                                               Deadline deadline);

  FlightPtr JoinOrStart(const ConnectionPtr& connection, BatchItem item, Deadline deadline);
  Task<void> SendWindow(ConnectionPtr connection);
  void Land(const FlightPtr& flight, absl::StatusOr<MetricsAnswer> answer);

  using BatchPtr = std::shared_ptr<Batch>;
  Task<void> RunBatch(BatchPtr batch);
  Task<void> RunCall(BatchPtr batch, PlannedCall planned);
  Task<absl::Status> Stream(BatchPtr batch, PluginConnection::Permit permit, PlannedCall planned);
  Task<void> RunOneByOne(BatchPtr batch, std::vector<size_t> items);
  Task<void> RunShare(BatchPtr batch, std::shared_ptr<std::vector<size_t>> left);

  // Puts the plugin's name before an error that it gave, and says what an error of gRPC means.
  absl::Status Explain(const PluginConnection::Permit& permit, const char* rpc,
                       const absl::Status& status, bool silent, absl::Duration waited) const;
  void Report(const PluginConnection& connection, const char* rpc, const absl::Status& status,
              SteadyTime started) const;

  PluginDirectory& directory_;
  Clock& clock_;
  const Options options_;
  std::map<FlightKey, FlightPtr> flights_;
  std::map<ConnectionPtr, std::vector<FlightPtr>> windows_;
};

}  // namespace outrigger::host
