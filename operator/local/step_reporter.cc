// SPDX-License-Identifier: Apache-2.0
#include "operator/local/step_reporter.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>

namespace outrigger::controller::local {
namespace {

constexpr char kReady[] = "ready";

// Equal for two decisions that differ in nothing but the numbers of their rule.
std::string Recognise(const ObjectView& object) {
  return absl::StrCat(absl::StripSuffix(object.explanation, object.outcome),
                      WithoutNumbers(object.outcome));
}

// Who set the count that stands there now. Only the operator steps from 0 and to 0.
std::string Reason(const ObjectView& object, int32_t before) {
  const bool by_hpa = before > 0 && object.replicas > 0 && object.hpa_replicas == object.replicas;
  if (by_hpa) return absl::StrCat("HPA: ", object.hpa_message);
  if (!object.scaled_because.empty()) return absl::StrCat("operator: ", object.scaled_because);
  return "operator: no decision yet";
}

}  // namespace

std::vector<std::string> StepReporter::Compare(const LocalState& now) {
  std::vector<std::string> lines;
  for (const PluginView& plugin : now.plugins) ComparePlugin(plugin, lines);
  for (const ObjectView& object : now.objects) CompareObject(object, lines);
  return lines;
}

void StepReporter::CompareObject(const ObjectView& object, std::vector<std::string>& lines) {
  const auto [it, is_new] = objects_.try_emplace(object.name);
  Shown& shown = it->second;
  const std::string decision = Recognise(object);
  if (is_new) {
    lines.push_back(absl::StrCat(object.name, ": ", object.replicas, " replicas at the start"));
  } else if (shown.replicas != object.replicas) {
    lines.push_back(absl::StrCat(object.name, ": ", shown.replicas, " -> ", object.replicas,
                                 " replicas  (", Reason(object, shown.replicas), ")"));
  } else if (!object.explanation.empty() && shown.decision != decision) {
    lines.push_back(absl::StrCat(object.name, ": ", object.explanation));
  }
  if (shown.not_ready != object.not_ready) {
    lines.push_back(object.not_ready.empty()
                        ? absl::StrCat(object.name, ": ready again")
                        : absl::StrCat(object.name, ": not ready: ", object.not_ready));
  }
  shown = {.replicas = object.replicas, .decision = decision, .not_ready = object.not_ready};
}

void StepReporter::ComparePlugin(const PluginView& plugin, std::vector<std::string>& lines) {
  const auto [it, is_new] = plugins_.try_emplace(plugin.name, plugin.state);
  const bool changed = is_new ? plugin.state != kReady : it->second != plugin.state;
  if (!changed) return;
  it->second = plugin.state;
  lines.push_back(absl::StrCat("plugin ", plugin.name, ": ", plugin.state,
                               plugin.reason.empty() ? "" : ": ", plugin.reason));
}

}  // namespace outrigger::controller::local
