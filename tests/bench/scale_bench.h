// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>

#include <vector>

#include "tests/bench/contender.h"
#include "tests/bench/report.h"

namespace outrigger::bench {

// `size` ScaledObjects with a redis trigger each, at 0 and polled every 30 s: what it costs to make
// them Ready, to keep them, and to read their metrics through the aggregator. Each contender, one
// after the other, on a control plane of its own; takes 90 s and more for each. The first one's
// figures stand beside their aims, a tenth of what KEDA 2.21 needed for 1,000; a second one is
// compared with it.
absl::Status BenchScale(int size, const std::vector<NewContender>& contenders, Report& report);

// What the executables and their libraries weigh.
absl::Status BenchClosure(Report& report);

}  // namespace outrigger::bench
