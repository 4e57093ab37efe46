// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <boost/json/value.hpp>
#include <map>
#include <string>
#include <vector>

namespace outrigger::controller::local {

// One document of a YAML file, as JSON.
struct YamlDocument {
  boost::json::value value;          // null: nothing stood there
  std::map<std::string, int> lines;  // from 1, by path: "spec.triggers[0].type"; "" is the document
  // What JSON cannot say: "metadata.name: want a key once, got it twice".
  std::vector<std::string> faults;

  // Of the field, or of the nearest part of its path that is there.
  int LineOf(const std::string& path) const;
};

// Reads YAML as kubectl does: plain words true, false, null and numbers are what they look like,
// quoted ones are text, "<<" merges. INVALID_ARGUMENT "line 3, column 5: …" when it is no YAML.
absl::StatusOr<std::vector<YamlDocument>> ParseYaml(const std::string& text);

}  // namespace outrigger::controller::local
