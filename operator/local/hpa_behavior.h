// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/time/time.h>

#include <boost/json/value.hpp>
#include <cstdint>
#include <optional>
#include <vector>

namespace outrigger::controller::local {

// spec.behavior.scaleUp or scaleDown of an HPA, every part filled in.
struct HpaScalingRules {
  enum class Select { kMax, kMin, kDisabled };
  struct Policy {
    enum class Type { kPods, kPercent };
    Type type = Type::kPercent;
    int32_t value = 0;
    absl::Duration period;
  };
  std::vector<Policy> policies;
  Select select = Select::kMax;
  absl::Duration stabilization_window;
  std::optional<double> tolerance;  // of the metric's ratio; nothing: the controller's own

  absl::Duration LongestPeriod() const;
};

struct HpaBehavior {
  HpaScalingRules scale_up;
  HpaScalingRules scale_down;
};

// Parses spec.behavior; what is absent gets the API server's defaults (up: the larger of 4 pods and
// 100 % per 15 s; down: 100 % per 15 s), scaleDown's window `down_window`. INVALID_ARGUMENT for
// what the API server refuses, with the path below `path`, wanted and got. Source:
// k8s.io/kubernetes v1.36 pkg/apis/autoscaling/v2/defaults.go and
// pkg/apis/autoscaling/validation/validation.go.
absl::StatusOr<HpaBehavior> ParseHpaBehavior(const boost::json::value& behavior,
                                             absl::Duration down_window,
                                             absl::string_view path = "spec.behavior");

}  // namespace outrigger::controller::local
