// SPDX-License-Identifier: Apache-2.0
#include "host/kit/dispatcher.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_replace.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "host/base/status.h"

namespace outrigger::host::kit {
namespace {

using Map = google::protobuf::Map<std::string, std::string>;

// How much sooner than the asker a scaler must be done, so that its own error arrives first.
absl::Duration Margin(absl::Duration remaining) {
  return std::min(absl::Milliseconds(50), remaining / 10);
}

absl::Duration FromProto(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos());
}

void ToProto(absl::Duration duration, google::protobuf::Duration& proto) {
  const int64_t seconds = absl::IDivDuration(duration, absl::Seconds(1), &duration);
  proto.set_seconds(seconds);
  proto.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(duration)));
}

void SetMeasuredAt(absl::Time time, scaler::v1::MetricValue& value) {
  const int64_t nanos = absl::ToUnixNanos(time);
  value.mutable_measured_at()->set_seconds(nanos / 1'000'000'000);
  value.mutable_measured_at()->set_nanos(static_cast<int32_t>(nanos % 1'000'000'000));
}

// nullptr: the entry carries its own.
const Map* SharedCredentials(const scaler::v1::BatchGetMetricsRequest& request,
                             const scaler::v1::BatchEntry& entry) {
  const scaler::v1::Trigger& trigger = entry.request().trigger();
  if (!trigger.has_credentials_index()) return nullptr;
  return &request.credentials(static_cast<int>(trigger.credentials_index())).authentication();
}

absl::Status CheckFinite(const scaler::v1::MetricValue& value) {
  if (std::isfinite(value.value())) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("metric ", Quoted(value.name()), ": want a finite value, got ", value.value()));
}

}  // namespace

std::string NormaliseMetricName(absl::string_view text) {
  return absl::StrReplaceAll(
      text, {{"/", "-"}, {".", "-"}, {":", "-"}, {"%", "-"}, {"(", "-"}, {")", "-"}});
}

struct Dispatcher::Parsed {
  TriggerScaler* scaler = nullptr;
  std::shared_ptr<const ParsedTrigger> trigger;
  std::string key;  // of the cache; empty without a fingerprint
};

struct Dispatcher::Question {
  Parsed parsed;
  std::string metric_name;
  LabelSelector selector;
  bool poll = false;
};

// How many calls run. Shared with the tickets, which may outlive the dispatcher.
class Dispatcher::Calls {
 public:
  explicit Calls(uint32_t limit) : limit_(limit) {}

  absl::Status Enter() {
    MutexLock lock(&mutex_);
    if (draining_) return absl::UnavailableError("draining");
    if (running_ >= limit_) {
      return absl::ResourceExhaustedError(absl::StrCat("calls at once: want at most ", limit_));
    }
    ++running_;
    return absl::OkStatus();
  }

  void Leave() {
    MutexLock lock(&mutex_);
    --running_;
    changed_.notify_all();
  }

  void Drain() {
    MutexLock lock(&mutex_);
    draining_ = true;
  }

  bool WaitUntilIdle(absl::Duration timeout) {
    MutexLock lock(&mutex_);
    return lock.WaitFor(changed_, absl::ToChronoMilliseconds(timeout),
                        [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return running_ == 0; });
  }

 private:
  const uint32_t limit_;
  Mutex mutex_;
  std::condition_variable changed_;
  uint32_t running_ ABSL_GUARDED_BY(mutex_) = 0;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
};

// One of the calls that run now; counts as long as it lives.
class Dispatcher::CallTicket {
 public:
  explicit CallTicket(std::shared_ptr<Calls> calls) : calls_(std::move(calls)) {}
  ~CallTicket() { calls_->Leave(); }
  CallTicket(const CallTicket&) = delete;
  CallTicket& operator=(const CallTicket&) = delete;

 private:
  const std::shared_ptr<Calls> calls_;
};

// One question to a scaler, and everybody who waits for its answer.
struct Dispatcher::PendingRead {
  // Answered once: by the scaler or by the timer, whoever comes first.
  struct Asker {
    Question question;
    Deadline deadline = Deadline::Never();
    Answer answer;
    std::shared_ptr<CallTicket> ticket;
    std::atomic<bool> answered = false;
    Clock::TimerId timer = 0;  // set before the read starts; only the scaler's path reads it

    // True for the one who may answer, and then calls Finish().
    bool Claim() { return !answered.exchange(true); }

    // Lets go of the caller: a scaler that never ends holds neither its call nor its place.
    void Finish(absl::StatusOr<scaler::v1::GetMetricsResponse> response) {
      ticket.reset();
      std::exchange(answer, nullptr)(std::move(response));
    }
  };
  std::vector<std::shared_ptr<Asker>> askers;

  Deadline LatestDeadline() const {
    Deadline latest = askers.front()->deadline;
    for (const auto& asker : askers) {
      if (latest.time() < asker->deadline.time()) latest = asker->deadline;
    }
    return latest;
  }
};

// Puts the askers of one batch that ask the same question behind one read.
class Dispatcher::ReadGroups {
 public:
  void Add(std::shared_ptr<PendingRead::Asker> asker) {
    const Question& asked = asker->question;
    if (asked.parsed.key.empty()) return AddRead()->askers.push_back(std::move(asker));
    std::shared_ptr<PendingRead>& known = equal_[{asked.parsed.key, asked.metric_name, asked.poll}];
    if (known == nullptr) known = AddRead();
    known->askers.push_back(std::move(asker));
  }

  std::vector<std::shared_ptr<PendingRead>> Take() { return std::move(reads_); }

 private:
  std::shared_ptr<PendingRead> AddRead() {
    reads_.push_back(std::make_shared<PendingRead>());
    return reads_.back();
  }

  std::vector<std::shared_ptr<PendingRead>> reads_;
  std::map<std::tuple<std::string, std::string, bool>, std::shared_ptr<PendingRead>> equal_;
};

Dispatcher::Dispatcher(DispatcherOptions options, Clock& clock, Logger logger,
                       std::vector<std::unique_ptr<TriggerScaler>> scalers)
    : options_(std::move(options)),
      clock_(clock),
      logger_(std::move(logger)),
      scalers_(std::move(scalers)),
      cache_(options_.cached_triggers),
      calls_(std::make_shared<Calls>(options_.max_concurrent_calls)) {}

std::vector<std::string> Dispatcher::TriggerTypes() const {
  std::vector<std::string> types;
  types.reserve(scalers_.size());
  for (const auto& scaler : scalers_) types.push_back(scaler->schema().type);
  return types;
}

scaler::v1::DescribeResponse Dispatcher::Describe() const {
  scaler::v1::DescribeResponse response;
  response.set_name(options_.name);
  response.set_version(options_.version);
  response.add_revisions(1);
  for (const auto& scaler : scalers_) {
    *response.add_trigger_types() = DescribeSchema(scaler->schema());
  }
  response.mutable_limits()->set_max_batch_entries(options_.max_batch_entries);
  response.mutable_limits()->set_max_message_bytes(options_.max_message_bytes);
  response.mutable_limits()->set_max_concurrent_calls(options_.max_concurrent_calls);
  response.mutable_capabilities()->set_validate(true);
  response.mutable_capabilities()->set_batch(true);
  return response;
}

TriggerScaler* Dispatcher::FindScaler(const std::string& type) const {
  for (const auto& scaler : scalers_) {
    if (scaler->schema().type == type) return scaler.get();
  }
  return nullptr;
}

absl::StatusOr<scaler::v1::ValidateTriggerResponse> Dispatcher::ValidateTrigger(
    const scaler::v1::Trigger& trigger) const {
  const TriggerScaler* scaler = FindScaler(trigger.type());
  if (scaler == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("type: want one of ",
                                                   absl::StrJoin(TriggerTypes(), ", "), ", got ",
                                                   Quoted(trigger.type())));
  }
  Violations violations;
  const Parameters parameters = ParseParameters(scaler->schema(), trigger, violations);
  scaler->Parse(parameters, trigger, violations);
  scaler::v1::ValidateTriggerResponse response;
  for (const auto& violation : violations.list()) *response.add_violations() = violation;
  return response;
}

