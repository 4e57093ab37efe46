// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/outage_scene.h"

#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "host/base/status.h"
#include "tests/bench/answer_watch.h"
#include "tests/bench/percentile.h"
#include "tests/bench/stage.h"
#include "tests/support/scripted/scripted_plugin.h"
#include "tests/support/wait_for.h"

namespace outrigger::bench {
namespace {

constexpr int kStopped = 500;
constexpr int kHealthy = 50;
constexpr int kBatch = 200;
constexpr int kBatches = 3;
constexpr int kLateObjects = 3;
constexpr int kPollingSeconds = 5;
constexpr absl::Duration kPolling = absl::Seconds(kPollingSeconds);
constexpr absl::Duration kBetweenLooks = absl::Seconds(2);
// Introspection tells the last decision only. A look this soon after an answer sees the one that
// the answer led to, not that of a reconcile that came later.
constexpr absl::Duration kBetweenQuickLooks = absl::Milliseconds(50);
constexpr absl::Duration kUntilReads = absl::Seconds(15);
constexpr absl::Duration kReadSlice = absl::Seconds(2);
constexpr int kReadSlices = 4;
// A few reads at a time, as the HPA controller asks (5 workers): how long they take is the
// question, not how many there can be.
constexpr int kReaders = 4;

// Objects with names "<prefix>-<i>" that ask one script, each a question of its own: the scripted
// scaler takes any parameter, and `n` tells them apart.
std::vector<ObjectSpec> Objects(const std::string& prefix, const std::string& type, int count,
                                const std::string& script) {
  std::vector<ObjectSpec> objects;
  objects.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    objects.push_back({.name = absl::StrCat(prefix, "-", i),
                       .trigger_type = type,
                       .metadata = absl::StrCat(R"("script":")", script, R"(","n":")", i, "\""),
                       .metric_name = absl::StrCat("s0-scripted-", script)});
  }
  return objects;
}

absl::StatusOr<std::unique_ptr<tests::ScriptedPlugin>> StartScripted(Stage& stage,
                                                                     const std::string& name) {
  return tests::ScriptedPlugin::Start(
      {.name = name, .folder = stage.plugins().path(), .announce = name});
}

// Answers with the time, and asks for no replica.
absl::Status AnswerWithTheTime(tests::ScriptedPlugin& plugin, const std::string& script) {
  test::v1::Behaviour behaviour;
  behaviour.set_stamped(true);
  behaviour.set_active(false);
  return plugin.Set(script, behaviour);
}

absl::Status LookUntil(AnswerWatch& watch, absl::Time end, absl::Duration between = kBetweenLooks) {
  while (true) {
    RETURN_IF_ERROR(watch.Look());
    const absl::Duration left = end - absl::Now();
    if (left <= absl::ZeroDuration()) return absl::OkStatus();
    absl::SleepFor(std::min(left, between));
  }
}

class StoppedPluginScene {
 public:
  absl::StatusOr<StoppedPluginFigures> Run() {
    RETURN_IF_ERROR(SetUp());
    AnswerWatch watch(stage_->controller().grpc_port(), "well-");
    stopped_->plugin().process().Kill(SIGSTOP);
    const absl::Time stop = absl::Now();
    for (int i = 0; i < kLateObjects; ++i) {
      RETURN_IF_ERROR(LookUntil(watch, stop + i * kUntilReads / kLateObjects));
      RETURN_IF_ERROR(MakeNewObject(i));
    }
    RETURN_IF_ERROR(LookUntil(watch, stop + kUntilReads));
    RETURN_IF_ERROR(ReadMetrics(watch));
    stopped_->plugin().process().Kill(SIGCONT);
    const std::vector<double> lateness = watch.Lateness(kPolling);
    figures_.polls = static_cast<int>(lateness.size());
    figures_.lateness_p99_ms = Percentile(lateness, 99);
    return figures_;
  }

 private:
  absl::Status SetUp() {
    ASSIGN_OR_RETURN(stage_, Stage::Start());
    ASSIGN_OR_RETURN(stopped_, StartScripted(*stage_, "stopped"));
    ASSIGN_OR_RETURN(healthy_, StartScripted(*stage_, "healthy"));
    RETURN_IF_ERROR(AnswerWithTheTime(*healthy_, "well"));
    RETURN_IF_ERROR(stage_->StartOperator());
    RETURN_IF_ERROR(stage_->CreateDeployments(late_));
    for (const auto& objects : {ill_, well_}) {
      RETURN_IF_ERROR(stage_->CreateDeployments(objects));
      RETURN_IF_ERROR(stage_->CreateScaledObjects(objects, kPollingSeconds));
    }
    RETURN_IF_ERROR(stage_->WaitUntilReady(kStopped + kHealthy, absl::Minutes(5)));
    return stage_->WaitUntilServed(well_.front());
  }

  absl::Status MakeNewObject(int i) {
    const absl::Time start = absl::Now();
    RETURN_IF_ERROR(stage_->CreateScaledObjects({late_[i]}, kPollingSeconds));
    RETURN_IF_ERROR(stage_->WaitUntilReady(1, absl::Minutes(1), late_[i].name));
    figures_.new_object_ready_seconds =
        std::max(figures_.new_object_ready_seconds, absl::ToDoubleSeconds(absl::Now() - start));
    return absl::OkStatus();
  }

