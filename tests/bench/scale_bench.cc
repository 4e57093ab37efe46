// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/scale_bench.h"

#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "host/base/status.h"
#include "tests/bench/footprint.h"
#include "tests/bench/stage.h"
#include "tests/e2e/scene.h"
#include "tests/support/redis_server.h"
#include "tests/support/wait_for.h"

namespace outrigger::bench {
namespace {

constexpr int kPollingSeconds = 30;
// Below this, what a process needs at its first work hides what an object needs.
constexpr int kEnoughForMemory = 100;
// The HPA controller looks at a new HPA within two of its syncs, and each that it has looked at
// gives its object a condition more: a minute with these writes in it is no steady minute.
constexpr absl::Duration kQuiet = absl::Seconds(10);
constexpr absl::Duration kUntilQuiet = absl::Minutes(3);
constexpr absl::Duration kSteady = absl::Seconds(60);
constexpr absl::Duration kReads = absl::Seconds(10);
constexpr char kScale[] = "ScaledObjects";
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

// One size: its processes, and the steps in their order.
class ScaleRun {
 public:
  ScaleRun(int size, Report& report) : size_(size), column_(absl::StrCat(size)), report_(report) {}

  absl::Status Run() {
    RETURN_IF_ERROR(SetUp());
    RETURN_IF_ERROR(BecomeReady());
    RETURN_IF_ERROR(StaySteady());
    return ReadMetrics();
  }

 private:
  struct Both {
    Usage controller;
    Usage plugin;
    double cpu_seconds() const { return controller.cpu_seconds + plugin.cpu_seconds; }
  };

  absl::StatusOr<Both> Now() {
    Both both;
    ASSIGN_OR_RETURN(both.controller, UsageOf(stage_->controller().process().pid()));
    ASSIGN_OR_RETURN(both.plugin, UsageOf(plugin_->pid()));
    return both;
  }

  void Add(const std::string& figure, const std::string& unit, double value,
           const std::string& aim = "") {
    report_.Add(kScale, column_, figure, unit, value, aim);
  }

  absl::Status SetUp() {
    ASSIGN_OR_RETURN(redis_, tests::RedisServer::Start());
    ASSIGN_OR_RETURN(stage_, Stage::Start());
    ASSIGN_OR_RETURN(plugin_,
                     tests::StartPlugin(stage_->plugins(), "redis", "outrigger-scaler-redis"));
    RETURN_IF_ERROR(stage_->StartOperator());
    objects_ = Objects(size_, redis_->address());
    return stage_->CreateDeployments(objects_);
  }

  absl::Status BecomeReady() {
    ASSIGN_OR_RETURN(empty_, Now());
    const absl::Time start = absl::Now();
    RETURN_IF_ERROR(stage_->CreateScaledObjects(objects_, kPollingSeconds));
    const absl::Duration created = absl::Now() - start;
    RETURN_IF_ERROR(stage_->WaitUntilReady(size_, absl::Minutes(5)));
    Add("all Ready after", "s", absl::ToDoubleSeconds(absl::Now() - start), "<= 6.4 for 1000");
    ASSIGN_OR_RETURN(const Both ready, Now());
    Add("of it, creating them", "s", absl::ToDoubleSeconds(created));
    Add("CPU until then: operator", "CPU-s",
        ready.controller.cpu_seconds - empty_.controller.cpu_seconds);
    Add("CPU until then: plugin", "CPU-s", ready.plugin.cpu_seconds - empty_.plugin.cpu_seconds);
    Add("CPU until then: both", "CPU-s", ready.cpu_seconds() - empty_.cpu_seconds(),
        "<= 1.53 for 1000");
    ReportRequests(start);
    return absl::OkStatus();
  }

  void ReportRequests(absl::Time since) {
    int writes = 0;
    const std::vector<tests::AuditedRequest> requests =
        tests::OperatorRequests(stage_->plane(), since);
    for (const tests::AuditedRequest& request : requests) {
      const bool reads = request.verb == "get" || request.verb == "list" || request.verb == "watch";
      writes += reads || request.resource == "leases" ? 0 : 1;
    }
    Add("API requests per object until then", "", static_cast<double>(requests.size()) / size_);
    Add("of them, writes", "", static_cast<double>(writes) / size_);
  }

