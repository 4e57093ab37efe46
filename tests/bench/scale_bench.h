// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>

#include "tests/bench/report.h"

namespace outrigger::bench {

// `size` ScaledObjects with a redis trigger each, at 0 and polled every 30 s, on a control plane of
// their own: what it costs to make them Ready, to keep them, and to read their metrics through the
// aggregator. Takes 90 s and more. The aims are a tenth of what KEDA 2.21 needed for 1,000.
absl::Status BenchScale(int size, Report& report);

// What the executables and their libraries weigh.
absl::Status BenchClosure(Report& report);

}  // namespace outrigger::bench
