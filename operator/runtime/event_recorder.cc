// SPDX-License-Identifier: Apache-2.0
#include "operator/runtime/event_recorder.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <utility>

#include "host/base/status.h"

namespace outrigger::controller::runtime {
namespace {

constexpr size_t kLongestNote = 1024;
constexpr absl::Duration kSendTimeout = absl::Seconds(10);

std::string CutNote(absl::string_view note) {
  if (note.size() <= kLongestNote) return std::string(note);
  size_t end = kLongestNote - 3;
  while (end > 0 && (static_cast<unsigned char>(note[end]) & 0xC0) == 0x80) --end;
  return absl::StrCat(note.substr(0, end), "...");
}

}  // namespace

EventRecorder::EventRecorder(host::Clock& clock, kube::Api& api, WriteGate& gate,
                             host::Executor strand, host::Logger log, Options options)
    : clock_(clock),
      api_(api),
      gate_(gate),
      sends_(clock, std::move(strand)),
      log_(std::move(log)),
      options_(std::move(options)) {}

bool EventRecorder::Allow(const std::string& uid, absl::string_view reason) {
  const host::SteadyTime now = clock_.SteadyNow();
  const Allowance full{.events = static_cast<double>(options_.at_once), .at = now};
  Allowance& allowance = allowances_.try_emplace({uid, std::string(reason)}, full).first->second;
  const double refilled = absl::FDivDuration(now - allowance.at, options_.then_every);
  allowance = {.events = std::min(full.events, allowance.events + refilled), .at = now};
  if (allowance.events < 1) return false;
  allowance.events -= 1;
  return true;
}

void EventRecorder::Record(const EventTarget& target, absl::string_view type,
                           absl::string_view reason, absl::string_view note) {
  if (waiting_ >= options_.most_waiting || !Allow(target.uid, reason)) return;
  boost::json::object regarding;
  regarding["apiVersion"] = target.api_version;
  regarding["kind"] = target.kind;
  regarding["namespace"] = target.key.namespace_name;
  regarding["name"] = target.key.name;
  regarding["uid"] = target.uid;
  boost::json::object metadata;
  // Unique over restarts: time and a counter.
  metadata["name"] = absl::StrFormat("%s.%x%04x", target.key.name.substr(0, 200),
                                     absl::ToUnixNanos(clock_.WallNow()), ++sequence_ & 0xFFFF);
  metadata["namespace"] = target.key.namespace_name;
  boost::json::object event;
  event["apiVersion"] = "events.k8s.io/v1";
  event["kind"] = "Event";
  event["metadata"] = std::move(metadata);
  event["eventTime"] =
      absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", clock_.WallNow(), absl::UTCTimeZone());
  event["reportingController"] = "outrigger-operator";
  event["reportingInstance"] = options_.instance;
  event["action"] = std::string(reason);
  event["reason"] = std::string(reason);
  event["type"] = std::string(type);
  event["note"] = CutNote(note);
  event["regarding"] = std::move(regarding);
  ++waiting_;
  sends_.Spawn(Send(std::move(event), target.key.namespace_name));
}

host::Task<void> EventRecorder::Send(boost::json::object event, std::string namespace_name) {
  WriteGate::Permit permit = co_await gate_.Acquire(WriteLane::kEvent);
  const std::string reason(event["reason"].as_string());
  absl::StatusOr<boost::json::value> created =
      co_await api_.Create(kube::Events(), std::move(namespace_name), std::move(event),
                           kube::WriteOptions{}, host::Deadline::After(clock_, kSendTimeout));
  --waiting_;
  if (!created.ok()) {
    log_.Warning("event was not published",
                 {{"reason", reason}, {"error", host::Describe(created.status())}});
  }
}

void EventRecorder::Forget(const std::string& uid) {
  auto it = allowances_.lower_bound({uid, ""});
  while (it != allowances_.end() && it->first.first == uid) it = allowances_.erase(it);
}

}  // namespace outrigger::controller::runtime
