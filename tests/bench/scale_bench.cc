// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/scale_bench.h"

#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "host/base/status.h"
#include "tests/bench/footprint.h"
#include "tests/bench/stage.h"
#include "tests/e2e/operator_audit.h"
#include "tests/support/redis_server.h"
#include "tests/support/wait_for.h"

namespace outrigger::bench {
namespace {

constexpr int kPollingSeconds = 30;
// Below this, what a process needs at its first work hides what an object needs.
constexpr int kEnoughForMemory = 100;
// The HPA controller looks at a new HPA within two of its syncs, and each that it has looked at
// gives its object a condition more: a minute with these writes in it is no steady minute. Longer
// than a sync (15 s), since nothing is written before the first.
constexpr absl::Duration kQuiet = absl::Seconds(20);
constexpr absl::Duration kUntilQuiet = absl::Minutes(3);
constexpr absl::Duration kSteady = absl::Seconds(60);
constexpr absl::Duration kReads = absl::Seconds(10);
constexpr absl::Duration kReadyTimeout = absl::Minutes(10);
constexpr char kScale[] = "ScaledObjects";
constexpr char kRatios[] = "How many times better than KEDA";
constexpr char kSizes[] = "Closure without libc";
constexpr double kMegabyte = 1e6;

std::vector<ObjectSpec> Objects(int size, const std::string& redis_address) {
  std::vector<ObjectSpec> objects;
  for (int i = 0; i < size; ++i) {
    const std::string list = absl::StrCat("list-", i);
    objects.push_back({.name = absl::StrCat("worker-", i),
                       .trigger_type = "redis",
                       .metadata = absl::StrCat(R"("address":")", redis_address,
                                                R"(","listName":")", list, R"(","listLength":"5")"),
                       .metric_name = absl::StrCat("s0-redis-", list)});
  }
  return objects;
}

struct Figure {
  std::string name;
  std::string unit;
  double value = 0;
  std::string aim;
  bool more_is_better = false;
};

// One contender with one size: its processes, and the steps in their order.
class ScaleRun {
 public:
  ScaleRun(int size, std::unique_ptr<Contender> contender)
      : size_(size), contender_(std::move(contender)) {}

  absl::Status Run() {
    RETURN_IF_ERROR(SetUp());
    RETURN_IF_ERROR(BecomeReady());
    RETURN_IF_ERROR(StaySteady());
    return ReadMetrics();
  }

  const std::vector<Figure>& figures() const { return figures_; }

 private:
  struct Both {
    Usage controller;
    Usage companion;
    double cpu_seconds() const { return controller.cpu_seconds + companion.cpu_seconds; }
    double rss_kb() const { return controller.rss_kb + companion.rss_kb; }
  };

  absl::StatusOr<Both> Now() {
    const Contender::Pids pids = contender_->pids();
    Both both;
    ASSIGN_OR_RETURN(both.controller, UsageOf(pids.controller));
    ASSIGN_OR_RETURN(both.companion, UsageOf(pids.companion));
    return both;
  }

  std::vector<tests::AuditedRequest> RequestsSince(absl::Time since) {
    return tests::RequestsOf(stage_->plane(), contender_->user(), since);
  }

  std::vector<tests::AuditedRequest> WritesSince(absl::Time since) {
    return tests::WritesOf(RequestsSince(since));
  }

  void Add(const std::string& name, const std::string& unit, double value,
           const std::string& aim = "") {
    figures_.push_back({.name = name, .unit = unit, .value = value, .aim = aim});
  }

  absl::Status SetUp() {
    ASSIGN_OR_RETURN(redis_, tests::RedisServer::Start());
    ASSIGN_OR_RETURN(stage_, Stage::Start(contender_->crds()));
    RETURN_IF_ERROR(contender_->Start(*stage_));
    objects_ = Objects(size_, redis_->address());
    return stage_->CreateDeployments(objects_);
  }

  // What kube-apiserver, etcd and the controller manager have used: they take part in all that
  // goes on, on the same processors.
  absl::StatusOr<double> ControlPlaneCpuSeconds() {
    const tests::ControlPlane::Pids pids = stage_->plane().pids();
    double seconds = 0;
    for (const pid_t pid : {pids.api_server, pids.etcd, pids.controller_manager}) {
      ASSIGN_OR_RETURN(const Usage usage, UsageOf(pid));
      seconds += usage.cpu_seconds;
    }
    return seconds;
  }

