// SPDX-License-Identifier: Apache-2.0
#include "host/client/plugin_bindings.h"

#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <utility>

#include "host/base/status.h"

namespace outrigger::host {
namespace {

using OwnerOfType = std::map<std::string, std::string>;

OwnerOfType Invert(const PluginTypes& bound) {
  OwnerOfType owners;
  for (const auto& [plugin, types] : bound) {
    for (const std::string& type : types) owners[type] = plugin;
  }
  return owners;
}

absl::Status BadFlag(absl::string_view wanted, absl::string_view got) {
  return absl::InvalidArgumentError(
      absl::StrCat("--plugin-types: want ", wanted, ", got \"", absl::CEscape(got), "\""));
}

absl::Status ParseFlag(const std::string& flag, PluginTypes& chosen) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(flag, absl::MaxSplits('=', 1));
  const std::set<std::string> types = absl::StrSplit(parts.second, ',');
  if (parts.first.empty() || types.count("") != 0) return BadFlag("NAME=TYPE[,TYPE]", flag);
  const OwnerOfType owners = Invert(chosen);
  for (const std::string& type : types) {
    auto owner = owners.find(type);
    if (owner != owners.end() && owner->second != parts.first) {
      return BadFlag(
          absl::StrCat("type ", type, " for one plugin only (", owner->second, " has it already)"),
          flag);
    }
  }
  chosen[parts.first].insert(types.begin(), types.end());
  return absl::OkStatus();
}

}  // namespace

PluginTypes DefaultPluginTypes() {
  return {
      {"redis",
       {"redis", "redis-cluster", "redis-sentinel", "redis-streams", "redis-cluster-streams",
        "redis-sentinel-streams"}},
      {"kafka", {"kafka", "apache-kafka"}},
      {"prometheus", {"prometheus"}},
      {"core", {"cron", "metrics-api"}},
      {"external", {"external", "external-push"}},
  };
}

absl::StatusOr<PluginTypes> ParsePluginTypes(const std::vector<std::string>& flags) {
  PluginTypes chosen;
  for (const std::string& flag : flags) {
    RETURN_IF_ERROR(ParseFlag(flag, chosen));
  }
  const OwnerOfType taken = Invert(chosen);
  for (auto& [plugin, types] : DefaultPluginTypes()) {
    if (chosen.count(plugin) != 0) continue;
    // A plugin all of whose types were given away stays bound, to nothing.
    std::set<std::string>& kept = chosen[plugin];
    for (const std::string& type : types) {
      if (taken.count(type) == 0) kept.insert(type);
    }
  }
  return chosen;
}

Bindings BindTypes(const PluginTypes& bound,
                   const std::map<std::string, std::set<std::string>>& announced) {
  const OwnerOfType owners = Invert(bound);
  Bindings bindings;
  for (const auto& [plugin, types] : announced) {  // by name
    const bool is_bound = bound.count(plugin) != 0;
    for (const std::string& type : types) {
      auto owner = owners.find(type);
      const bool may = owner == owners.end() ? !is_bound : owner->second == plugin;
      const bool serves = may && bindings.plugin_of_type.emplace(type, plugin).second;
      if (!serves) bindings.ignored_of_plugin[plugin].push_back(type);
    }
  }
  return bindings;
}

}  // namespace outrigger::host
