// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/percentile.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace outrigger::bench {

double Percentile(const std::vector<double>& ascending, double percent) {
  if (ascending.empty()) return 0;
  const double rank = std::ceil(percent / 100 * static_cast<double>(ascending.size()));
  return ascending[static_cast<size_t>(std::max(1.0, rank)) - 1];
}

}  // namespace outrigger::bench
