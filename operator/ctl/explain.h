// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/time/time.h>

#include <string>

#include "outrigger/introspection/v1/introspection.pb.h"

namespace outrigger::controller::ctl {

// What `outriggerctl explain` prints: for each object inputs, formula, limits and result of the
// last decision, in plain words. `now` is what ages are counted from. Pure.
std::string ExplainObjects(const outrigger::introspection::v1::ListObjectsResponse& response,
                           absl::Time now);

// What `outriggerctl plugin list` prints: a line for each plugin. Pure.
std::string DescribePlugins(const outrigger::introspection::v1::ListPluginsResponse& response,
                            absl::Time now);

}  // namespace outrigger::controller::ctl