  absl::Status Settle() {
    std::vector<tests::AuditedRequest> writes;
    absl::Time next = absl::Now() + kQuiet;
    return tests::WaitFor(
        [&] {
          if (absl::Now() < next) return false;
          next = absl::Now() + absl::Seconds(2);
          writes = tests::OperatorWrites(stage_->plane(), absl::Now() - kQuiet);
          return writes.empty();
        },
        kUntilQuiet, "the operator writes nothing more", [&] { return tests::Print(writes); });
  }

  absl::Status StaySteady() {
    RETURN_IF_ERROR(Settle());
    const absl::Time start = absl::Now();
    ASSIGN_OR_RETURN(const Both before, Now());
    absl::SleepFor(kSteady);
    ASSIGN_OR_RETURN(const Both after, Now());
    const double polls =
        size_ * absl::FDivDuration(absl::Now() - start, absl::Seconds(kPollingSeconds));
    Add("RSS of operator", "MB", after.controller.rss_kb / 1024, "<= 53 with the plugin");
    Add("RSS of plugin", "MB", after.plugin.rss_kb / 1024);
    if (size_ >= kEnoughForMemory) ReportMemoryPerObject(after);
    Add("CPU per poll over 60 s", "ms", 1000 * (after.cpu_seconds() - before.cpu_seconds()) / polls,
        "<= 0.38");
    Add("API requests in these 60 s", "",
        static_cast<double>(tests::OperatorRequests(stage_->plane(), start).size()));
    return absl::OkStatus();
  }

  void ReportMemoryPerObject(const Both& after) {
    Add("RSS per object: operator", "KB",
        (after.controller.rss_kb - empty_.controller.rss_kb) / size_);
    Add("RSS per object: plugin", "KB", (after.plugin.rss_kb - empty_.plugin.rss_kb) / size_);
    Add("RSS per object: both", "KB",
        (after.controller.rss_kb + after.plugin.rss_kb - empty_.controller.rss_kb -
         empty_.plugin.rss_kb) /
            size_,
        "<= 15");
  }

  absl::Status ReadMetrics() {
    RETURN_IF_ERROR(stage_->WaitUntilServed(objects_.front()));
    std::vector<HttpRequest> reads;
    for (const ObjectSpec& object : objects_) reads.push_back(stage_->MetricRead(object));
    ASSIGN_OR_RETURN(const Both before, Now());
    const LoadResult result = stage_->load().Repeat(reads, kReads);
    ASSIGN_OR_RETURN(const Both after, Now());
    if (!result.first_failure.empty()) {
      return absl::UnavailableError(absl::StrCat("metric GET: ", result.first_failure));
    }
    Add("metric GETs through the aggregator, 16 at a time", "1/s", result.Rate(), ">= 8400");
    Add("metric GET p50", "ms", result.Percentile(50));
    Add("metric GET p99", "ms", result.Percentile(99), "<= 11.1");
    Add("CPU per GET, operator and plugin", "ms",
        1000 * (after.cpu_seconds() - before.cpu_seconds()) /
            static_cast<double>(result.latencies_ms.size()),
        "<= 0.096");
    return absl::OkStatus();
  }

  const int size_;
  const std::string column_;
  Report& report_;
  std::vector<ObjectSpec> objects_;
  // In the order of their start; ended the other way round.
  std::unique_ptr<tests::RedisServer> redis_;
  std::unique_ptr<Stage> stage_;
  std::unique_ptr<tests::Process> plugin_;
  Both empty_;  // before the first object
};

}  // namespace

absl::Status BenchScale(int size, Report& report) {
  Say(absl::StrCat("scale: ", size, " ScaledObjects"));
  return host::Annotate(ScaleRun(size, report).Run(), absl::StrCat("scale, ", size, " objects"));
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
