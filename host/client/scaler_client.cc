// SPDX-License-Identifier: Apache-2.0
#include "host/client/scaler_client.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

#include "host/base/event.h"
#include "host/base/status.h"
#include "host/client/answer_check.h"

namespace outrigger::host {
namespace {

using Answer = absl::StatusOr<MetricsAnswer>;

// gRPC rounds a deadline to its own clock's milliseconds.
constexpr absl::Duration kDeadlineSlack = absl::Milliseconds(5);
// How long a plugin may take to end a stream of which all has come, before it is cancelled.
constexpr absl::Duration kLinger = absl::Milliseconds(50);

bool EndedAtDeadline(const absl::Status& status, const Clock& clock, Deadline deadline) {
  return absl::IsDeadlineExceeded(status) && deadline.Remaining(clock) <= kDeadlineSlack;
}

// A plugin that keeps its entries' timeouts answers each just before we stop waiting for it, so
// that its own words are heard.
absl::Duration TimeoutForPlugin(absl::Duration remaining) {
  return remaining - std::min(absl::Milliseconds(100), remaining / 20);
}

bool HasSecrets(const scaler::v1::Trigger& trigger) {
  return !trigger.authentication().empty() || !trigger.environment().empty();
}

absl::Status NoAnswer(const PluginConnection& connection, absl::Duration waited) {
  return absl::DeadlineExceededError(absl::StrCat(
      "plugin ", connection.name(), ": no answer within ", absl::FormatDuration(waited)));
}

}  // namespace

// The items of one plugin, each settled exactly once.
struct ScalerClient::Batch {
  ConnectionPtr connection;
  std::vector<BatchItem> items;
  std::vector<size_t> ids;  // what on_answer is told
  std::function<void(size_t, Answer)> on_answer;
  SteadyTime started;
  std::vector<Deadline> deadlines;
  std::vector<bool> settled;

