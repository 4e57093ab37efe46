// SPDX-License-Identifier: Apache-2.0
// outrigger_bench RESULTS.json: measures, prints tables, writes the figures. Environment:
// BENCH_SIZES ("1 100 1000"), BENCH_OUTAGES (1; 0 leaves the outages out), PEER (0; 1: KEDA too,
// for which peer/build_keda.sh has run).
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "host/base/status.h"
#include "tests/bench/outage_bench.h"
#include "tests/bench/report.h"
#include "tests/bench/scale_bench.h"

namespace outrigger::bench {
namespace {

std::string Environment(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? otherwise : value;
}

absl::StatusOr<std::vector<int>> Sizes() {
  std::vector<int> sizes;
  const std::string text = Environment("BENCH_SIZES", "1 100 1000");
  for (const absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    int size = 0;
    if (!absl::SimpleAtoi(word, &size) || size < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("BENCH_SIZES: want numbers > 0, got \"", word, "\""));
    }
    sizes.push_back(size);
  }
  return sizes;
}

std::vector<NewContender> Contenders() {
  if (Environment("PEER", "0") == "0") return {NewOutrigger};
  return {NewOutrigger, NewKeda};
}

// Every part, even when one fails: the others' figures took minutes.
int Run(const std::string& results) {
  const absl::StatusOr<std::vector<int>> sizes = Sizes();
  const std::vector<NewContender> contenders = Contenders();
  Report report;
  std::vector<absl::Status> ended = {sizes.status()};
  if (sizes.ok()) {
    ended.push_back(BenchClosure(report));
    for (const int size : *sizes) ended.push_back(BenchScale(size, contenders, report));
    if (Environment("BENCH_OUTAGES", "1") != "0") {
      ended.push_back(BenchStoppedPlugin(report));
      ended.push_back(BenchHungEntry(report));
    }
    std::fputs(report.Table().c_str(), stdout);
    ended.push_back(report.WriteJson(results));
  }
  int code = 0;
  for (const absl::Status& status : ended) {
    if (status.ok()) continue;
    std::fprintf(stderr, "%s\n", host::Describe(status).c_str());
    code = 1;
  }
  return code;
}

}  // namespace
}  // namespace outrigger::bench

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: outrigger_bench RESULTS.json\n");
    return 2;
  }
  return outrigger::bench::Run(argv[1]);
}
