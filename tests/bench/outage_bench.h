// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>

#include "tests/bench/report.h"

namespace outrigger::bench {

// The figures of the scenes of outage_scene.h beside their aims.
absl::Status BenchStoppedPlugin(Report& report);
absl::Status BenchHungEntry(Report& report);

}  // namespace outrigger::bench
