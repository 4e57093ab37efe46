// SPDX-License-Identifier: Apache-2.0
#include "tests/e2e/steady_scene.h"

#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>
#include <absl/time/clock.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/e2e/operator_audit.h"
#include "tests/e2e/scene.h"
#include "tests/support/free_port.h"
#include "tests/support/wait_for.h"

namespace outrigger::tests {
namespace {

constexpr int kIdle = 50;
constexpr int kActive = 10;
constexpr int kFailing = 5;
constexpr int kObjects = kIdle + kActive + kFailing;
constexpr absl::Duration kSteady = absl::Seconds(60);
// So long that whatever a reconcile and the polls after it want to write has been written: polls
// are a second apart, and so are two patches of one status.
constexpr absl::Duration kQuiet = absl::Seconds(5);

std::string NameOf(int i) { return absl::StrCat("w", i); }

// The sum of all series of one family of /metrics.
double SumOf(OperatorProcess& process, const std::string& family) {
  const std::string text =
      OperatorProcess::HttpGet(process.metrics_port(), "/metrics").value_or("");
  double sum = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    double value = 0;
    if (line.substr(0, family.size() + 1) == family + "{" &&
        absl::SimpleAtod(line.substr(line.rfind(' ') + 1), &value)) {
      sum += value;
    }
  }
  return sum;
}

// The fields that an operator said are not kept, one entry for each time that it did.
std::vector<std::string> PrunedFields(const OperatorProcess& process) {
  std::vector<std::string> fields;
  for (const absl::string_view line : absl::StrSplit(process.Log(), '\n')) {
    if (!absl::StrContains(line, "the served CRD does not keep a status field")) continue;
    const std::vector<std::string> parts = absl::StrSplit(line, "\"field\":\"");
    fields.push_back(parts.back().substr(0, parts.back().find('"')));
  }
  return fields;
}

double Reconciles(OperatorProcess& process) {
  return SumOf(process, "controller_runtime_reconcile_total");
}

class SteadyScene {
 public:
  SteadyScene(ControlPlane& plane, SteadyOptions options)
      : options_(options), scene_(plane, "steady"), audit_(plane) {}

  void Run() {
    scene_.StartAll();
    Create();
    Settle();
    ASSERT_FALSE(testing::Test::HasFatalFailure());
    StaySteady();
    ReconcileOneAgain();
    TakeOver();
  }

 private:
  void Create() {
    const std::string closed = absl::StrCat("127.0.0.1:", FreePort());
    scene_.Push("busy", 3);
    std::vector<std::string> documents;
    for (int i = 0; i < kObjects; ++i) {
      const bool idle = i < kIdle;
      const bool fails = i >= kIdle + kActive;
      documents.push_back(scene_.DeploymentYaml(NameOf(i), 0));
      documents.push_back(scene_.ScaledObjectYaml(
          NameOf(i), idle ? absl::StrCat("idle-", i) : "busy", "", fails ? closed : ""));
    }
    scene_.Apply(absl::StrJoin(documents, "\n---\n"));
  }

  // Each object is where it will stay, and ten seconds have passed without a write.
  void Settle() {
    const std::string ready = ".items[*].status.conditions[?(@.type=='Ready')].status";
    scene_.WaitUntil("w64", "60 objects Ready, 5 not", absl::Seconds(90), [&] {
      const std::vector<std::string> all = absl::StrSplit(scene_.Get("so", "", ready), ' ');
      return std::count(all.begin(), all.end(), "True") == kIdle + kActive &&
             std::count(all.begin(), all.end(), "False") == kFailing;
    });
    scene_.WaitUntil("w59", "10 HPAs want one replica", absl::Seconds(60), [&] {
      const std::vector<std::string> all =
          absl::StrSplit(scene_.Get("hpa", "", ".items[*].status.desiredReplicas"), ' ');
      return std::count(all.begin(), all.end(), "1") == kActive;
    });
    absl::Time quiet_since = absl::Now();
    std::vector<AuditedRequest> last;
    const absl::Status settled = WaitFor(
        [&] {
          std::vector<AuditedRequest> writes = WritesOf(audit_.Take());
          if (!writes.empty()) {
            last = std::move(writes);
            quiet_since = absl::Now();
          }
          return absl::Now() - quiet_since >= absl::Seconds(10);
        },
        absl::Seconds(120), "ten seconds without a write", [&] { return Print(last); });
    ASSERT_TRUE(settled.ok()) << settled;
  }

