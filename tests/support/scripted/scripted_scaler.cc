// SPDX-License-Identifier: Apache-2.0
#include "tests/support/scripted/scripted_scaler.h"

#include <absl/strings/str_cat.h>

#include <cstdlib>

#include "tests/support/scripted/stamp.h"

namespace outrigger::tests {
namespace {

using host::kit::ParsedTrigger;
using host::kit::Reading;
using host::kit::ReadRequest;
using test::v1::Behaviour;
using test::v1::CallsResponse;

struct ScriptedTrigger : public ParsedTrigger {
  std::string script;
  std::string metric_name;
};

const ScriptedTrigger& AsScripted(const ParsedTrigger& trigger) {
  return static_cast<const ScriptedTrigger&>(trigger);
}

void Add(const CallsResponse& from, CallsResponse& to) {
  to.set_parses(to.parses() + from.parses());
  to.set_specs(to.specs() + from.specs());
  to.set_reads(to.reads() + from.reads());
  to.set_polls(to.polls() + from.polls());
  to.set_rounds(to.rounds() + from.rounds());
}

absl::StatusOr<Reading> ReadingOf(const ScriptedTrigger& trigger, const Behaviour& behaviour,
                                  absl::Time now) {
  if (behaviour.code() != 0) {
    return absl::Status(static_cast<absl::StatusCode>(behaviour.code()), behaviour.message());
  }
  Reading reading;
  for (const test::v1::Value& wanted : behaviour.values()) {
    scaler::v1::MetricValue& value = reading.values.emplace_back();
    value.set_name(wanted.name().empty() ? trigger.metric_name : wanted.name());
    value.set_value(wanted.value());
    *value.mutable_labels() = wanted.labels();
    reading.active = reading.active || wanted.value() > 0;
  }
  if (reading.values.empty()) reading.values.emplace_back().set_name(trigger.metric_name);
  if (behaviour.stamped()) reading.values[0].set_value(StampOf(now));
  if (behaviour.has_active()) reading.active = behaviour.active();
  reading.retry_after = absl::Milliseconds(behaviour.retry_after_ms());
  if (behaviour.padding_bytes() > 0) {
    (*reading.values[0].mutable_labels())["padding"] =
        std::string(static_cast<size_t>(behaviour.padding_bytes()), 'x');
  }
  return reading;
}

}  // namespace

void ScriptBook::Set(const std::string& script, const Behaviour& behaviour) {
  std::vector<ReadRequest> released;
  {
    host::MutexLock lock(&mutex_);
    behaviours_[script] = behaviour;
    const auto [begin, end] = hanging_.equal_range(script);
    for (auto it = begin; it != end; ++it) released.push_back(std::move(it->second));
    hanging_.erase(begin, end);
  }
  for (const ReadRequest& request : released) request.done(absl::UnavailableError("was hanging"));
}

Behaviour ScriptBook::Find(const std::string& script) const {
  host::MutexLock lock(&mutex_);
  const auto it = behaviours_.find(script);
  return it == behaviours_.end() ? Behaviour() : it->second;
}

CallsResponse ScriptBook::Calls(const std::string& script) const {
  host::MutexLock lock(&mutex_);
  CallsResponse sum;
  for (const auto& [name, calls] : calls_) {
    if (script.empty() || name == script) Add(calls, sum);
  }
  return sum;
}

void ScriptBook::CountParse(const std::string& script) {
  host::MutexLock lock(&mutex_);
  CallsResponse& calls = calls_[script];
  calls.set_parses(calls.parses() + 1);
}

void ScriptBook::CountSpecs(const std::string& script) {
  host::MutexLock lock(&mutex_);
  CallsResponse& calls = calls_[script];
  calls.set_specs(calls.specs() + 1);
}

void ScriptBook::CountRead(const std::string& script, bool poll, bool first_of_round) {
  host::MutexLock lock(&mutex_);
  CallsResponse& calls = calls_[script];
  calls.set_reads(calls.reads() + 1);
  if (poll) calls.set_polls(calls.polls() + 1);
  if (first_of_round) calls.set_rounds(calls.rounds() + 1);
}

void ScriptBook::Hang(const std::string& script, ReadRequest request) {
  host::MutexLock lock(&mutex_);
  hanging_.emplace(script, std::move(request));
}

ScriptedScaler::ScriptedScaler(std::string type, host::Clock& clock, ScriptBook& book)
    : clock_(clock), book_(book) {
  schema_.type = std::move(type);
  schema_.description = "Answers what a test sets.";
  schema_.open = true;
  schema_.parameters = {
      {.name = "script", .default_value = "default", .description = "Name of the script."},
      {.name = "password",
       .secret = true,
       .sources = {host::kit::Source::kMetadata, host::kit::Source::kEnvironment,
                   host::kit::Source::kAuthentication},
       .description = "Accepted and not used."}};
}

std::shared_ptr<const ParsedTrigger> ScriptedScaler::Parse(
    const host::kit::Parameters& parameters, const scaler::v1::Trigger&,
    host::kit::Violations& violations) const {
  auto trigger = std::make_shared<ScriptedTrigger>();
  trigger->script = parameters.String("script");
  trigger->metric_name = host::kit::NormaliseMetricName(absl::StrCat("scripted-", trigger->script));
  book_.CountParse(trigger->script);
  const std::string violation = book_.Find(trigger->script).violation();
  if (!violation.empty()) violations.Add("script", violation, host::kit::Quoted(trigger->script));
  return trigger;
}

std::vector<scaler::v1::MetricSpec> ScriptedScaler::Specs(const ParsedTrigger& parsed) const {
  const ScriptedTrigger& trigger = AsScripted(parsed);
  book_.CountSpecs(trigger.script);
  const Behaviour behaviour = book_.Find(trigger.script);
  std::vector<scaler::v1::MetricSpec> specs;
  if (behaviour.no_specs()) return specs;
  for (const test::v1::Spec& wanted : behaviour.specs()) {
    scaler::v1::MetricSpec& spec = specs.emplace_back();
    spec.set_name(wanted.name());
    spec.set_target(wanted.target());
  }
  if (!specs.empty()) return specs;
  scaler::v1::MetricSpec& spec = specs.emplace_back();
  spec.set_name(trigger.metric_name);
  spec.set_target(5);
  return specs;
}

void ScriptedScaler::Read(std::vector<ReadRequest> requests) {
  bool first = true;
  for (ReadRequest& request : requests) {
    ReadOne(std::move(request), first);
    first = false;
  }
}

void ScriptedScaler::ReadOne(ReadRequest request, bool first_of_round) {
  const ScriptedTrigger& trigger = AsScripted(*request.trigger);
  book_.CountRead(trigger.script, request.poll, first_of_round);
  const Behaviour behaviour = book_.Find(trigger.script);
  if (behaviour.crash()) std::abort();
  if (behaviour.hang()) return book_.Hang(trigger.script, std::move(request));
  absl::StatusOr<Reading> reading = ReadingOf(trigger, behaviour, clock_.WallNow());
  if (behaviour.delay_ms() <= 0) return request.done(std::move(reading));
  clock_.AddTimer(
      clock_.SteadyNow() + absl::Milliseconds(behaviour.delay_ms()),
      [done = std::move(request.done), reading = std::move(reading)] { done(reading); });
}

}  // namespace outrigger::tests
