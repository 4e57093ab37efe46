// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "host/base/clock.h"
#include "host/base/logging.h"
#include "host/base/task.h"
#include "host/kit/trigger_scaler.h"

namespace CLI {
class App;
}
namespace grpc {
class Service;
}

namespace outrigger::host::kit {

// What a scaler gets from its process. All outlive it.
struct PluginContext {
  Clock& clock;
  Executor executor;  // one thread, so what runs on it needs no locks; must never be blocked
  Logger logger;
};

struct PluginOptions {
  std::string name;         // of the binary, e.g. "outrigger-scaler-redis"
  std::string description;  // one line, for --help
  std::function<std::vector<std::unique_ptr<TriggerScaler>>(const PluginContext&)> make_scalers;
  // For tests: more flags, more services, answers that go out unchecked, no cache.
  std::function<void(CLI::App&)> add_flags = nullptr;
  std::vector<grpc::Service*> extra_services = {};
  bool check_answers = true;
  size_t cached_triggers = 20'000;  // 0: every call parses its trigger
};

// The main() of a plugin: reads flags (each also from OUTRIGGER_… in the environment), serves until
// SIGTERM or SIGINT, drains and returns the exit code: 0, or 1 after one line on stderr that says
// why. `clock` is made by main() and outlives the call.
//
//   int main(int argc, char** argv) {
//     outrigger::host::RealClock clock;
//     return outrigger::host::kit::ServePlugin({.name = …, .make_scalers = …}, argc, argv, clock);
//   }
int ServePlugin(PluginOptions options, int argc, char** argv, Clock& clock);

}  // namespace outrigger::host::kit
