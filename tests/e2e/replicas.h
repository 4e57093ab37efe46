// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/time/time.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/cluster/control_plane.h"
#include "tests/e2e/metric_reader.h"
#include "tests/e2e/operator_pods.h"
#include "tests/e2e/operator_process.h"
#include "tests/support/process.h"

namespace outrigger::tests {

// Fails the test.
void MustBeOk(const absl::Status& status);

// One replica: what is in its Pod, and the Pod.
struct Replica {
  std::string address;
  PluginDir plugins;
  std::unique_ptr<Process> plugin;
  std::unique_ptr<OperatorProcess> controller;
  std::string pod;
};

// Replicas of the operator behind one APIService, in a network of the test program's own. The Pods,
// and what becomes of their addresses, are as in a cluster: see OperatorPods.
//
// A program of such tests has RunInANetworkOfItsOwn() for its main().
class ReplicasTest : public testing::Test {
 public:
  static constexpr char kFirstAddress[] = "10.99.0.1";
  static constexpr char kSecondAddress[] = "10.99.0.2";
  static constexpr size_t kManyReads = 200;

 protected:
  static void SetUpTestSuite();
  static void TearDownTestSuite() { plane_.reset(); }
  void TearDown() override;

  // A replica that serves, and whose Pod is published.
  Replica& Start(const std::string& address, std::vector<std::string> arguments = {});
  // The first of the two leads.
  std::pair<Replica&, Replica&> StartTwo(const std::vector<std::string>& arguments = {});
  static void WaitUntilLeads(Replica& replica, absl::Duration limit);

  // What the kubelet does with a Pod that was deleted, to the end of the operator.
  void Terminate(Replica& replica);
  void ReportEnd(Replica& replica);

  MetricDoor DoorOf(const Replica& replica) const;
  // Until the metric is had through the APIService, too.
  void WaitUntilServed(const std::string& path);

  std::string LeaseField(const std::string& name);
  absl::Time LeaseAcquiredAt();

  static OperatorPods pods() { return OperatorPods(*plane_); }

  static std::unique_ptr<ControlPlane> plane_;
  std::vector<std::unique_ptr<Replica>> replicas_;

 private:
  void Launch(Replica& replica, std::vector<std::string> arguments);
  static void WaitUntilPublished(const testing::Matcher<std::set<std::string>>& wanted,
                                 const std::string& what);
  static void End(Replica& replica);
};

// Runs all tests; 1 when there is no network to be had.
int RunInANetworkOfItsOwn(int argc, char** argv);

}  // namespace outrigger::tests
