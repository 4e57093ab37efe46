// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/time/time.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "host/base/clock.h"
#include "host/base/event.h"
#include "host/base/task.h"
#include "host/client/backoff.h"
#include "operator/local/child_process.h"

namespace outrigger::controller::local {

// The scaler plugins of the embedded mode as child processes; one that ends is started again, as a
// container would be, after 0.1 s doubling to 10 s (with jitter), from 0.1 s again once it has run
// for a minute.
//
// One strand, whose thread starts the processes and must live as long as they (see ChildProcess).
// Looks at them every 100 ms: waitpid has no other way that needs neither a thread nor a signal
// handler. Start(), then Run() to its end before this goes.
class PluginProcesses {
 public:
  struct Plugin {
    std::string name;               // "redis"
    std::vector<std::string> argv;  // with an absolute path, so that PATH does not matter
    std::string output_file;        // "": no output
  };
  struct Options {
    host::Backoff::Options backoff;
    absl::Duration grace = absl::Seconds(6);  // between SIGTERM and SIGKILL
    absl::Duration look = absl::Milliseconds(100);
    uint64_t seed = 1;  // of the jitter
  };
  // One line for people: what happened to which plugin.
  using Print = std::function<void(const std::string& line)>;

  PluginProcesses(host::Clock& clock, std::vector<Plugin> plugins, Options options, Print print);

  // Starts all of them. The codes of ChildProcess::Start, naming the plugin.
  absl::Status Start();
  // Looks after them until Stop(); returns when all have ended.
  host::Task<void> Run();
  void Stop();
  // As Stop(), without a grace period: when it returns, nothing runs any more.
  void Kill();

  size_t size() const { return entries_.size(); }
  // How often it was started again; 0 for a plugin that is not ours.
  int RestartsOf(const std::string& name) const;

 private:
  struct Entry {
    Plugin plugin;
    host::Backoff backoff;
    std::unique_ptr<ChildProcess> process;  // null: ended
    host::SteadyTime started;
    host::SteadyTime start_at;
    int restarts = 0;
  };

  absl::Status StartOne(Entry& entry);
  void LookAfter(Entry& entry);
  void BackOff(Entry& entry, const std::string& why);
  host::Task<void> EndAll();

  host::Clock& clock_;
  const Options options_;
  const Print print_;
  std::vector<Entry> entries_;
  const host::Event stop_;
  bool stopping_ = false;
};

}  // namespace outrigger::controller::local
