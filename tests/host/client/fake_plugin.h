// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "host/base/clock.h"
#include "host/base/event.h"
#include "host/base/status.h"
#include "host/client/plugin_channel.h"

namespace outrigger::host {

// A plugin without a process: what it does is set by its fields, what it was asked is read from
// them. Time is the FakeClock's. Triggers say what happens to them by their metadata `say`: "hang",
// "error:<code>", "big" (a message above the limit), else a value of 7.
struct FakePlugin {
  explicit FakePlugin(Clock& c) : clock(c) {
    description.set_version("1");
    description.add_revisions(1);
  }

  Clock& clock;
  scaler::v1::DescribeResponse description;
  absl::Status describe_status;
  bool connected = true;
  bool hung = false;  // answers nothing at all
  bool has_batch = true;
  bool has_specs = true;
  absl::Duration latency = absl::ZeroDuration();
  std::vector<absl::Status> next_errors;  // of GetMetrics, taken from the front

  std::vector<SteadyTime> dials;
  int describes = 0;
  int checks = 0;
  int gets = 0;
  int gets_at_once = 0;
  int most_gets_at_once = 0;
  std::vector<int> batches;  // entries of each

  PluginConnector Connector();
};

inline std::string Said(const scaler::v1::Trigger& trigger) {
  auto it = trigger.metadata().find("say");
  return it == trigger.metadata().end() ? "" : it->second;
}

inline absl::StatusOr<scaler::v1::GetMetricsResponse> FakeAnswer(
    const scaler::v1::GetMetricsRequest& request) {
  const std::string said = Said(request.trigger());
  if (said.rfind("error:", 0) == 0) {
    return absl::Status(static_cast<absl::StatusCode>(std::stoi(said.substr(6))), "as told");
  }
  if (said == "big") {
    absl::Status status = absl::ResourceExhaustedError("Received message larger than max");
    MarkMessageTooLarge(status);
    return status;
  }
  scaler::v1::GetMetricsResponse response;
  response.set_active(true);
  scaler::v1::MetricValue* value = response.add_values();
  value->set_name(request.metric_name());
  value->set_value(7);
  return response;
}

class FakeBatchStream : public BatchStream {
 public:
  FakeBatchStream(FakePlugin& plugin, const scaler::v1::BatchGetMetricsRequest& request,
                  Deadline deadline)
      : plugin_(plugin), deadline_(deadline) {
    plugin.batches.push_back(request.entries_size());
    if (plugin.hung) return;
    if (!plugin.has_batch) {
      end_ = absl::UnimplementedError("no batches");
      return;
    }
    bool hangs = false;
    for (int i = 0; i < request.entries_size() && !end_; ++i) {
      const scaler::v1::GetMetricsRequest& entry = request.entries(i).request();
      if (Said(entry.trigger()) == "hang") {
        hangs = true;
        continue;
      }
      Add(i, FakeAnswer(entry));
    }
    if (!hangs && !end_) end_ = absl::OkStatus();
  }

  Task<Received> Next(SteadyTime until) override {
    if (responses_.empty() && !end_) {
      co_await cancelled_.WaitUntil(plugin_.clock, std::min(until, deadline_.time()));
      if (deadline_.Expired(plugin_.clock)) end_ = absl::DeadlineExceededError("Deadline Exceeded");
    }
    Received received{.responses = std::exchange(responses_, {}), .end = end_};
    co_return received;
  }
  void Cancel() override {
    if (!end_) end_ = absl::CancelledError("cancelled");
    cancelled_.Notify();
  }

 private:
  void Add(int index, absl::StatusOr<scaler::v1::GetMetricsResponse> answer) {
    if (IsMessageTooLarge(answer.status())) {
      end_ = answer.status();  // ends the stream, as gRPC does
      return;
    }
    scaler::v1::BatchGetMetricsResponse response;
    response.set_index(index);
    if (answer.ok()) {
      *response.mutable_answer() = *std::move(answer);
    } else {
      response.mutable_error()->set_code(answer.status().raw_code());
      response.mutable_error()->set_message(std::string(answer.status().message()));
    }
    responses_.push_back(std::move(response));
  }

