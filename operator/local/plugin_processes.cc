// SPDX-License-Identifier: Apache-2.0
#include "operator/local/plugin_processes.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <signal.h>

#include <algorithm>
#include <utility>

#include "host/base/status.h"

namespace outrigger::controller::local {
namespace {

constexpr absl::Duration kLookWhileEnding = absl::Milliseconds(20);

bool Runs(const std::unique_ptr<ChildProcess>& process) {
  return process != nullptr && !process->Poll().has_value();
}

}  // namespace

PluginProcesses::PluginProcesses(host::Clock& clock, std::vector<Plugin> plugins, Options options,
                                 Print print)
    : clock_(clock), options_(options), print_(std::move(print)) {
  for (size_t i = 0; i < plugins.size(); ++i) {
    entries_.push_back({.plugin = std::move(plugins[i]),
                        .backoff = host::Backoff(options_.backoff, options_.seed + i)});
  }
}

absl::Status PluginProcesses::Start() {
  for (Entry& entry : entries_) RETURN_IF_ERROR(StartOne(entry));
  return absl::OkStatus();
}

absl::Status PluginProcesses::StartOne(Entry& entry) {
  absl::StatusOr<std::unique_ptr<ChildProcess>> process =
      ChildProcess::Start({.argv = entry.plugin.argv, .output_file = entry.plugin.output_file});
  if (!process.ok()) return host::Annotate(process.status(), "plugin ", entry.plugin.name);
  entry.process = *std::move(process);
  entry.started = clock_.SteadyNow();
  return absl::OkStatus();
}

void PluginProcesses::BackOff(Entry& entry, const std::string& why) {
  const absl::Duration delay = entry.backoff.Next();
  entry.start_at = clock_.SteadyNow() + delay;
  print_(absl::StrFormat("plugin %s: %s; it is started again in %.1f s", entry.plugin.name, why,
                         absl::ToDoubleSeconds(delay)));
}

void PluginProcesses::LookAfter(Entry& entry) {
  if (entry.process == nullptr) {
    if (clock_.SteadyNow() < entry.start_at) return;
    ++entry.restarts;
    const absl::Status started = StartOne(entry);
    if (!started.ok()) BackOff(entry, absl::StrCat("cannot be started: ", started.message()));
    return;
  }
  const std::optional<std::string> end = entry.process->Poll();
  if (!end.has_value()) return;
  entry.process.reset();
  entry.backoff.ConnectionEnded(clock_.SteadyNow() - entry.started);
  BackOff(entry, absl::StrCat("ended with ", *end));
}

host::Task<void> PluginProcesses::Run() {
  while (!stopping_) {
    for (Entry& entry : entries_) LookAfter(entry);
    co_await stop_.WaitUntil(clock_, clock_.SteadyNow() + options_.look);
  }
  co_await EndAll();
}

void PluginProcesses::Stop() {
  stopping_ = true;
  stop_.Notify();
}

void PluginProcesses::Kill() {
  for (Entry& entry : entries_) entry.process.reset();
  Stop();
}

host::Task<void> PluginProcesses::EndAll() {
  for (Entry& entry : entries_) {
    if (entry.process != nullptr) entry.process->Signal(SIGTERM);
  }
  const host::SteadyTime end = clock_.SteadyNow() + options_.grace;
  const auto runs = [](const Entry& entry) { return Runs(entry.process); };
  while (std::any_of(entries_.begin(), entries_.end(), runs) && clock_.SteadyNow() < end) {
    co_await clock_.Sleep(kLookWhileEnding);
  }
  for (Entry& entry : entries_) entry.process.reset();  // kills what is left
}

int PluginProcesses::RestartsOf(const std::string& name) const {
  for (const Entry& entry : entries_) {
    if (entry.plugin.name == name) return entry.restarts;
  }
  return 0;
}

}  // namespace outrigger::controller::local
