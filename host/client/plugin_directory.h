// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/time/time.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "host/base/clock.h"
#include "host/base/event.h"
#include "host/base/logging.h"
#include "host/base/random.h"
#include "host/base/task.h"
#include "host/base/task_group.h"
#include "host/client/plugin_bindings.h"
#include "host/client/plugin_connection.h"

namespace outrigger::host {

// Knows the plugins: one per folder `<plugin_dir>/<name>/` (rescanned every second, so that start
// order does not matter; a folder that goes takes its plugin with it) and one per --plugin flag.
// Holds a connection to each and says which of them serves a trigger type.
//
// Use from one strand, the one given; nothing blocks but a look at the folder's entries. main()
// calls Start(), and awaits Stop() before it destroys this; ScalerClient borrows it. Source:
// design.md section 3.
class PluginDirectory {
 public:
  struct Options {
    std::string plugin_dir;              // --plugin-dir; "": none
    bool inside_kubernetes = false;      // there the volume's mounts decide who may write
    std::vector<PluginAddress> plugins;  // --plugin, see ParsePluginFlag()
    PluginTypes plugin_types = DefaultPluginTypes();
    absl::Duration rescan = absl::Seconds(1);
    PluginConnection::Options connection;
  };
  // For metrics; each may be empty. They run on the strand.
  struct Hooks {
    std::function<void(const std::string& plugin, bool connected)> on_connection;
    std::function<void(const std::string& plugin, bool open)> on_breaker;
    // The types that a plugin announces and another serves, whenever they change.
    std::function<void(const std::string& plugin, const std::vector<std::string>& types)>
        on_ignored_types;
  };
  PluginDirectory(Executor strand, Clock& clock, Logger logger, uint64_t seed,
                  PluginConnector connect, Options options, Hooks hooks);
  PluginDirectory(Executor strand, Clock& clock, Logger logger, uint64_t seed,
                  PluginConnector connect, Options options);

  // INVALID_ARGUMENT: two --plugin flags with one name. FAILED_PRECONDITION: see CheckPluginDir().
  absl::Status Start();
  // Ends all connections and calls; returns when nothing of it runs any more.
  Task<void> Stop();

  // The plugin that serves a type: connected now or earlier. nullptr: none (yet).
  std::shared_ptr<PluginConnection> Serving(const std::string& trigger_type) const;
  // nullptr: there is none of that name.
  std::shared_ptr<PluginConnection> Find(const std::string& plugin) const;
  // UNAVAILABLE with IsPluginUnreachable(): why nobody serves a type.
  absl::Status WhyNotServed(const std::string& trigger_type) const;
  std::optional<scaler::v1::TriggerType> SchemaFor(const std::string& trigger_type) const;
  std::string SchemaVersion(const std::string& trigger_type) const;
  std::vector<PluginStatus> Plugins() const;

  void SetChangeListener(std::function<void(std::vector<std::string> types)> on_change) {
    listener_ = std::move(on_change);
  }

  // Coroutines of ScalerClient that Stop() waits for.
  TaskGroup& tasks() { return tasks_; }
  Clock& clock() const { return clock_; }
  const Executor& strand() const { return strand_; }

 private:
  // Who serves a type, and all that a reconcile depends on.
  struct Served {
    std::string plugin;
    bool connected = false;
    std::string schema;   // serialised
    std::string version;  // a hash of it
    friend bool operator==(const Served&, const Served&) = default;
  };
  using ServedTypes = std::map<std::string, Served>;

  Task<void> ScanUntilStopped();
  void Scan();
  void Add(const PluginAddress& address);
  void Remove(const std::string& plugin);
  void OnChange(PluginConnection& connection, bool came_back);
  // Binds types anew and tells the listener which of them changed, `concerned` at any rate.
  void Rebind(std::set<std::string> concerned);
  void NoteIgnored(std::map<std::string, std::vector<std::string>> ignored);
  ServedTypes Serve(const Bindings& bindings) const;

  const Executor strand_;
  Clock& clock_;
  const Logger logger_;
  Random random_;
  const PluginConnector connect_;
  const Options options_;
  const Hooks hooks_;
  TaskGroup tasks_;

  bool stopping_ = false;
  Event stop_;
  std::set<std::string> flagged_;   // names that come from flags
  std::set<std::string> shadowed_;  // folders that a flag of the same name hides, warned of
  std::string dir_error_;           // warned of
  std::map<std::string, std::shared_ptr<PluginConnection>> connections_;
  ServedTypes served_;
  std::map<std::string, std::vector<std::string>> ignored_;
  std::function<void(std::vector<std::string>)> listener_;
};

}  // namespace outrigger::host
