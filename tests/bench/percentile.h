// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace outrigger::bench {

// The smallest of `ascending` that `percent` of them do not exceed; 0 of none.
double Percentile(const std::vector<double>& ascending, double percent);

}  // namespace outrigger::bench
