// SPDX-License-Identifier: Apache-2.0
#include "host/client/plugin_directory.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>

#include "host/base/status.h"

namespace outrigger::host {
namespace {

const scaler::v1::TriggerType* FindType(const PluginConnection& connection,
                                        const std::string& name) {
  if (connection.description() == nullptr) return nullptr;
  for (const scaler::v1::TriggerType& type : connection.description()->trigger_types()) {
    if (type.name() == name) return &type;
  }
  return nullptr;
}

std::set<std::string> TypesOf(const PluginConnection& connection) {
  std::set<std::string> types;
  if (connection.description() == nullptr) return types;
  for (const scaler::v1::TriggerType& type : connection.description()->trigger_types()) {
    types.insert(type.name());
  }
  return types;
}

}  // namespace

PluginDirectory::PluginDirectory(Executor strand, Clock& clock, Logger logger, uint64_t seed,
                                 PluginConnector connect, Options options, Hooks hooks)
    : strand_(std::move(strand)),
      clock_(clock),
      logger_(std::move(logger)),
      random_(seed),
      connect_(std::move(connect)),
      options_(std::move(options)),
      hooks_(std::move(hooks)),
      tasks_(clock, strand_) {}

PluginDirectory::PluginDirectory(Executor strand, Clock& clock, Logger logger, uint64_t seed,
                                 PluginConnector connect, Options options)
    : PluginDirectory(std::move(strand), clock, std::move(logger), seed, std::move(connect),
                      std::move(options), Hooks()) {}

// ---- life -----------------------------------------------------------------------------------

absl::Status PluginDirectory::Start() {
  if (!options_.inside_kubernetes && !options_.plugin_dir.empty()) {
    RETURN_IF_ERROR(CheckPluginDir(options_.plugin_dir));
  }
  for (const PluginAddress& address : options_.plugins) {
    if (!flagged_.insert(address.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("--plugin: want each name once, got \"", address.name, "\" twice"));
    }
  }
  for (const PluginAddress& address : options_.plugins) Add(address);
  if (!options_.plugin_dir.empty()) tasks_.Spawn(ScanUntilStopped());
  return absl::OkStatus();
}

Task<void> PluginDirectory::Stop() {
  stopping_ = true;
  listener_ = nullptr;
  stop_.NotifyAll();
  for (const auto& [name, connection] : connections_) connection->Stop();
  co_await tasks_.Join();
  connections_.clear();
}

// ---- folders --------------------------------------------------------------------------------

Task<void> PluginDirectory::ScanUntilStopped() {
  while (!stopping_) {
    Scan();
    co_await stop_.WaitUntil(clock_, clock_.SteadyNow() + options_.rescan);
  }
}

void PluginDirectory::Scan() {
  std::vector<PluginAddress> found;
  const absl::Status allowed =
      options_.inside_kubernetes ? absl::OkStatus() : CheckPluginDir(options_.plugin_dir);
  if (allowed.ok()) found = ListPluginFolders(options_.plugin_dir);
  if (dir_error_ != allowed.message()) {
    dir_error_ = std::string(allowed.message());
    if (!allowed.ok()) logger_.Error("plugin folder is not used", {{"reason", dir_error_}});
  }

  std::set<std::string> gone;
  for (const auto& [name, connection] : connections_) {
    if (flagged_.count(name) == 0) gone.insert(name);
  }
  for (const PluginAddress& address : found) {
    if (flagged_.count(address.name) != 0) {
      if (shadowed_.insert(address.name).second) {
        logger_.Warning("plugin folder is ignored: a --plugin flag has its name",
                        {{"plugin", address.name}});
      }
      continue;
    }
    gone.erase(address.name);
    if (connections_.count(address.name) == 0) Add(address);
  }
  for (const std::string& name : gone) Remove(name);
}

void PluginDirectory::Add(const PluginAddress& address) {
  PluginConnection::Environment environment{
      .clock = clock_,
      .tasks = tasks_,
      .logger = logger_,
      .connect = connect_,
      .seed = random_.Next(),
      .on_change = [this](PluginConnection& connection,
                          bool came_back) { OnChange(connection, came_back); },
      .on_breaker = hooks_.on_breaker};
  auto connection =
      std::make_shared<PluginConnection>(address, std::move(environment), options_.connection);
  connections_[address.name] = connection;
  tasks_.Spawn(PluginConnection::Run(connection));
}

void PluginDirectory::Remove(const std::string& plugin) {
  auto it = connections_.find(plugin);
  const std::shared_ptr<PluginConnection> connection = it->second;
  connections_.erase(it);
  const bool was_connected = connection->ready();
  connection->Stop();
  logger_.Warning("plugin is gone with its folder", {{"plugin", plugin}});
  if (was_connected && hooks_.on_connection) hooks_.on_connection(plugin, false);
  Rebind({});
}

// ---- who serves what ------------------------------------------------------------------------

void PluginDirectory::OnChange(PluginConnection& connection, bool came_back) {
  if (stopping_) return;
  auto it = connections_.find(connection.name());
  // A folder that went and came again has another connection; the old one no longer counts.
  if (it == connections_.end() || it->second.get() != &connection) return;
  if (hooks_.on_connection) hooks_.on_connection(connection.name(), connection.ready());
  std::set<std::string> concerned;
  if (came_back) {
    for (const auto& [type, served] : served_) {
      if (served.plugin == connection.name()) concerned.insert(type);
    }
  }
  Rebind(std::move(concerned));
}

void PluginDirectory::Rebind(std::set<std::string> concerned) {
  std::map<std::string, std::set<std::string>> announced;
  for (const auto& [name, connection] : connections_) {
    if (connection->description() != nullptr) announced[name] = TypesOf(*connection);
  }
  Bindings bindings = BindTypes(options_.plugin_types, announced);
  ServedTypes before = std::exchange(served_, Serve(bindings));
  for (const auto& [type, served] : served_) {
    auto was = before.find(type);
    if (was == before.end() || !(was->second == served)) concerned.insert(type);
    if (was != before.end()) before.erase(was);
  }
  for (const auto& [type, served] : before) concerned.insert(type);
  NoteIgnored(std::move(bindings.ignored_of_plugin));
  if (listener_ && !concerned.empty()) listener_({concerned.begin(), concerned.end()});
}

PluginDirectory::ServedTypes PluginDirectory::Serve(const Bindings& bindings) const {
  ServedTypes served;
  for (const auto& [type, plugin] : bindings.plugin_of_type) {
    const PluginConnection& connection = *connections_.at(plugin);
    std::string schema = FindType(connection, type)->SerializeAsString();
    std::string version = absl::StrCat(std::hash<std::string>()(schema));
    served[type] = {.plugin = plugin,
                    .connected = connection.ready(),
                    .schema = std::move(schema),
                    .version = std::move(version)};
  }
  return served;
}

void PluginDirectory::NoteIgnored(std::map<std::string, std::vector<std::string>> ignored) {
  if (ignored == ignored_) return;
  for (const auto& [plugin, types] : ignored) {
    auto before = ignored_.find(plugin);
    if (before != ignored_.end() && before->second == types) continue;
    logger_.Warning(
        "plugin announces types that it is not asked for: bound to another plugin, or "
        "another comes first by name",
        {{"plugin", plugin}, {"types", absl::StrJoin(types, ",")}});
    if (hooks_.on_ignored_types) hooks_.on_ignored_types(plugin, types);
  }
  for (const auto& [plugin, types] : ignored_) {
    if (ignored.count(plugin) == 0 && hooks_.on_ignored_types) {
      hooks_.on_ignored_types(plugin, {});
    }
  }
  ignored_ = std::move(ignored);
}

std::shared_ptr<PluginConnection> PluginDirectory::Serving(const std::string& trigger_type) const {
  auto it = served_.find(trigger_type);
  return it == served_.end() ? nullptr : Find(it->second.plugin);
}

std::shared_ptr<PluginConnection> PluginDirectory::Find(const std::string& plugin) const {
  auto it = connections_.find(plugin);
  return it == connections_.end() ? nullptr : it->second;
}

absl::Status PluginDirectory::WhyNotServed(const std::string& trigger_type) const {
  std::string why = absl::StrCat("trigger type ", trigger_type, ": no plugin serves it");
  for (const auto& [plugin, types] : options_.plugin_types) {
    if (types.count(trigger_type) == 0) continue;
    const std::shared_ptr<PluginConnection> connection = Find(plugin);
    if (connection == nullptr) {
      absl::StrAppend(&why, "; it is bound to plugin ", plugin, ", which is not there");
    } else if (connection->description() == nullptr) {
      absl::StrAppend(&why, "; ", connection->Reachable().message());
    } else {
      absl::StrAppend(&why, "; it is bound to plugin ", plugin, ", which does not announce it");
    }
  }
  absl::Status status = absl::UnavailableError(why);
  MarkPluginUnreachable(status);
  return status;
}

std::optional<scaler::v1::TriggerType> PluginDirectory::SchemaFor(
    const std::string& trigger_type) const {
  const std::shared_ptr<PluginConnection> connection = Serving(trigger_type);
  if (connection == nullptr) return std::nullopt;
  return *FindType(*connection, trigger_type);
}

std::string PluginDirectory::SchemaVersion(const std::string& trigger_type) const {
  auto it = served_.find(trigger_type);
  return it == served_.end() ? "" : it->second.version;
}

std::vector<PluginStatus> PluginDirectory::Plugins() const {
  std::vector<PluginStatus> plugins;
  for (const auto& [name, connection] : connections_) {
    PluginStatus status = connection->Status();
    for (const auto& [type, served] : served_) {
      if (served.plugin == name) status.trigger_types.push_back(type);
    }
    if (auto it = ignored_.find(name); it != ignored_.end()) status.ignored_types = it->second;
    plugins.push_back(std::move(status));
  }
  return plugins;
}

}  // namespace outrigger::host