absl::StatusOr<Dispatcher::Parsed> Dispatcher::ParseTrigger(const scaler::v1::Trigger& trigger,
                                                            const Map* credentials) {
  Parsed parsed;
  parsed.scaler = FindScaler(trigger.type());
  if (parsed.scaler == nullptr) return ValidateTrigger(trigger).status();
  if (!trigger.fingerprint().empty()) {
    parsed.key = absl::StrCat(trigger.type(), "/", trigger.fingerprint());
    parsed.trigger = cache_.Find(parsed.key);
    if (parsed.trigger != nullptr) return parsed;
  }
  scaler::v1::Trigger whole;
  if (credentials != nullptr) {
    whole = trigger;
    *whole.mutable_authentication() = *credentials;
  }
  const scaler::v1::Trigger& complete = credentials == nullptr ? trigger : whole;
  Violations violations;
  const Parameters parameters = ParseParameters(parsed.scaler->schema(), complete, violations);
  parsed.trigger = parsed.scaler->Parse(parameters, complete, violations);
  if (!violations.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(trigger.type(), " trigger: ", violations.ToString()));
  }
  if (!parsed.key.empty()) cache_.Insert(parsed.key, parsed.trigger);
  return parsed;
}

absl::StatusOr<scaler::v1::GetMetricSpecForScalingResponse> Dispatcher::GetSpecs(
    const scaler::v1::Trigger& trigger) {
  ASSIGN_OR_RETURN(const Parsed parsed, ParseTrigger(trigger, nullptr));
  scaler::v1::GetMetricSpecForScalingResponse response;
  for (scaler::v1::MetricSpec& spec : parsed.scaler->Specs(*parsed.trigger)) {
    if (spec.metric_type() == scaler::v1::METRIC_TYPE_UNSPECIFIED) {
      spec.set_metric_type(trigger.metric_type());
    }
    *response.add_specs() = std::move(spec);
  }
  return response;
}