  absl::Status BecomeReady() {
    ASSIGN_OR_RETURN(empty_, Now());
    ASSIGN_OR_RETURN(const double control_plane_before, ControlPlaneCpuSeconds());
    const absl::Time start = absl::Now();
    RETURN_IF_ERROR(stage_->CreateScaledObjects(objects_, kPollingSeconds));
    const absl::Duration created = absl::Now() - start;
    RETURN_IF_ERROR(
        host::Annotate(stage_->WaitUntilReady(size_, kReadyTimeout), contender_->LogTail()));
    Add("all Ready after", "s", absl::ToDoubleSeconds(absl::Now() - start), "<= 6.4 for 1000");
    ASSIGN_OR_RETURN(const Both ready, Now());
    ASSIGN_OR_RETURN(const double control_plane, ControlPlaneCpuSeconds());
    Add("of it, creating them", "s", absl::ToDoubleSeconds(created));
    Add("CPU until then: operator", "CPU-s",
        ready.controller.cpu_seconds - empty_.controller.cpu_seconds);
    Add("CPU until then: plugin, KEDA's adapter", "CPU-s",
        ready.companion.cpu_seconds - empty_.companion.cpu_seconds);
    Add("CPU until then: both", "CPU-s", ready.cpu_seconds() - empty_.cpu_seconds(),
        "<= 1.53 for 1000");
    Add("CPU until then: control plane", "CPU-s", control_plane - control_plane_before);
    ReportRequests(start);
    return absl::OkStatus();
  }

  void ReportRequests(absl::Time since) {
    Add("API requests per object until then", "",
        static_cast<double>(RequestsSince(since).size()) / size_);
    Add("writes among them", "", static_cast<double>(WritesSince(since).size()) / size_);
  }

  // No failure when it does not: who writes all the time is measured as it is.
  void Settle() {
    std::vector<tests::AuditedRequest> writes;
    absl::Time next = absl::Now() + kQuiet;
    const absl::Status quiet = tests::WaitFor(
        [&] {
          if (absl::Now() < next) return false;
          next = absl::Now() + absl::Seconds(2);
          writes = WritesSince(absl::Now() - kQuiet);
          return writes.empty();
        },
        kUntilQuiet, "it writes nothing more",
        [&] { return absl::StrCat(writes.size(), " writes in ", absl::FormatDuration(kQuiet)); });
    if (!quiet.ok()) Say(host::Describe(quiet));
  }

  absl::Status StaySteady() {
    Settle();
    const absl::Time start = absl::Now();
    ASSIGN_OR_RETURN(const Both before, Now());
    absl::SleepFor(kSteady);
    ASSIGN_OR_RETURN(const Both after, Now());
    const double polls =
        size_ * absl::FDivDuration(absl::Now() - start, absl::Seconds(kPollingSeconds));
    Add("RSS of operator", "MB", after.controller.rss_kb / 1024);
    Add("RSS of plugin, KEDA's adapter", "MB", after.companion.rss_kb / 1024);
    Add("RSS of both", "MB", after.rss_kb() / 1024, "<= 53 for 1000");
    if (size_ >= kEnoughForMemory) ReportMemoryPerObject(after);
    Add("CPU per poll over 60 s", "ms", 1000 * (after.cpu_seconds() - before.cpu_seconds()) / polls,
        "<= 0.38");
    Add("API requests in these 60 s", "", static_cast<double>(RequestsSince(start).size()));
    Add("writes in these 60 s", "", static_cast<double>(WritesSince(start).size()));
    return absl::OkStatus();
  }

  void ReportMemoryPerObject(const Both& after) {
    Add("RSS per object: operator", "KB",
        (after.controller.rss_kb - empty_.controller.rss_kb) / size_);
    Add("RSS per object: plugin, KEDA's adapter", "KB",
        (after.companion.rss_kb - empty_.companion.rss_kb) / size_);
    Add("RSS per object: both", "KB", (after.rss_kb() - empty_.rss_kb()) / size_, "<= 15");
  }

