// SPDX-License-Identifier: Apache-2.0
#include "operator/local/process_runner.h"

#include <absl/strings/str_cat.h>
#include <signal.h>

#include <algorithm>
#include <utility>

#include "host/base/status.h"
#include "operator/api/object_reader.h"

namespace outrigger::controller::local {
namespace {

namespace json = boost::json;

absl::StatusOr<size_t> ReplicasOf(const json::object& spec) {
  int32_t replicas = 1;
  const json::value whole = spec;
  api::ObjectReader reader("spec", whole);
  reader.Read("replicas", replicas);
  RETURN_IF_ERROR(reader.status());
  return static_cast<size_t>(std::max(replicas, 0));
}

}  // namespace

ProcessRunner::ProcessRunner(host::Clock& clock, const host::Logger& log, api::NamespacedName key,
                             Options options, std::function<void()> changed)
    : clock_(clock),
      log_(log.With({{"deployment", key.ToString()}})),
      key_(std::move(key)),
      options_(std::move(options)),
      changed_(std::move(changed)) {}

absl::Status ProcessRunner::Apply(const json::object& spec) {
  ASSIGN_OR_RETURN(const size_t replicas, ReplicasOf(spec));
  ASSIGN_OR_RETURN(command_, ParseContainerCommand(spec));
  wanted_ = replicas;
  wake_.Notify();
  return absl::OkStatus();
}

Workload::Counts ProcessRunner::counts() const {
  Counts counts;
  for (const Replica& replica : replicas_) {
    if (replica.process == nullptr) continue;
    ++counts.replicas;
    if (!replica.ending) ++counts.ready;
  }
  return counts;
}

void ProcessRunner::Stop() {
  stopping_ = true;
  wake_.Notify();
}

void ProcessRunner::Kill() {
  for (Replica& replica : replicas_) replica.process.reset();
  Stop();
}

host::Task<void> ProcessRunner::Run() {
  while (!stopping_ || !replicas_.empty()) {
    const Counts before = counts();
    Step();
    if (!(counts() == before)) changed_();
    if (stopping_ && replicas_.empty()) break;
    co_await wake_.WaitUntil(clock_, NextLook());
  }
}

host::SteadyTime ProcessRunner::NextLook() const {
  host::SteadyTime next = host::SteadyTime::InfiniteFuture();
  for (size_t i = 0; i < replicas_.size(); ++i) {
    const Replica& replica = replicas_[i];
    // It has ended before one behind it, for which alone its place is kept.
    if (replica.process == nullptr && !Wanted(i)) continue;
    const host::SteadyTime at =
        replica.process == nullptr ? replica.start_at : clock_.SteadyNow() + options_.poll_period;
    next = std::min(next, at, [](host::SteadyTime a, host::SteadyTime b) { return a < b; });
  }
  return next;
}

void ProcessRunner::Step() {
  if (!stopping_ && replicas_.size() < wanted_) replicas_.resize(wanted_);
  for (size_t i = 0; i < replicas_.size(); ++i) {
    Replica& replica = replicas_[i];
    if (replica.process != nullptr) {
      const bool outdated = !(replica.command == command_);
      if (!replica.ending && (!Wanted(i) || outdated)) End(replica);
      Reap(replica, i);
    }
    if (replica.process == nullptr && Wanted(i) && clock_.SteadyNow() >= replica.start_at) {
      Start(replica, i);
    }
  }
  while (!replicas_.empty() && !Wanted(replicas_.size() - 1) &&
         replicas_.back().process == nullptr) {
    replicas_.pop_back();
  }
}

void ProcessRunner::End(Replica& replica) {
  replica.ending = true;
  replica.kill_at = clock_.SteadyNow() + replica.command.grace;
  replica.process->Signal(SIGTERM);
}

void ProcessRunner::Reap(Replica& replica, size_t index) {
  const std::optional<std::string> end = replica.process->Poll();
  if (!end.has_value()) {
    if (replica.ending && clock_.SteadyNow() >= replica.kill_at) replica.process->Signal(SIGKILL);
    return;
  }
  replica.process.reset();
  const bool was_asked_to = std::exchange(replica.ending, false);
  if (was_asked_to) return;
  if (clock_.SteadyNow() - replica.started >= options_.reset_backoff_after) {
    replica.backoff = absl::ZeroDuration();
  }
  BackOff(replica, index, absl::StrCat("ended by itself with ", *end));
}

void ProcessRunner::BackOff(Replica& replica, size_t index, const std::string& why) {
  replica.backoff = replica.backoff == absl::ZeroDuration()
                        ? options_.first_backoff
                        : std::min(2 * replica.backoff, options_.longest_backoff);
  replica.start_at = clock_.SteadyNow() + replica.backoff;
  const std::string after = absl::FormatDuration(replica.backoff);
  log_.Warning("a replica is started again",
               {{"replica", static_cast<int64_t>(index)}, {"why", why}, {"after", after}});
  if (options_.print) {
    options_.print(absl::StrCat(key_.ToString(), ": replica ", index, " ", why,
                                "; it is started again in ", after));
  }
}

void ProcessRunner::Start(Replica& replica, size_t index) {
  const std::string name = absl::StrCat(key_.name, "-", index);
  ChildProcess::Options options{
      .argv = command_.argv, .env = command_.env, .working_dir = command_.working_dir};
  options.env.emplace("HOSTNAME", name);
  if (!options_.log_folder.empty()) {
    options.output_file =
        absl::StrCat(options_.log_folder, "/", key_.namespace_name, ".", name, ".log");
  }
  absl::StatusOr<std::unique_ptr<ChildProcess>> process = ChildProcess::Start(options);
  replica.command = command_;
  replica.started = clock_.SteadyNow();
  if (process.ok()) {
    replica.process = *std::move(process);
    return;
  }
  BackOff(replica, index, absl::StrCat("cannot be started: ", process.status().message()));
}

}  // namespace outrigger::controller::local
