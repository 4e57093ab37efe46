// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/outage_bench.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <absl/time/clock.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "host/base/status.h"
#include "tests/bench/stage.h"
#include "tests/support/scripted/scripted_plugin.h"

namespace outrigger::bench {
namespace {

constexpr int kStopped = 500;
constexpr int kHealthy = 50;
constexpr int kBatch = 200;
constexpr int kPollingSeconds = 5;
constexpr int kSamples = 6;  // one polling interval apart
constexpr absl::Duration kUntilMeasured = absl::Seconds(15);
constexpr absl::Duration kReads = absl::Seconds(10);
constexpr char kSection[] = "Outages";
constexpr char kColumn[] = "value";
constexpr char kLateness[] = "keda_internal_scale_loop_latency_seconds{";
constexpr char kAnswerTime[] = "keda_scaler_metrics_latency_seconds{";

// Objects with names "<prefix>-<i>" that ask one script, each a question of its own: the scripted
// scaler takes any parameter, and `n` tells them apart.
std::vector<ObjectSpec> Objects(const std::string& prefix, const std::string& type, int count,
                                const std::string& script) {
  std::vector<ObjectSpec> objects;
  for (int i = 0; i < count; ++i) {
    objects.push_back({.name = absl::StrCat(prefix, "-", i),
                       .trigger_type = type,
                       .metadata = absl::StrCat(R"("script":")", script, R"(","n":")", i, "\""),
                       .metric_name = absl::StrCat("s0-scripted-", script)});
  }
  return objects;
}

// Adds the values of the series that start with `name` and have a label `="<object prefix>-…`.
absl::Status AddSeries(Stage& stage, absl::string_view name, const std::string& prefix,
                       std::vector<double>& milliseconds) {
  ASSIGN_OR_RETURN(const std::string text,
                   tests::OperatorProcess::HttpGet(stage.controller().metrics_port(), "/metrics"));
  const std::string label = absl::StrCat("=\"", prefix, "-");
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (line.substr(0, name.size()) != name) continue;
    if (line.find(label) == absl::string_view::npos) continue;
    double seconds = 0;
    if (absl::SimpleAtod(line.substr(line.rfind(' ') + 1), &seconds)) {
      milliseconds.push_back(1000 * seconds);
    }
  }
  if (!milliseconds.empty()) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("no series ", name, " of ", prefix));
}

// The p99 of a gauge of the objects, over several polls.
absl::StatusOr<LoadResult> Sample(Stage& stage, absl::string_view name, const std::string& prefix) {
  LoadResult result;
  for (int i = 0; i < kSamples; ++i) {
    absl::SleepFor(absl::Seconds(kPollingSeconds));
    RETURN_IF_ERROR(AddSeries(stage, name, prefix, result.latencies_ms));
  }
  std::sort(result.latencies_ms.begin(), result.latencies_ms.end());
  return result;
}

absl::StatusOr<std::unique_ptr<tests::ScriptedPlugin>> StartScripted(Stage& stage,
                                                                     const std::string& name) {
  return tests::ScriptedPlugin::Start(
      {.name = name, .folder = stage.plugins().path(), .announce = name});
}

LoadResult ReadAll(Stage& stage, const std::vector<ObjectSpec>& objects) {
  std::vector<HttpRequest> reads;
  for (const ObjectSpec& object : objects) reads.push_back(stage.MetricRead(object));
  // A few at a time, as the HPA controller asks (5 workers): how long they take is the question,
  // not how many there can be.
  return HttpLoad(stage.plane(), 4).Repeat(reads, kReads);
}

absl::Status MeasureNewObject(Stage& stage, Report& report) {
  const std::vector<ObjectSpec> late = Objects("late", "healthy", 1, "late");
  RETURN_IF_ERROR(stage.CreateDeployments(late));
  const absl::Time start = absl::Now();
  RETURN_IF_ERROR(stage.CreateScaledObjects(late, kPollingSeconds));
  RETURN_IF_ERROR(stage.WaitUntilReady(1, absl::Minutes(1), late.front().name));
  report.Add(kSection, kColumn, "plugin stopped: a new object of the other is Ready after", "s",
             absl::ToDoubleSeconds(absl::Now() - start), "<= 1");
  return absl::OkStatus();
}

