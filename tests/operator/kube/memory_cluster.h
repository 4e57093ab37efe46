// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/strings/str_cat.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "host/base/fake_clock.h"
#include "host/base/logging.h"
#include "operator/kube/memory_api.h"
#include "tests/simulation/seeded_executor.h"

namespace outrigger::controller::kube {

// Faults that a test sets as functions; unset ones do nothing.
class ScriptedFaults : public FaultInjector {
 public:
  Fault BeforeCall(const MemoryCall& call) override {
    calls.push_back(absl::StrCat(call.verb, " ", call.resource.plural));
    return before_call ? before_call(call) : Fault();
  }
  Fault AfterCall(const MemoryCall& call, const absl::Status& outcome) override {
    return after_call ? after_call(call, outcome) : Fault();
  }
  WatchFault BeforeEvent(const MemoryCall&, const WatchEvent& event) override {
    return before_event ? before_event(event) : WatchFault();
  }

  int Count(absl::string_view call) const {
    return static_cast<int>(std::count(calls.begin(), calls.end(), std::string(call)));
  }

  std::vector<std::string> calls;  // "list configmaps"
  std::function<Fault(const MemoryCall&)> before_call;
  std::function<Fault(const MemoryCall&, const absl::Status&)> after_call;
  std::function<WatchFault(const WatchEvent&)> before_event;
};

// A MemoryApi with faults, on one thread under virtual time. Declare what its tasks use before it,
// so that they outlive it.
class MemoryCluster {
 public:
  explicit MemoryCluster(uint64_t seed = 1) : executor(clock, seed) {}

  void Spawn(host::Task<void> task) {
    ++running;
    boost::asio::co_spawn(executor.executor(), std::move(task),
                          [this](const std::exception_ptr&) { --running; });
  }
  // Starts a task whose result is awaited later.
  template <typename T>
  void SpawnInto(host::Task<T> task, std::optional<T>& result) {
    boost::asio::co_spawn(
        executor.executor(), std::move(task),
        [&result](const std::exception_ptr&, T value) { result = std::move(value); });
  }
  template <typename T>
  T Await(host::Task<T> task) {
    std::optional<T> result;
    SpawnInto(std::move(task), result);
    executor.RunUntil([&] { return result.has_value(); }, absl::Hours(1));
    return *std::move(result);
  }
  // False when it does not hold within that virtual time.
  bool RunUntil(const std::function<bool()>& done, absl::Duration limit = absl::Minutes(5)) {
    return executor.RunUntil(done, limit);
  }
  void RunFor(absl::Duration duration) { executor.RunFor(duration); }

  absl::StatusOr<boost::json::value> Put(const std::string& name, const std::string& value) {
    const boost::json::value object = {{"apiVersion", "v1"},
                                       {"kind", "ConfigMap"},
                                       {"metadata", {{"name", name}}},
                                       {"data", {{"key", value}}}};
    absl::StatusOr<boost::json::value> made =
        Await(api.Create(ConfigMaps(), "ns", object, {}, Soon()));
    if (!absl::IsAlreadyExists(made.status())) return made;
    return Await(api.Update(ConfigMaps(), "ns", name, object, {}, Soon()));
  }
  absl::Status Erase(const std::string& name) {
    return Await(api.Delete(ConfigMaps(), "ns", name, {}, Soon()));
  }
  host::Deadline Soon() const { return host::Deadline::After(clock, absl::Seconds(10)); }
  host::Logger log() const { return host::Logger(host::MakeNullSink()); }

  host::FakeClock clock;
  ScriptedFaults faults;
  MemoryApi api{clock, {.faults = &faults}};
  int running = 0;  // Spawn()ed tasks that have not ended
  simulation::SeededExecutor executor;
};

}  // namespace outrigger::controller::kube
