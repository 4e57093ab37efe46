// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>

#include "tests/bench/report.h"

namespace outrigger::bench {

// 500 ScaledObjects on a plugin that is stopped (SIGSTOP) and 50 on a healthy one, all polled every
// 5 s: what the healthy ones notice of it. Takes about 2 minutes.
absl::Status BenchStoppedPlugin(Report& report);

// 200 ScaledObjects of one plugin, polled every 5 s, of which one is never answered: how long the
// answers of the other 199 take.
absl::Status BenchHungEntry(Report& report);

}  // namespace outrigger::bench