  // In turns, so that what the one kind does to the server is there for the other too.
  absl::Status ReadMetrics(AnswerWatch& watch) {
    HttpLoad load(stage_->plane(), kReaders);
    std::vector<double> of_well;
    std::vector<double> of_ill;
    for (int i = 0; i < kReadSlices; ++i) {
      RETURN_IF_ERROR(Read(load, well_, of_well));
      RETURN_IF_ERROR(watch.Look());
      RETURN_IF_ERROR(Read(load, ill_, of_ill));
      RETURN_IF_ERROR(watch.Look());
    }
    figures_.healthy_read_p99_ms = Percentile(of_well, 99);
    figures_.stopped_read_p99_ms = Percentile(of_ill, 99);
    return absl::OkStatus();
  }

  // What the stopped plugin's reads are answered is not asked: an error, or the last value.
  absl::Status Read(HttpLoad& load, const std::vector<ObjectSpec>& objects,
                    std::vector<double>& latencies_ms) {
    std::vector<HttpRequest> reads;
    reads.reserve(objects.size());
    for (const ObjectSpec& object : objects) reads.push_back(stage_->MetricRead(object));
    const LoadResult result = load.Repeat(reads, kReadSlice);
    latencies_ms.insert(latencies_ms.end(), result.latencies_ms.begin(), result.latencies_ms.end());
    std::sort(latencies_ms.begin(), latencies_ms.end());
    if (&objects == &ill_ || result.first_failure.empty()) return absl::OkStatus();
    return absl::UnavailableError(
        absl::StrCat("metric GET of the healthy plugin: ", result.first_failure));
  }

  const std::vector<ObjectSpec> ill_ = Objects("ill", "stopped", kStopped, "ill");
  const std::vector<ObjectSpec> well_ = Objects("well", "healthy", kHealthy, "well");
  const std::vector<ObjectSpec> late_ = Objects("late", "healthy", kLateObjects, "late");
  std::unique_ptr<Stage> stage_;
  std::unique_ptr<tests::ScriptedPlugin> stopped_;
  std::unique_ptr<tests::ScriptedPlugin> healthy_;
  StoppedPluginFigures figures_;
};

// Makes all polls come due at once, as one batch: an operator that has slept for longer than the
// interval, yet well within its lease, finds them overdue and asks them together.
void SleepUntilAllAreDue(tests::OperatorProcess& controller) {
  controller.process().Kill(SIGSTOP);
  absl::SleepFor(kPolling + absl::Seconds(1));
  controller.process().Kill(SIGCONT);
}

absl::StatusOr<HungEntryFigures> RunHungEntryScene() {
  ASSIGN_OR_RETURN(const std::unique_ptr<Stage> stage, Stage::Start());
  ASSIGN_OR_RETURN(const auto plugin, StartScripted(*stage, "healthy"));
  RETURN_IF_ERROR(AnswerWithTheTime(*plugin, "quick"));
  RETURN_IF_ERROR(stage->StartOperator());
  std::vector<ObjectSpec> objects = Objects("quick", "healthy", kBatch - 1, "quick");
  objects.push_back(Objects("hung", "healthy", 1, "hung").front());
  RETURN_IF_ERROR(stage->CreateDeployments(objects));
  RETURN_IF_ERROR(stage->CreateScaledObjects(objects, kPollingSeconds));
  RETURN_IF_ERROR(stage->WaitUntilReady(kBatch, absl::Minutes(2)));
  // Until each was polled: its answer so far is to the connection test, and waited for its HPA.
  ASSIGN_OR_RETURN(const test::v1::CallsResponse tested, plugin->Calls(""));
  int64_t polls = 0;
  RETURN_IF_ERROR(tests::WaitFor(
      [&] {
        const absl::StatusOr<test::v1::CallsResponse> now = plugin->Calls("");
        if (now.ok()) polls = now->polls() - tested.polls();
        return polls >= kBatch;
      },
      absl::Seconds(60), "a poll of each object", [&] { return absl::StrCat(polls, " polls"); }));

  test::v1::Behaviour hangs;
  hangs.set_hang(true);
  RETURN_IF_ERROR(plugin->Set("hung", hangs));
  AnswerWatch watch(stage->controller().grpc_port(), "quick-");
  ASSIGN_OR_RETURN(const test::v1::CallsResponse before, plugin->Calls(""));
  for (int i = 0; i < kBatches; ++i) {
    SleepUntilAllAreDue(stage->controller());
    // Until the hung entry has timed out (after 3 s), and before the next poll.
    RETURN_IF_ERROR(
        LookUntil(watch, absl::Now() + kPolling - absl::Seconds(1), kBetweenQuickLooks));
  }
  ASSIGN_OR_RETURN(const test::v1::CallsResponse after, plugin->Calls(""));

  const std::vector<double> until_decided = watch.UntilDecided();
  const double batches = static_cast<double>(after.rounds() - before.rounds());
  return HungEntryFigures{
      .entries_per_batch = static_cast<double>(after.reads() - before.reads()) / batches,
      .answers = static_cast<int>(until_decided.size()),
      .until_decided_max_ms = Percentile(until_decided, 100)};
}

}  // namespace

absl::StatusOr<StoppedPluginFigures> StopAPlugin() {
  Say(absl::StrCat("outage: ", kStopped, " objects on a stopped plugin, ", kHealthy,
                   " on another"));
  absl::StatusOr<StoppedPluginFigures> figures = StoppedPluginScene().Run();
  if (!figures.ok()) return host::Annotate(figures.status(), "a stopped plugin");
  return figures;
}

absl::StatusOr<HungEntryFigures> HangAnEntry() {
  Say(absl::StrCat("outage: ", kBatch, " objects, one is never answered"));
  absl::StatusOr<HungEntryFigures> figures = RunHungEntryScene();
  if (!figures.ok()) return host::Annotate(figures.status(), "a hung entry");
  return figures;
}

}  // namespace outrigger::bench