  // What is asked for in `time`, of which at most `allowed_writes` may write.
  std::vector<AuditedRequest> ExpectNoWrite(const std::string& when, absl::Duration time,
                                            size_t allowed_writes = 0) {
    std::vector<AuditedRequest> requests = audit_.Take();
    scene_.StaysTrue(absl::StrCat("the operator runs ", when), time,
                     [&] { return scene_.operator_->process().Running(); });
    const std::vector<AuditedRequest> fresh = audit_.Take();
    requests.insert(requests.end(), fresh.begin(), fresh.end());
    const std::vector<AuditedRequest> writes = WritesOf(requests);
    EXPECT_LE(writes.size(), allowed_writes) << when << ":\n" << Print(writes);
    return requests;
  }

  void StaySteady() {
    (void)audit_.Take();
    int reviews = 0;
    for (const AuditedRequest& request : ExpectNoWrite("in the steady state", kSteady)) {
      reviews += request.resource == "subjectaccessreviews" ? 1 : 0;
    }
    EXPECT_LE(reviews, 7) << "one user, one review in ten seconds";
  }

  // The pod template of a target starts a reconcile of what scales it; this change of it asks for
  // nothing.
  void ReconcileOneAgain() {
    const double before = Reconciles(*scene_.operator_);
    scene_.Patch(
        "deployment", "w0",
        R"({"spec":{"template":{"spec":{"containers":[{"name":"c","image":"changed"}]}}}})");
    scene_.WaitUntil("w0", "a reconcile", absl::Seconds(20),
                     [&] { return Reconciles(*scene_.operator_) > before; });
    ExpectNoWrite("after a reconcile without a change", kQuiet);
  }

  // The metrics API is answered all the while, so nothing changes for the HPAs either.
  void TakeOver() {
    const std::string versions = scene_.Get("so", "", ".items[*].metadata.resourceVersion");
    std::unique_ptr<OperatorProcess> first = std::move(scene_.operator_);
    scene_.StartOperator(
        {.plane = scene_.plane(), .plugin_dir = scene_.plugins().path(), .name = "second"});
    first->process().Kill(SIGTERM);
    ASSERT_EQ(first->process().Wait(absl::Seconds(20)).value_or(-1), 0)
        << first->process().OutputTail();
    scene_.WaitUntil("w64", "the second reconciles all", absl::Seconds(60),
                     [&] { return Reconciles(*scene_.operator_) >= kObjects; });
    ExpectNoWrite("after a take-over", kQuiet, options_.crd_prunes ? 1 : 0);
    EXPECT_EQ(scene_.Get("so", "", ".items[*].metadata.resourceVersion"), versions);
    ExpectFieldsReportedOnce(*first);
    ExpectFieldsReportedOnce(*scene_.operator_);
  }

  void ExpectFieldsReportedOnce(const OperatorProcess& process) {
    const std::vector<std::string> fields = PrunedFields(process);
    if (!options_.crd_prunes) {
      EXPECT_THAT(fields, testing::IsEmpty());
      return;
    }
    EXPECT_THAT(fields, testing::Contains("status.phase"));
    EXPECT_EQ(std::set<std::string>(fields.begin(), fields.end()).size(), fields.size())
        << absl::StrJoin(fields, " ");
  }

  const SteadyOptions options_;
  Scene scene_;
  OperatorAudit audit_;
};

}  // namespace

void NothingIsWrittenWhenNothingChanges(ControlPlane& plane, SteadyOptions options) {
  SteadyScene(plane, options).Run();
}

}  // namespace outrigger::tests
