// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "operator/api/hpa.h"
#include "operator/api/scaled_object.h"
#include "operator/api/validation.h"

namespace outrigger::controller::api {

// What a cpu or memory trigger means: a Resource metric of the HPA, or ContainerResource where
// metadata.containerName is given. No plugin is asked.
struct ResourceTrigger {
  HpaMetric metric;                   // means nothing when there are violations
  std::vector<Violation> violations;  // all of them
};

// Pure. `trigger` is of type cpu or memory (IsResourceTrigger). Source: spec/scalers-core.md
// section 1.
ResourceTrigger ParseResourceTrigger(const Trigger& trigger, int32_t trigger_index);

}  // namespace outrigger::controller::api