absl::StatusOr<Dispatcher::Question> Dispatcher::MakeQuestion(
    const scaler::v1::GetMetricsRequest& request, const Map* credentials) {
  Question question;
  ASSIGN_OR_RETURN(question.parsed, ParseTrigger(request.trigger(), credentials));
  ASSIGN_OR_RETURN(question.selector, LabelSelector::Parse(request.selector()));
  question.poll = request.poll();
  if (!request.has_metric_name()) return question;
  question.metric_name = request.metric_name();
  std::vector<std::string> names;
  for (const auto& spec : question.parsed.scaler->Specs(*question.parsed.trigger)) {
    names.push_back(spec.name());
  }
  if (std::find(names.begin(), names.end(), question.metric_name) != names.end()) return question;
  return absl::NotFoundError(absl::StrCat("metric_name: want one of ", absl::StrJoin(names, ", "),
                                          ", got ", Quoted(question.metric_name)));
}

absl::StatusOr<std::shared_ptr<Dispatcher::CallTicket>> Dispatcher::AdmitCall() {
  RETURN_IF_ERROR(calls_->Enter());
  return std::make_shared<CallTicket>(calls_);
}

void Dispatcher::StopAccepting() { calls_->Drain(); }

bool Dispatcher::WaitUntilIdle(Deadline deadline) {
  return calls_->WaitUntilIdle(deadline.Remaining(clock_));
}

void Dispatcher::GetMetrics(const scaler::v1::GetMetricsRequest& request, Deadline deadline,
                            Answer answer) {
  absl::StatusOr<std::shared_ptr<CallTicket>> ticket = AdmitCall();
  if (!ticket.ok()) return answer(ticket.status());
  absl::StatusOr<Question> question = MakeQuestion(request, nullptr);
  if (!question.ok()) return answer(question.status());
  auto asker = std::make_shared<PendingRead::Asker>();
  asker->question = *std::move(question);
  asker->deadline = deadline.Within(clock_, options_.max_read_time);
  asker->answer = std::move(answer);
  asker->ticket = *std::move(ticket);
  auto read = std::make_shared<PendingRead>();
  read->askers.push_back(std::move(asker));
  Send({std::move(read)});
}

absl::Status Dispatcher::CheckBatch(const scaler::v1::BatchGetMetricsRequest& request) const {
  if (request.entries_size() > static_cast<int>(options_.max_batch_entries)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "entries: want at most ", options_.max_batch_entries, ", got ", request.entries_size()));
  }
  for (int i = 0; i < request.entries_size(); ++i) {
    const scaler::v1::Trigger& trigger = request.entries(i).request().trigger();
    if (!trigger.has_credentials_index()) continue;
    if (static_cast<int64_t>(trigger.credentials_index()) < request.credentials_size()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("entries[", i, "].credentials_index: want below ", request.credentials_size(),
                     ", got ", trigger.credentials_index()));
  }
  return absl::OkStatus();
}

