// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/time/time.h>

#include <boost/json/value.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "operator/api/quantity.h"

namespace outrigger::controller::scaling {

// spec.behavior of an HPA with the API server's defaults filled in, so that two of them can be
// compared and asked. Members that autoscaling/v2 does not have are dropped, as the API server
// does. Pure value. Source: k8s.io/kubernetes/pkg/apis/autoscaling/v2/defaults.go.
struct HpaBehavior {
  struct Policy {
    std::string type;  // "Pods" or "Percent"
    int64_t value = 0;
    int64_t period_seconds = 0;
    friend bool operator==(const Policy&, const Policy&) = default;
  };
  struct Rules {
    std::optional<int64_t>
        stabilization_window_seconds;   // scale-down only may lack it: then the controller's 300 s
    std::string select_policy = "Max";  // "Max", "Min" or "Disabled"
    std::vector<Policy> policies;
    std::optional<api::Quantity> tolerance;  // absent: the controller's 0.1

    bool Disabled() const { return select_policy == "Disabled"; }
    // The longest period of a policy: how long the controller may have to wait before it may move
    // again.
    absl::Duration LongestPeriod() const;
    friend bool operator==(const Rules&, const Rules&) = default;
  };

  Rules scale_up;
  Rules scale_down;

  // `behavior` is null (absent: the controller's defaults, which are these) or an object of
  // autoscaling/v2. Members of a wrong type are read as absent: the API server would not have taken
  // them.
  static HpaBehavior WithDefaults(const boost::json::value& behavior);

  friend bool operator==(const HpaBehavior&, const HpaBehavior&) = default;
};

}  // namespace outrigger::controller::scaling
