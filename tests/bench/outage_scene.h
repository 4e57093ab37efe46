// SPDX-License-Identifier: Apache-2.0
// What healthy objects notice of the trouble of others, as figures: the benchmark prints them, a
// test checks them with wide limits.
#pragma once

#include <absl/status/statusor.h>

namespace outrigger::bench {

// 500 ScaledObjects on a plugin that is stopped (SIGSTOP) and 50 on a healthy one, all polled every
// 5 s.
struct StoppedPluginFigures {
  // Of the healthy plugin's objects, from the stop on.
  int polls = 0;
  double lateness_p99_ms = 0;
  // Of three new objects of the healthy plugin, made at the stop, 5 s and 10 s after it: the time
  // until the slowest is Ready.
  double new_object_ready_seconds = 0;
  // Metric GETs through the aggregator, from 15 s after the stop on.
  double healthy_read_p99_ms = 0;
  double stopped_read_p99_ms = 0;
};
// Takes about a minute. UNAVAILABLE also when a metric of the healthy plugin could not be read.
absl::StatusOr<StoppedPluginFigures> StopAPlugin();

// 200 ScaledObjects of one plugin, three times polled in one batch, of which one entry is never
// answered.
struct HungEntryFigures {
  double entries_per_batch = 0;  // as the plugin saw them; a read between the polls lowers it
  // Of the other 199: from the plugin's answer to the operator's decision.
  int answers = 0;
  double until_decided_max_ms = 0;
};
// Takes about 45 s.
absl::StatusOr<HungEntryFigures> HangAnEntry();

}  // namespace outrigger::bench