  FakePlugin& plugin_;
  const Deadline deadline_;
  std::vector<scaler::v1::BatchGetMetricsResponse> responses_;
  std::optional<absl::Status> end_;
  Event cancelled_;
};

class FakeChannel : public PluginChannel {
 public:
  explicit FakeChannel(FakePlugin& plugin) : plugin_(plugin) {}

  bool Ready() const override { return plugin_.connected; }
  void CancelAll() override {
    cancelled_ = true;
    cancel_.NotifyAll();
  }

  Task<absl::StatusOr<scaler::v1::DescribeResponse>> Describe(scaler::v1::DescribeRequest,
                                                              Deadline deadline) override {
    plugin_.dials.push_back(plugin_.clock.SteadyNow());
    ++plugin_.describes;
    CO_RETURN_IF_ERROR(co_await Happen(deadline, ""));
    CO_RETURN_IF_ERROR(plugin_.describe_status);
    co_return plugin_.description;
  }
  Task<absl::StatusOr<scaler::v1::ValidateTriggerResponse>> ValidateTrigger(
      scaler::v1::ValidateTriggerRequest, Deadline) override {
    co_return absl::UnimplementedError("no validation");
  }
  Task<absl::StatusOr<scaler::v1::GetMetricSpecForScalingResponse>> GetMetricSpecForScaling(
      scaler::v1::GetMetricSpecForScalingRequest, Deadline) override {
    if (!plugin_.has_specs) co_return absl::UnimplementedError("no such method");
    scaler::v1::GetMetricSpecForScalingResponse response;
    response.add_specs()->set_name("depth");
    response.mutable_specs(0)->set_target(5);
    co_return response;
  }
  Task<absl::StatusOr<scaler::v1::GetMetricsResponse>> GetMetrics(
      scaler::v1::GetMetricsRequest request, Deadline deadline) override {
    ++plugin_.gets;
    plugin_.most_gets_at_once = std::max(plugin_.most_gets_at_once, ++plugin_.gets_at_once);
    const absl::Status happened = co_await Happen(deadline, Said(request.trigger()));
    --plugin_.gets_at_once;
    CO_RETURN_IF_ERROR(happened);
    if (!plugin_.next_errors.empty()) {
      const absl::Status error = plugin_.next_errors.front();
      plugin_.next_errors.erase(plugin_.next_errors.begin());
      co_return error;
    }
    co_return FakeAnswer(request);
  }
  std::unique_ptr<BatchStream> BatchGetMetrics(scaler::v1::BatchGetMetricsRequest request,
                                               Deadline deadline) override {
    return std::make_unique<FakeBatchStream>(plugin_, request, deadline);
  }
  Task<bool> AnswersCheck(Deadline deadline) override {
    ++plugin_.checks;
    const absl::Status happened = co_await Happen(deadline, "");
    co_return happened.ok();
  }

 private:
  Task<absl::Status> Happen(Deadline deadline, std::string said) {
    if (plugin_.hung || said == "hang") {
      while (!cancelled_ && !deadline.Expired(plugin_.clock)) {
        co_await cancel_.WaitUntil(plugin_.clock, deadline.time());
      }
      if (cancelled_) co_return absl::CancelledError("cancelled");
      co_return absl::DeadlineExceededError("Deadline Exceeded");
    }
    if (plugin_.latency > absl::ZeroDuration()) co_await plugin_.clock.Sleep(plugin_.latency);
    co_return absl::OkStatus();
  }

  FakePlugin& plugin_;
  bool cancelled_ = false;
  Event cancel_;
};

inline PluginConnector FakePlugin::Connector() {
  return [this](const PluginAddress&) -> absl::StatusOr<std::shared_ptr<PluginChannel>> {
    return std::make_shared<FakeChannel>(*this);
  };
}

}  // namespace outrigger::host