absl::Status StoppedPlugin(Report& report) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Stage> stage, Stage::Start());
  ASSIGN_OR_RETURN(const auto stopped, StartScripted(*stage, "stopped"));
  ASSIGN_OR_RETURN(const auto healthy, StartScripted(*stage, "healthy"));
  RETURN_IF_ERROR(stage->StartOperator());
  const std::vector<ObjectSpec> ill = Objects("ill", "stopped", kStopped, "ill");
  const std::vector<ObjectSpec> well = Objects("well", "healthy", kHealthy, "well");
  for (const auto& objects : {ill, well}) {
    RETURN_IF_ERROR(stage->CreateDeployments(objects));
    RETURN_IF_ERROR(stage->CreateScaledObjects(objects, kPollingSeconds));
  }
  RETURN_IF_ERROR(stage->WaitUntilReady(kStopped + kHealthy, absl::Minutes(5)));
  RETURN_IF_ERROR(stage->WaitUntilServed(well.front()));

  stopped->plugin().process().Kill(SIGSTOP);
  absl::SleepFor(kUntilMeasured);
  ASSIGN_OR_RETURN(const LoadResult lateness, Sample(*stage, kLateness, "well"));
  report.Add(kSection, kColumn, "plugin stopped: lateness of the others' polls, p99", "ms",
             lateness.Percentile(99), "<= 250");
  const LoadResult of_well = ReadAll(*stage, well);
  report.Add(kSection, kColumn, "plugin stopped: metric GET of the others, p99", "ms",
             of_well.Percentile(99), "<= 50");
  const LoadResult of_ill = ReadAll(*stage, ill);
  report.Add(kSection, kColumn, "plugin stopped: metric GET of its own, p99", "ms",
             of_ill.Percentile(99), "<= 50");
  RETURN_IF_ERROR(MeasureNewObject(*stage, report));
  stopped->plugin().process().Kill(SIGCONT);
  if (of_well.first_failure.empty()) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("metric GET of the healthy plugin: ", of_well.first_failure));
}

absl::Status HungEntry(Report& report) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Stage> stage, Stage::Start());
  ASSIGN_OR_RETURN(const auto plugin, StartScripted(*stage, "healthy"));
  RETURN_IF_ERROR(stage->StartOperator());
  std::vector<ObjectSpec> objects = Objects("quick", "healthy", kBatch - 1, "quick");
  const std::vector<ObjectSpec> hung = Objects("hung", "healthy", 1, "hung");
  objects.push_back(hung.front());
  RETURN_IF_ERROR(stage->CreateDeployments(objects));
  RETURN_IF_ERROR(stage->CreateScaledObjects(objects, kPollingSeconds));
  RETURN_IF_ERROR(stage->WaitUntilReady(kBatch, absl::Minutes(2)));

  test::v1::Behaviour hangs;
  hangs.set_hang(true);
  RETURN_IF_ERROR(plugin->Set("hung", hangs));
  absl::SleepFor(absl::Seconds(2 * kPollingSeconds));
  ASSIGN_OR_RETURN(const LoadResult answers, Sample(*stage, kAnswerTime, "quick"));
  report.Add(kSection, kColumn, "one of 200 hangs: answers of the other 199, p99", "ms",
             answers.Percentile(99), "<= 100");
  ASSIGN_OR_RETURN(const LoadResult lateness, Sample(*stage, kLateness, "quick"));
  report.Add(kSection, kColumn, "one of 200 hangs: lateness of the other 199, p99", "ms",
             lateness.Percentile(99), "<= 250");
  return absl::OkStatus();
}

}  // namespace

absl::Status BenchStoppedPlugin(Report& report) {
  Say(absl::StrCat("outage: ", kStopped, " objects on a stopped plugin, ", kHealthy,
                   " on another"));
  return host::Annotate(StoppedPlugin(report), "a stopped plugin");
}

absl::Status BenchHungEntry(Report& report) {
  Say(absl::StrCat("outage: ", kBatch, " objects, one is never answered"));
  return host::Annotate(HungEntry(report), "a hung entry");
}

}  // namespace outrigger::bench