  absl::Status ReadMetrics() {
    RETURN_IF_ERROR(stage_->WaitUntilServed(objects_.front()));
    std::vector<HttpRequest> reads;
    reads.reserve(objects_.size());
    for (const ObjectSpec& object : objects_) reads.push_back(stage_->MetricRead(object));
    ASSIGN_OR_RETURN(const Both before, Now());
    const LoadResult result = stage_->load().Repeat(reads, kReads);
    ASSIGN_OR_RETURN(const Both after, Now());
    if (!result.first_failure.empty()) {
      return absl::UnavailableError(absl::StrCat("metric GET: ", result.first_failure));
    }
    figures_.push_back({.name = "metric GETs through the aggregator, 16 at a time",
                        .unit = "1/s",
                        .value = result.Rate(),
                        .aim = ">= 8400",
                        .more_is_better = true});
    Add("metric GET p50", "ms", result.Percentile(50));
    Add("metric GET p99", "ms", result.Percentile(99), "<= 11.1");
    Add("CPU per GET, both", "ms",
        1000 * (after.cpu_seconds() - before.cpu_seconds()) /
            static_cast<double>(result.latencies_ms.size()),
        "<= 0.096");
    return absl::OkStatus();
  }

  const int size_;
  std::vector<ObjectSpec> objects_;
  std::vector<Figure> figures_;
  // In the order of their start; ended the other way round.
  std::unique_ptr<tests::RedisServer> redis_;
  std::unique_ptr<Stage> stage_;
  const std::unique_ptr<Contender> contender_;
  Both empty_;  // before the first object
};

// How many times better the first is: for what has an aim.
void Compare(const std::string& column, const std::vector<Figure>& first,
             const std::vector<Figure>& second, Report& report) {
  for (const Figure& ours : first) {
    const auto theirs = std::find_if(second.begin(), second.end(), [&](const Figure& figure) {
      return figure.name == ours.name;
    });
    if (ours.aim.empty() || theirs == second.end()) continue;
    const double better = ours.more_is_better ? ours.value : theirs->value;
    const double worse = ours.more_is_better ? theirs->value : ours.value;
    if (worse > 0) report.Add(kRatios, column, ours.name, "times", better / worse, ">= 10");
  }
}

}  // namespace

absl::Status BenchScale(int size, const std::vector<NewContender>& contenders, Report& report) {
  std::vector<std::vector<Figure>> all;
  for (const NewContender& create : contenders) {
    std::unique_ptr<Contender> contender = create();
    const std::string name = contender->name();
    Say(absl::StrCat("scale: ", size, " ScaledObjects, ", name));
    ScaleRun run(size, std::move(contender));
    const absl::Status ended = run.Run();
    const std::string column = all.empty() ? absl::StrCat(size) : absl::StrCat(size, " ", name);
    for (const Figure& figure : run.figures()) {
      report.Add(kScale, column, figure.name, figure.unit, figure.value, figure.aim);
    }
    RETURN_IF_ERROR(host::Annotate(ended, absl::StrCat("scale, ", size, " objects, ", name)));
    all.push_back(run.figures());
  }
  for (size_t i = 1; i < all.size(); ++i) Compare(absl::StrCat(size), all.front(), all[i], report);
  return absl::OkStatus();
}

absl::Status BenchClosure(Report& report) {
  const std::string controller = tests::OurProgram("outrigger-operator");
  const std::string plugin = tests::OurProgram("outrigger-scaler-redis");
  const std::vector<std::pair<std::string, std::vector<std::string>>> sets = {
      {"operator", {controller}}, {"redis plugin", {plugin}}, {"both", {controller, plugin}}};
  for (const auto& [column, executables] : sets) {
    ASSIGN_OR_RETURN(const Closure closure, ClosureOf(executables));
    const auto add = [&, &column = column](const std::string& figure, const std::string& unit,
                                           double value, const std::string& aim) {
      report.Add(kSizes, column, figure, unit, value, aim);
    };
    const auto executable_bytes = static_cast<double>(closure.executable_bytes);
    const auto library_bytes = static_cast<double>(closure.library_bytes);
    add("executables, stripped", "MB", executable_bytes / kMegabyte, "");
    add("shared libraries", "MB", library_bytes / kMegabyte, "");
    add("how many libraries", "", closure.libraries, "");
    add("all", "MB", (executable_bytes + library_bytes) / kMegabyte, "<= 60");
  }
  return absl::OkStatus();
}

}  // namespace outrigger::bench