Deadline Dispatcher::EntryDeadline(const scaler::v1::BatchEntry& entry, Deadline deadline) const {
  const Deadline capped = deadline.Within(clock_, options_.max_read_time);
  if (!entry.has_timeout()) return capped;
  return capped.Within(clock_, FromProto(entry.timeout()));
}

absl::Status Dispatcher::BatchGetMetrics(const scaler::v1::BatchGetMetricsRequest& request,
                                         Deadline deadline, const IndexedAnswer& answer) {
  RETURN_IF_ERROR(CheckBatch(request));
  ASSIGN_OR_RETURN(const std::shared_ptr<CallTicket> ticket, AdmitCall());
  ReadGroups groups;
  for (int i = 0; i < request.entries_size(); ++i) {
    const scaler::v1::BatchEntry& entry = request.entries(i);
    const auto index = static_cast<uint32_t>(i);
    absl::StatusOr<Question> question =
        MakeQuestion(entry.request(), SharedCredentials(request, entry));
    if (!question.ok()) {
      answer(index, question.status());
      continue;
    }
    auto asker = std::make_shared<PendingRead::Asker>();
    asker->question = *std::move(question);
    asker->deadline = EntryDeadline(entry, deadline);
    asker->answer = [index, answer](absl::StatusOr<scaler::v1::GetMetricsResponse> response) {
      answer(index, std::move(response));
    };
    asker->ticket = ticket;
    groups.Add(std::move(asker));
  }
  Send(groups.Take());
  return absl::OkStatus();
}

void Dispatcher::Send(const std::vector<std::shared_ptr<PendingRead>>& reads) {
  std::map<TriggerScaler*, std::vector<ReadRequest>> by_scaler;
  for (const std::shared_ptr<PendingRead>& read : reads) {
    for (const auto& asker : read->askers) {
      asker->timer = clock_.AddTimer(asker->deadline.time(), [asker] {
        if (!asker->Claim()) return;
        asker->Finish(absl::DeadlineExceededError("the source has not answered in time"));
      });
    }
    const Question& question = read->askers.front()->question;
    const Deadline deadline = read->LatestDeadline();
    ReadRequest request;
    request.trigger = question.parsed.trigger;
    request.deadline = Deadline::At(deadline.time() - Margin(deadline.Remaining(clock_)));
    request.poll = question.poll;
    request.metric_name = question.metric_name;
    request.done = [this, read](absl::StatusOr<Reading> reading) {
      for (const auto& asker : read->askers) {
        if (!asker->Claim()) continue;
        clock_.CancelTimer(asker->timer);
        if (!reading.ok()) {
          asker->Finish(reading.status());
        } else {
          asker->Finish(MakeResponse(asker->question, *reading));
        }
      }
    };
    by_scaler[question.parsed.scaler].push_back(std::move(request));
  }
  for (auto& [scaler, requests] : by_scaler) scaler->Read(std::move(requests));
}

absl::StatusOr<scaler::v1::GetMetricsResponse> Dispatcher::MakeResponse(
    const Question& question, const Reading& reading) const {
  scaler::v1::GetMetricsResponse response;
  response.set_active(reading.active);
  if (reading.retry_after > absl::ZeroDuration()) {
    ToProto(reading.retry_after, *response.mutable_retry_after());
  }
  for (const scaler::v1::MetricValue& value : reading.values) {
    if (!question.metric_name.empty() && value.name() != question.metric_name) continue;
    if (!question.selector.Matches(value.labels())) continue;
    if (options_.check_answers) RETURN_IF_ERROR(CheckFinite(value));
    scaler::v1::MetricValue& added = *response.add_values();
    added = value;
    if (!added.has_measured_at()) SetMeasuredAt(clock_.WallNow(), added);
  }
  if (!options_.check_answers) return response;
  if (response.values_size() > static_cast<int>(options_.max_values)) {
    return absl::InternalError(absl::StrCat("answer: want at most ", options_.max_values,
                                            " values, got ", response.values_size()));
  }
  if (response.ByteSizeLong() > options_.max_answer_bytes) {
    return absl::InternalError(absl::StrCat("answer: want at most ", options_.max_answer_bytes,
                                            " bytes, got ", response.ByteSizeLong()));
  }
  return response;
}

}  // namespace outrigger::host::kit