  void Add(size_t id, BatchItem item, Deadline deadline) {
    ids.push_back(id);
    items.push_back(std::move(item));
    deadlines.push_back(deadline);
    settled.push_back(false);
  }
  void Settle(size_t i, Answer answer) {
    if (settled[i]) return;
    settled[i] = true;
    on_answer(ids[i], std::move(answer));
  }
  void Fail(const std::vector<size_t>& which, const absl::Status& status) {
    for (size_t i : which) Settle(i, status);
  }
  void Expire(const std::vector<size_t>& which, SteadyTime now) {
    for (size_t i : which) {
      if (deadlines[i].time() <= now) {
        Settle(i, NoAnswer(*connection, deadlines[i].time() - started));
      }
    }
  }
  std::vector<size_t> Unsettled(const std::vector<size_t>& which) const {
    std::vector<size_t> left;
    std::copy_if(which.begin(), which.end(), std::back_inserter(left),
                 [&](size_t i) { return !settled[i]; });
    return left;
  }
  // Of the unsettled ones; InfiniteFuture: there is none.
  SteadyTime FirstDeadline(const std::vector<size_t>& which) const {
    SteadyTime first = SteadyTime::InfiniteFuture();
    for (size_t i : which) {
      if (!settled[i]) first = std::min(first, deadlines[i].time());
    }
    return first;
  }
  Deadline LastDeadline(const std::vector<size_t>& which) const {
    SteadyTime last = started;
    for (size_t i : which) last = std::max(last, deadlines[i].time());
    return Deadline::At(last);
  }
  void Take(const std::vector<size_t>& which, scaler::v1::BatchGetMetricsResponse response) {
    if (response.index() >= which.size()) return;  // of no entry of ours
    const size_t i = which[response.index()];
    Answer answer = absl::InternalError("want an answer or an error, got neither");
    if (response.has_answer()) {
      answer = CheckAnswer(std::move(*response.mutable_answer()), items[i].query);
    } else if (response.has_error()) {
      answer = EntryStatus(response.error());
    }
    if (!answer.ok()) answer = Annotate(answer.status(), "plugin ", connection->name());
    Settle(i, std::move(answer));
  }
};

struct ScalerClient::Flight {
  BatchItem item;
  Deadline deadline = Deadline::Never();
  FlightKey key;
  std::optional<Answer> answer;
  Event landed;
};

ScalerClient::ScalerClient(PluginDirectory& directory, Options options)
    : directory_(directory), clock_(directory.clock()), options_(std::move(options)) {}

std::optional<std::string> ScalerClient::PluginFor(const std::string& trigger_type) const {
  const ConnectionPtr connection = directory_.Serving(trigger_type);
  if (connection == nullptr) return std::nullopt;
  return connection->name();
}

std::optional<scaler::v1::TriggerType> ScalerClient::SchemaFor(
    const std::string& trigger_type) const {
  return directory_.SchemaFor(trigger_type);
}

std::string ScalerClient::SchemaVersion(const std::string& trigger_type) const {
  return directory_.SchemaVersion(trigger_type);
}

absl::StatusOr<ScalerClient::ConnectionPtr> ScalerClient::Route(
    const scaler::v1::Trigger& trigger) const {
  ConnectionPtr connection = directory_.Serving(trigger.type());
  if (connection == nullptr) return directory_.WhyNotServed(trigger.type());
  if (!connection->is_protected() && HasSecrets(trigger)) {
    return absl::FailedPreconditionError(
        absl::StrCat("plugin ", connection->name(),
                     ": want a Unix socket or mutual TLS for a trigger with "
                     "credentials, got the plain address ",
                     connection->address().target));
  }
  return connection;
}

// ---- one call -------------------------------------------------------------------------------

absl::Status ScalerClient::Explain(const PluginConnection::Permit& permit, const char* rpc,
                                   const absl::Status& status, bool silent,
                                   absl::Duration waited) const {
  if (status.ok()) return status;
  const PluginConnection& connection = permit.connection();
  if (silent) return NoAnswer(connection, waited);
  if (absl::IsUnavailable(status) && !permit.channel().Ready()) {
    absl::Status lost =
        Annotate(status, "plugin ", connection.name(), ": connection lost during the call");
    MarkPluginUnreachable(lost);
    return lost;
  }
  if (absl::IsUnimplemented(status)) {
    return Annotate(status, "plugin ", connection.name(), ": ", rpc);
  }
  return Annotate(status, "plugin ", connection.name());
}

void ScalerClient::Report(const PluginConnection& connection, const char* rpc,
                          const absl::Status& status, SteadyTime started) const {
  if (!options_.on_call) return;
  options_.on_call(connection.name(), rpc, status.code(), clock_.SteadyNow() - started);
}

template <typename Response, typename Call>
Task<absl::StatusOr<Response>> ScalerClient::Ask(ConnectionPtr connection, const char* rpc,
                                                 Call call, Deadline deadline) {
  const SteadyTime started = clock_.SteadyNow();
  CO_ASSIGN_OR_RETURN(const PluginConnection::Permit permit,
                      co_await connection->Acquire(deadline));
  // A call without time would end as a silent one, and tell nothing of the plugin.
  if (deadline.Remaining(clock_) <= kDeadlineSlack) {
    co_return NoAnswer(*connection, clock_.SteadyNow() - started);
  }
  absl::StatusOr<Response> response = co_await call(permit.channel(), deadline);
  const bool silent = EndedAtDeadline(response.status(), clock_, deadline);
  if (silent) {
    permit.Silent();
  } else if (!absl::IsCancelled(response.status())) {
    permit.Answered();
  }
  Report(*connection, rpc, response.status(), started);
  if (!response.ok()) {
    co_return Explain(permit, rpc, response.status(), silent, deadline.time() - started);
  }
  co_return response;
}

Task<absl::StatusOr<std::vector<scaler::v1::Violation>>> ScalerClient::ValidateTrigger(
    TriggerPtr trigger, Deadline deadline) {
  using Response = scaler::v1::ValidateTriggerResponse;
  CO_ASSIGN_OR_RETURN(ConnectionPtr connection, Route(*trigger));
  const auto call = [trigger](PluginChannel& channel, Deadline until) {
    scaler::v1::ValidateTriggerRequest request;
    *request.mutable_trigger() = *trigger;
    return channel.ValidateTrigger(std::move(request), until);
  };
  auto response = co_await Ask<Response>(connection, "ValidateTrigger", call,
                                         deadline.Within(clock_, options_.call_timeout));
  if (absl::IsUnimplemented(response.status())) {
    co_return std::vector<scaler::v1::Violation>();  // optional by contract
  }
  CO_RETURN_IF_ERROR(response.status());
  co_return std::vector<scaler::v1::Violation>(
      std::make_move_iterator(response->mutable_violations()->begin()),
      std::make_move_iterator(response->mutable_violations()->end()));
}

Task<absl::StatusOr<std::vector<scaler::v1::MetricSpec>>> ScalerClient::GetMetricSpecForScaling(
    TriggerPtr trigger, Deadline deadline) {
  using Response = scaler::v1::GetMetricSpecForScalingResponse;
  CO_ASSIGN_OR_RETURN(ConnectionPtr connection, Route(*trigger));
  const auto call = [trigger](PluginChannel& channel, Deadline until) {
    scaler::v1::GetMetricSpecForScalingRequest request;
    *request.mutable_trigger() = *trigger;
    return channel.GetMetricSpecForScaling(std::move(request), until);
  };
  auto response = co_await Ask<Response>(connection, "GetMetricSpecForScaling", call,
                                         deadline.Within(clock_, options_.call_timeout));
  CO_RETURN_IF_ERROR(response.status());
  auto specs = CheckSpecs(*std::move(response));
  if (!specs.ok()) co_return Annotate(specs.status(), "plugin ", connection->name());
  co_return specs;
}

Task<Answer> ScalerClient::AskOnce(ConnectionPtr connection, BatchItem item, Deadline deadline) {
  using Response = scaler::v1::GetMetricsResponse;
  const auto call = [item](PluginChannel& channel, Deadline until) {
    return channel.GetMetrics(MakeRequest(item), until);
  };
  auto response = co_await Ask<Response>(connection, "GetMetrics", call, deadline);
  CO_RETURN_IF_ERROR(response.status());
  Answer answer = CheckAnswer(*std::move(response), item.query);
  if (!answer.ok()) co_return Annotate(answer.status(), "plugin ", connection->name());
  co_return answer;
}

Task<Answer> ScalerClient::AskTwice(ConnectionPtr connection, BatchItem item, Deadline deadline) {
  Answer answer = co_await AskOnce(connection, item, deadline);
  const bool again = absl::IsUnavailable(answer.status()) &&
                     !IsPluginUnreachable(answer.status()) && !RetryAfter(answer.status()) &&
                     !deadline.Expired(clock_);
  if (again) answer = co_await AskOnce(connection, std::move(item), deadline);
  co_return answer;
}

// ---- reads: single flight and the window ----------------------------------------------------

Task<Answer> ScalerClient::GetMetrics(TriggerPtr trigger, MetricQuery query, Deadline deadline) {
  CO_ASSIGN_OR_RETURN(ConnectionPtr connection, Route(*trigger));
  CO_RETURN_IF_ERROR(connection->Reachable());
  const Deadline until = deadline.Within(clock_, query.timeout);
  BatchItem item{.trigger = std::move(trigger), .query = std::move(query)};
  if (item.query.poll || item.trigger->fingerprint().empty()) {
    Answer answer = co_await AskTwice(std::move(connection), std::move(item), until);
    co_return answer;
  }
  const SteadyTime started = clock_.SteadyNow();
  const FlightPtr flight = JoinOrStart(connection, std::move(item), until);
  while (!flight->answer && !until.Expired(clock_)) {
    co_await flight->landed.WaitUntil(clock_, until.time());
  }
  if (!flight->answer) co_return NoAnswer(*connection, until.time() - started);
  co_return *flight->answer;
}

ScalerClient::FlightPtr ScalerClient::JoinOrStart(const ConnectionPtr& connection, BatchItem item,
                                                  Deadline deadline) {
  FlightKey key(item.trigger->fingerprint(), item.query.metric_name, item.query.selector);
  FlightPtr& flight = flights_[key];
  if (flight != nullptr) return flight;
  flight = std::make_shared<Flight>();
  flight->item = std::move(item);
  flight->deadline = deadline;
  flight->key = std::move(key);
  std::vector<FlightPtr>& window = windows_[connection];
  window.push_back(flight);
  if (window.size() == 1) directory_.tasks().Spawn(SendWindow(connection));
  return flight;
}

void ScalerClient::Land(const FlightPtr& flight, Answer answer) {
  flights_.erase(flight->key);
  flight->answer = std::move(answer);
  flight->landed.NotifyAll();
}

Task<void> ScalerClient::SendWindow(ConnectionPtr connection) {
  co_await clock_.Sleep(options_.window);
  const std::vector<FlightPtr> flights = std::move(windows_[connection]);
  windows_.erase(connection);
  if (flights.size() == 1) {
    const FlightPtr& only = flights.front();
    Answer answer = co_await AskTwice(connection, only->item, only->deadline);
    Land(only, std::move(answer));
    co_return;
  }
  auto batch = std::make_shared<Batch>();
  batch->connection = connection;
  batch->started = clock_.SteadyNow();
  batch->on_answer = [this, &flights](size_t i, Answer answer) {
    Land(flights[i], std::move(answer));
  };
  for (size_t i = 0; i < flights.size(); ++i) {
    batch->Add(i, flights[i]->item, flights[i]->deadline);
  }
  co_await RunBatch(batch);
}

// ---- batches --------------------------------------------------------------------------------

Task<void> ScalerClient::BatchGetMetrics(std::vector<BatchItem> items,
                                         std::function<void(size_t, Answer)> on_answer,
                                         Deadline deadline) {
  std::map<ConnectionPtr, BatchPtr> batches;
  for (size_t i = 0; i < items.size(); ++i) {
    absl::StatusOr<ConnectionPtr> connection = Route(*items[i].trigger);
    if (!connection.ok()) {
      on_answer(i, connection.status());
      continue;
    }
    BatchPtr& batch = batches[*connection];
    if (batch == nullptr) {
      batch = std::make_shared<Batch>();
      batch->connection = *connection;
      batch->started = clock_.SteadyNow();
      batch->on_answer = on_answer;
    }
    const Deadline until = deadline.Within(clock_, items[i].query.timeout);
    batch->Add(i, std::move(items[i]), until);
  }
  TaskGroup group(clock_, directory_.strand());
  for (const auto& [connection, batch] : batches) group.Spawn(RunBatch(batch));
  co_await group.Join();
}

Task<void> ScalerClient::RunBatch(BatchPtr batch) {
  const PluginConnection& connection = *batch->connection;
  std::vector<size_t> all(batch->items.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  if (absl::Status reachable = connection.Reachable(); !reachable.ok()) {
    batch->Fail(all, reachable);
    co_return;
  }
  if (connection.lacks_batch()) {
    co_await RunOneByOne(batch, std::move(all));
    co_return;
  }
  std::vector<absl::Duration> timeouts;
  for (const Deadline& deadline : batch->deadlines) {
    timeouts.push_back(TimeoutForPlugin(deadline.Remaining(clock_)));
  }
  BatchPlan plan = PlanBatch(batch->items, timeouts, LimitsOf(connection.description()->limits()));
  for (const auto& [i, status] : plan.refused) {
    batch->Settle(i, Annotate(status, "plugin ", connection.name()));
  }
  TaskGroup group(clock_, directory_.strand());
  for (PlannedCall& call : plan.calls) group.Spawn(RunCall(batch, std::move(call)));
  co_await group.Join();
}

Task<void> ScalerClient::RunCall(BatchPtr batch, PlannedCall planned) {
  const std::vector<size_t> items = planned.items;
  auto permit = co_await batch->connection->Acquire(batch->LastDeadline(items));
  if (!permit.ok()) {
    batch->Fail(items, permit.status());
    co_return;
  }
  const absl::Status end = co_await Stream(batch, *std::move(permit), std::move(planned));
  std::vector<size_t> left = batch->Unsettled(items);
  if (left.empty()) co_return;
  const bool lacks_batch = absl::IsUnimplemented(end);
  if (lacks_batch) batch->connection->SetLacksBatch();
  if (lacks_batch || IsMessageTooLarge(end)) {
    // One answer that is too large ends the stream; alone, each costs its own trigger only.
    co_await RunOneByOne(batch, std::move(left));
  } else {
    batch->Fail(left, end);
  }
}

Task<absl::Status> ScalerClient::Stream(BatchPtr batch, PluginConnection::Permit permit,
                                        PlannedCall planned) {
  const SteadyTime started = clock_.SteadyNow();
  const std::vector<size_t>& items = planned.items;
  const std::unique_ptr<BatchStream> stream =
      permit.channel().BatchGetMetrics(std::move(planned.request), batch->LastDeadline(items));
  BatchStream::Received received;
  std::optional<SteadyTime> linger_until;
  bool answered = false;
  bool cancelled = false;
  while (!received.end) {
    SteadyTime until = batch->FirstDeadline(items);
    if (linger_until && !cancelled) until = *linger_until;
    received = co_await stream->Next(until);
    for (scaler::v1::BatchGetMetricsResponse& response : received.responses) {
      answered = true;
      batch->Take(items, std::move(response));
    }
    const SteadyTime now = clock_.SteadyNow();
    batch->Expire(items, now);
    if (received.end || !batch->Unsettled(items).empty()) continue;
    if (!linger_until) linger_until = answered ? now + kLinger : now;
    if (now < *linger_until || cancelled) continue;
    cancelled = true;
    stream->Cancel();
  }
  const absl::Status end = *received.end;
  const bool silent =
      !answered && (cancelled || EndedAtDeadline(end, clock_, batch->LastDeadline(items)));
  if (answered) permit.Answered();
  if (silent) permit.Silent();
  if (!answered && !silent && !absl::IsCancelled(end)) permit.Answered();
  Report(permit.connection(), "BatchGetMetrics", cancelled && answered ? absl::OkStatus() : end,
         started);
  if (end.ok()) {
    co_return absl::DeadlineExceededError(
        absl::StrCat("plugin ", permit.connection().name(), ": call ended without an answer"));
  }
  co_return Explain(permit, "BatchGetMetrics", end, silent,
                    batch->LastDeadline(items).time() - started);
}

Task<void> ScalerClient::RunOneByOne(BatchPtr batch, std::vector<size_t> items) {
  const size_t shares = std::min(items.size(), options_.calls_per_batch);
  std::reverse(items.begin(), items.end());  // taken from the back
  auto left = std::make_shared<std::vector<size_t>>(std::move(items));
  TaskGroup group(clock_, directory_.strand());
  for (size_t i = 0; i < shares; ++i) group.Spawn(RunShare(batch, left));
  co_await group.Join();
}

Task<void> ScalerClient::RunShare(BatchPtr batch, std::shared_ptr<std::vector<size_t>> left) {
  while (!left->empty()) {
    const size_t i = left->back();
    left->pop_back();
    Answer answer = co_await AskOnce(batch->connection, batch->items[i], batch->deadlines[i]);
    batch->Settle(i, std::move(answer));
  }
}

}  // namespace outrigger::host
