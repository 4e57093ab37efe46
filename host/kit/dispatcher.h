// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "host/base/deadline.h"
#include "host/base/logging.h"
#include "host/kit/label_selector.h"
#include "host/kit/trigger_cache.h"
#include "host/kit/trigger_scaler.h"

namespace outrigger::host::kit {

struct DispatcherOptions {
  std::string name;  // of the plugin, e.g. "outrigger-scaler-redis"
  std::string version;
  uint32_t max_batch_entries = 200;
  uint32_t max_message_bytes = 1 << 20;  // of a request
  uint32_t max_answer_bytes = 256 << 10;
  uint32_t max_values = 1000;  // per answer
  uint32_t max_concurrent_calls = 64;
  size_t cached_triggers = 20'000;
  // A read without a deadline of its caller ends after this, and none runs longer.
  absl::Duration max_read_time = absl::Seconds(60);
  // False (tests only): answers go out as the scaler gave them, NaN and all.
  bool check_answers = true;
};

// The Scaler service without its wire: finds the trigger's scaler, parses or finds the parsed
// trigger, asks, keeps every deadline, checks answers, and turns batches into as few reads as can
// be.
//
// Thread-safe, never blocks. `clock` and the scalers must outlive every answer. Callbacks run on
// the thread of whoever completed the read: a scaler's, the clock's, or the caller's own.
class Dispatcher {
 public:
  using Answer = std::function<void(absl::StatusOr<scaler::v1::GetMetricsResponse>)>;
  using IndexedAnswer =
      std::function<void(uint32_t index, absl::StatusOr<scaler::v1::GetMetricsResponse>)>;

  Dispatcher(DispatcherOptions options, Clock& clock, Logger logger,
             std::vector<std::unique_ptr<TriggerScaler>> scalers);

  std::vector<std::string> TriggerTypes() const;
  scaler::v1::DescribeResponse Describe() const;

  // INVALID_ARGUMENT: unknown trigger type, naming the ones served.
  absl::StatusOr<scaler::v1::ValidateTriggerResponse> ValidateTrigger(
      const scaler::v1::Trigger& trigger) const;
  // INVALID_ARGUMENT names every violation.
  absl::StatusOr<scaler::v1::GetMetricSpecForScalingResponse> GetSpecs(
      const scaler::v1::Trigger& trigger);

  // `answer` is called exactly once, by `deadline` at the latest. NOT_FOUND: the trigger has no
  // metric of that name. RESOURCE_EXHAUSTED: too many calls at
  // once. INTERNAL: the scaler's answer
  // is too large or not finite. Else what the scaler says.
  void GetMetrics(const scaler::v1::GetMetricsRequest& request, Deadline deadline, Answer answer);

  // Not OK: the whole call is refused and nobody is called back. Else `answer` is called exactly
  // once per entry, by the entry's own timeout or `deadline` at the latest.
  absl::Status BatchGetMetrics(const scaler::v1::BatchGetMetricsRequest& request, Deadline deadline,
                               const IndexedAnswer& answer);

  // From now on calls that would read are UNAVAILABLE ("draining").
  void StopAccepting();
  // Blocks until no call runs, or until the deadline; for main() at the end. False: some still run.
  bool WaitUntilIdle(Deadline deadline);

 private:
  struct Parsed;
  struct Question;
  struct PendingRead;
  class Calls;
  class CallTicket;
  class ReadGroups;

  TriggerScaler* FindScaler(const std::string& type) const;
  absl::StatusOr<Parsed> ParseTrigger(
      const scaler::v1::Trigger& trigger,
      const google::protobuf::Map<std::string, std::string>* credentials);
  absl::StatusOr<Question> MakeQuestion(
      const scaler::v1::GetMetricsRequest& request,
      const google::protobuf::Map<std::string, std::string>* credentials);
  absl::Status CheckBatch(const scaler::v1::BatchGetMetricsRequest& request) const;
  Deadline EntryDeadline(const scaler::v1::BatchEntry& entry, Deadline deadline) const;
  absl::StatusOr<std::shared_ptr<CallTicket>> AdmitCall();
  void Send(const std::vector<std::shared_ptr<PendingRead>>& reads);
  absl::StatusOr<scaler::v1::GetMetricsResponse> MakeResponse(const Question& question,
                                                              const Reading& reading) const;

  const DispatcherOptions options_;
  Clock& clock_;
  const Logger logger_;
  const std::vector<std::unique_ptr<TriggerScaler>> scalers_;
  TriggerCache cache_;
  const std::shared_ptr<Calls> calls_;
};

}  // namespace outrigger::host::kit
