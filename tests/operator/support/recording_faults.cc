// SPDX-License-Identifier: Apache-2.0
#include "tests/operator/support/recording_faults.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

namespace outrigger::controller {
namespace {

std::string TextOf(const kube::MemoryCall& call) {
  return absl::StrCat(call.verb, " ", call.resource.ToString(), call.subresource.empty() ? "" : "/",
                      call.subresource, " ", call.namespace_name, "/", call.name);
}

bool TakeOwn(std::multiset<std::string>& own, const std::string& text) {
  auto it = own.find(text);
  if (it == own.end()) return false;
  own.erase(it);
  return true;
}

}  // namespace

void RecordingFaults::Fail(std::string part, absl::Status error, int times, absl::Duration delay) {
  before_.push_back(
      {.part = std::move(part), .error = std::move(error), .delay = delay, .times = times});
}

void RecordingFaults::LoseAnswer(std::string part, absl::Status error, int times) {
  after_.push_back({.part = std::move(part), .error = std::move(error), .times = times});
}

int RecordingFaults::Count(absl::string_view part) const {
  return static_cast<int>(std::count_if(calls_.begin(), calls_.end(), [&](const std::string& call) {
    return absl::StrContains(call, part);
  }));
}

std::vector<std::string> RecordingFaults::Writes() const {
  std::vector<std::string> writes;
  for (const std::string& call : calls_) {
    const bool read = absl::StartsWith(call, "get ") || absl::StartsWith(call, "list ") ||
                      absl::StartsWith(call, "watch ");
    if (!read) writes.push_back(call);
  }
  return writes;
}

RecordingFaults::Fault RecordingFaults::Take(std::list<Planned>& planned, const std::string& text) {
  for (auto it = planned.begin(); it != planned.end(); ++it) {
    if (!absl::StrContains(text, it->part)) continue;
    const Fault fault{.delay = it->delay, .error = it->error};
    if (--it->times == 0) planned.erase(it);
    return fault;
  }
  return {};
}

RecordingFaults::Fault RecordingFaults::BeforeCall(const kube::MemoryCall& call) {
  const std::string text = TextOf(call);
  if (TakeOwn(own_before_, text)) return {};
  calls_.push_back(text);
  if (on_call_) on_call_(text);
  return Take(before_, text);
}

RecordingFaults::Fault RecordingFaults::AfterCall(const kube::MemoryCall& call,
                                                  const absl::Status&) {
  const std::string text = TextOf(call);
  return TakeOwn(own_after_, text) ? Fault() : Take(after_, text);
}

}  // namespace outrigger::controller
