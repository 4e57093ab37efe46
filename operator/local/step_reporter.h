// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "operator/local/local_state.h"

namespace outrigger::controller::local {

// Tells what happened between two looks at an embedded run, one line per step, with its reason:
// replicas that changed and who changed them, decisions that say something new, objects that are
// not ready and become so, plugins that come and go. Pure but for what it remembers.
//
// A decision is not new when only a count-down in its rule went on ("another 4s"): else a cooldown
// of five minutes would be three hundred lines.
class StepReporter {
 public:
  std::vector<std::string> Compare(const LocalState& now);

 private:
  struct Shown {
    int32_t replicas = 0;
    std::string decision;  // without what a count-down changes
    std::string not_ready;
  };
  void CompareObject(const ObjectView& object, std::vector<std::string>& lines);
  void ComparePlugin(const PluginView& plugin, std::vector<std::string>& lines);

  std::map<std::string, Shown> objects_;
  std::map<std::string, std::string> plugins_;  // state by name
};

}  // namespace outrigger::controller::local
