// SPDX-License-Identifier: Apache-2.0
#include "tests/e2e/hpa_watch.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <gtest/gtest.h>

#include <utility>

#include "tests/cluster/cache.h"

namespace outrigger::tests {
namespace {

constexpr char kEnd[] = "|";  // of one version; a template that says nothing leaves no other trace

}  // namespace

HpaWatch::HpaWatch(ControlPlane& plane, const std::vector<std::string>& scope,
                   const std::string& what) {
  Process::Options kubectl;
  kubectl.argv = {KubernetesProgram("kubectl"),
                  "--kubeconfig",
                  plane.admin_kubeconfig(),
                  "get",
                  "hpa",
                  "-w",
                  "-o",
                  absl::StrCat("jsonpath=", what, "{\"", kEnd, "\"}")};
  kubectl.argv.insert(kubectl.argv.end(), scope.begin(), scope.end());
  kubectl.stdout_file = dir_.File("seen");
  absl::StatusOr<std::unique_ptr<Process>> started = Process::Start(std::move(kubectl));
  EXPECT_TRUE(started.ok()) << started.status();
  if (started.ok()) kubectl_ = *std::move(started);
}

std::vector<std::string> HpaWatch::Seen() const {
  std::vector<std::string> seen = absl::StrSplit(ReadFile(dir_.File("seen")).value_or(""), kEnd);
  seen.pop_back();  // behind the last
  return seen;
}

}  // namespace outrigger::tests
