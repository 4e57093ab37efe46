// SPDX-License-Identifier: Apache-2.0
#include "operator/local/plugin_plan.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "host/client/plugin_bindings.h"
#include "operator/api/scaled_object.h"

namespace outrigger::controller::local {
namespace {

class Planner {
 public:
  explicit Planner(const PluginPlanOptions& options)
      : options_(options), ours_(host::DefaultPluginTypes()) {}

  void Add(const ManifestObject& manifest) {
    const absl::StatusOr<api::ScaledObject> object = api::ParseScaledObject(manifest.object);
    if (!object.ok()) return;  // LoadManifests() refuses it
    const std::vector<api::Trigger>& triggers = object->spec.triggers;
    for (size_t i = 0; i < triggers.size(); ++i) {
      if (api::IsResourceTrigger(triggers[i])) continue;
      const std::string wrong = Serve(triggers[i].type);
      if (wrong.empty()) continue;
      faults_.push_back(absl::StrCat(manifest.source, ": spec.triggers[", i, "].type: ", wrong));
    }
  }

  absl::StatusOr<std::vector<PluginProcesses::Plugin>> Result() && {
    if (!faults_.empty()) return absl::InvalidArgumentError(absl::StrJoin(faults_, "\n"));
    std::vector<PluginProcesses::Plugin> plugins;
    plugins.reserve(programs_.size());
    for (const auto& [name, program] : programs_) {
      plugins.push_back({.name = name,
                         .argv = {program, "--listen-socket",
                                  absl::StrCat(options_.plugin_dir, "/", name, "/scaler.sock")},
                         .output_file = absl::StrCat(options_.log_dir, "/", name, ".log")});
    }
    return plugins;
  }

 private:
  bool IsGiven(const std::string& name) const {
    return std::any_of(options_.given.begin(), options_.given.end(),
                       [&](const host::PluginAddress& plugin) { return plugin.name == name; });
  }

  // Sees to it that somebody serves the type. What is wrong, or nothing.
  std::string Serve(const std::string& type) {
    for (const auto& [name, types] : ours_) {
      if (!types.contains(type)) continue;
      if (IsGiven(name)) return "";
      const std::string program = absl::StrCat(options_.bin_dir, "/outrigger-scaler-", name);
      if (access(program.c_str(), X_OK) == 0) {
        programs_[name] = program;
        return "";
      }
      return absl::StrCat("\"", type, "\" wants the program of plugin ", name, ", ", program,
                          ", which is not there (--plugin-bin-dir names another folder)");
    }
    const bool others = std::any_of(
        options_.given.begin(), options_.given.end(),
        [this](const host::PluginAddress& plugin) { return !ours_.contains(plugin.name); });
    if (others) return "";
    return absl::StrCat("want a type that a plugin serves (", absl::StrJoin(AllTypes(), ", "),
                        ", or one of your own with --plugin NAME=ADDRESS), got \"", type, "\"");
  }

  std::set<std::string> AllTypes() const {
    std::set<std::string> all;
    for (const auto& [name, types] : ours_) all.insert(types.begin(), types.end());
    return all;
  }

  const PluginPlanOptions& options_;
  const host::PluginTypes ours_;
  std::map<std::string, std::string> programs_;  // by plugin
  std::vector<std::string> faults_;
};

}  // namespace

absl::StatusOr<std::vector<PluginProcesses::Plugin>> PlanPlugins(
    const std::vector<ManifestObject>& objects, const PluginPlanOptions& options) {
  Planner planner(options);
  for (const ManifestObject& manifest : objects) {
    if (manifest.resource == kube::ScaledObjects()) planner.Add(manifest);
  }
  return std::move(planner).Result();
}

}  // namespace outrigger::controller::local
