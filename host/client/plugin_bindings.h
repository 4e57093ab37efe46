// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace outrigger::host {

// Which plugin serves a trigger type is configuration, not an announcement: else any sidecar could
// take over the triggers, and so the credentials, of another. Pure. Source: design.md section 3.

// Plugin name -> the types that it alone serves.
using PluginTypes = std::map<std::string, std::set<std::string>>;

// Our own plugins, by the names of their folders as deployed.
PluginTypes DefaultPluginTypes();

// The defaults with each --plugin-types NAME=TYPE[,TYPE] laid over them: a flag replaces the types
// of its plugin and takes its types from any other default. INVALID_ARGUMENT: malformed, or two
// flags give one type to two plugins.
absl::StatusOr<PluginTypes> ParsePluginTypes(const std::vector<std::string>& flags);

struct Bindings {
  std::map<std::string, std::string> plugin_of_type;
  std::map<std::string, std::vector<std::string>> ignored_of_plugin;  // sorted
};

// `announced`: what each plugin said that it serves, by plugin. A bound type goes to its plugin
// only, and a bound plugin serves its types only; a type that nobody is bound to goes to the first
// unbound plugin by name, whatever the order in which they came.
Bindings BindTypes(const PluginTypes& bound,
                   const std::map<std::string, std::set<std::string>>& announced);

}  // namespace outrigger::host
