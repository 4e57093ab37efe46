// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/outage_bench.h"

#include <string>

#include "host/base/status.h"
#include "tests/bench/outage_scene.h"

namespace outrigger::bench {
namespace {

void Add(Report& report, const std::string& figure, const std::string& unit, double value,
         const std::string& aim = "") {
  report.Add("Outages", "value", figure, unit, value, aim);
}

}  // namespace

absl::Status BenchStoppedPlugin(Report& report) {
  ASSIGN_OR_RETURN(const StoppedPluginFigures figures, StopAPlugin());
  Add(report, "plugin stopped: polls of the others that were seen", "", figures.polls);
  Add(report, "plugin stopped: lateness of the others' polls, p99", "ms", figures.lateness_p99_ms,
      "<= 250");
  Add(report, "plugin stopped: a new object of the other is Ready after", "s",
      figures.new_object_ready_seconds, "<= 1");
  Add(report, "plugin stopped: metric GET of the others, p99", "ms", figures.healthy_read_p99_ms,
      "<= 50");
  Add(report, "plugin stopped: metric GET of its own, p99", "ms", figures.stopped_read_p99_ms,
      "<= 50");
  return absl::OkStatus();
}

absl::Status BenchHungEntry(Report& report) {
  ASSIGN_OR_RETURN(const HungEntryFigures figures, HangAnEntry());
  Add(report, "one of 200 hangs: entries per batch", "", figures.entries_per_batch, "200");
  Add(report, "one of 200 hangs: answers of the others that were seen", "", figures.answers);
  Add(report, "one of 200 hangs: from an answer to its decision, slowest", "ms",
      figures.until_decided_max_ms, "<= 100");
  return absl::OkStatus();
}

}  // namespace outrigger::bench
