// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <google/protobuf/map.h>

#include <string>
#include <vector>

namespace outrigger::host::kit {

// Label-selector text as GetMetrics carries it: comma-separated requirements, each one of
// `a`, `!a`, `a=b`, `a==b`, `a!=b`, `a in (b,c)`, `a notin (b,c)`; all must hold. As in Kubernetes,
// `!=` and `notin` also hold where the label is absent. "" selects everything. Immutable.
class LabelSelector {
 public:
  // INVALID_ARGUMENT names the requirement that could not be read.
  static absl::StatusOr<LabelSelector> Parse(absl::string_view text);

  bool Matches(const google::protobuf::Map<std::string, std::string>& labels) const;

 private:
  enum class Operator { kExists, kAbsent, kIn, kNotIn };
  struct Requirement {
    std::string key;
    Operator op = Operator::kExists;
    std::vector<std::string> values;
  };
  static absl::StatusOr<Requirement> ParseRequirement(absl::string_view text);

  std::vector<Requirement> requirements_;
};

}  // namespace outrigger::host::kit
