// SPDX-License-Identifier: Apache-2.0
#include "tests/e2e/replicas.h"

#include <absl/strings/str_cat.h>
#include <curl/curl.h>

#include <csignal>
#include <cstdio>

#include "host/base/status.h"
#include "tests/support/network_namespace.h"
#include "tests/support/wait_for.h"

namespace outrigger::tests {
namespace {

using testing::Contains;
using testing::Not;

constexpr uint16_t kMetricsApiPort = 6443;  // of deploy/deployment.yaml

std::unique_ptr<ControlPlane> StartPlane() {
  absl::StatusOr<std::unique_ptr<ControlPlane>> plane =
      ControlPlane::Start({.api_server_arguments = {
                               "--enable-aggregator-routing=true",
                               // Else it looks for an interface with a default route.
                               absl::StrCat("--advertise-address=", ReplicasTest::kFirstAddress)}});
  MustBeOk(plane.status());
  MustBeOk((*plane)->ApplyDeployFiles());
  MustBeOk(OperatorPods(**plane).Deploy());
  return *std::move(plane);
}

}  // namespace

void MustBeOk(const absl::Status& status) { ASSERT_TRUE(status.ok()) << status; }

std::unique_ptr<ControlPlane> ReplicasTest::plane_;

void ReplicasTest::SetUpTestSuite() { plane_ = StartPlane(); }

void ReplicasTest::TearDown() {
  // While there is an operator that takes their finalizers off.
  (void)plane_->Kubectl({"delete", "so", "--all", "-A", "--timeout=20s"});
  for (const std::unique_ptr<Replica>& replica : replicas_) End(*replica);
  // They were killed, and the next test's need not wait until their lease is over.
  (void)plane_->Kubectl({"delete", "lease", "outrigger-operator", "-n", "outrigger"});
}

Replica& ReplicasTest::Start(const std::string& address, std::vector<std::string> arguments) {
  replicas_.push_back(std::make_unique<Replica>());
  Replica& replica = *replicas_.back();
  replica.address = address;
  Launch(replica, std::move(arguments));
  return replica;
}

std::pair<Replica&, Replica&> ReplicasTest::StartTwo(const std::vector<std::string>& arguments) {
  Replica& first = Start(kFirstAddress, arguments);
  WaitUntilLeads(first, absl::Seconds(30));
  Replica& second = Start(kSecondAddress, arguments);
  EXPECT_FALSE(second.controller->Leads());
  return {first, second};
}

void ReplicasTest::WaitUntilLeads(Replica& replica, absl::Duration limit) {
  const absl::Status leads = WaitFor([&] { return replica.controller->Leads(); }, limit,
                                     absl::StrCat("the replica ", replica.address, " leads"),
                                     [&] { return replica.controller->process().OutputTail(); });
  ASSERT_TRUE(leads.ok()) << leads;
}

void ReplicasTest::Terminate(Replica& replica) {
  MustBeOk(pods().Delete(replica.pod));
  replica.controller->process().Kill(SIGTERM);
}

void ReplicasTest::ReportEnd(Replica& replica) {
  MustBeOk(pods().ReportEnd(replica.pod));
  WaitUntilPublished(Not(Contains(replica.address)), replica.address + " is not published");
}

MetricDoor ReplicasTest::DoorOf(const Replica& replica) const {
  return DirectlyAt(*plane_, replica.address, kMetricsApiPort);
}

void ReplicasTest::WaitUntilServed(const std::string& path) {
  MetricAnswer last;
  const absl::Status served = WaitFor(
      [&] {
        last = ReadMetric(ThroughTheApiService(*plane_), path);
        return last.ok();
      },
      absl::Seconds(60), "the metric through the APIService", [&] { return Print({last}); });
  ASSERT_TRUE(served.ok()) << served;
}

std::string ReplicasTest::LeaseField(const std::string& name) {
  return plane_
      ->MustKubectl({"get", "lease", "outrigger-operator", "-n", "outrigger", "-o",
                     absl::StrCat("jsonpath={.spec.", name, "}")})
      .value_or("");
}

absl::Time ReplicasTest::LeaseAcquiredAt() {
  const std::string text = LeaseField("acquireTime");
  absl::Time acquired;
  std::string error;
  EXPECT_TRUE(absl::ParseTime(absl::RFC3339_full, text, &acquired, &error)) << text << error;
  return acquired;
}

void ReplicasTest::Launch(Replica& replica, std::vector<std::string> arguments) {
  absl::StatusOr<std::string> pod = pods().Run(replica.address);
  MustBeOk(pod.status());
  replica.pod = *std::move(pod);
  absl::StatusOr<std::unique_ptr<Process>> plugin =
      StartPlugin(replica.plugins, "redis", "outrigger-scaler-redis");
  MustBeOk(plugin.status());
  replica.plugin = *std::move(plugin);
  arguments.push_back("--pod-name=" + replica.pod);
  absl::StatusOr<std::unique_ptr<OperatorProcess>> controller =
      OperatorProcess::Start({.plane = *plane_,
                              .plugin_dir = replica.plugins.path(),
                              .name = replica.pod,
                              .arguments = std::move(arguments),
                              .address = replica.address,
                              .metrics_api_port = kMetricsApiPort});
  MustBeOk(controller.status());
  replica.controller = *std::move(controller);
  WaitUntilPublished(Contains(replica.address), replica.address + " is published");
}

void ReplicasTest::WaitUntilPublished(const testing::Matcher<std::set<std::string>>& wanted,
                                      const std::string& what) {
  std::set<std::string> last;
  const absl::Status reached = WaitFor(
      [&] {
        last = pods().PublishedAddresses().value_or(std::set<std::string>());
        return testing::Value(last, wanted);
      },
      absl::Seconds(30), what, [&] { return testing::PrintToString(last); });
  ASSERT_TRUE(reached.ok()) << reached;
}

void ReplicasTest::End(Replica& replica) {
  replica.controller.reset();
  replica.plugin.reset();
  (void)pods().ReportEnd(replica.pod);
}

int RunInANetworkOfItsOwn(int argc, char** argv) {
  const absl::Status moved =
      EnterNetworkNamespace({ReplicasTest::kFirstAddress, ReplicasTest::kSecondAddress});
  if (!moved.ok()) {
    std::fprintf(stderr, "a network of its own: %s\n", host::Describe(moved).c_str());
    return 1;
  }
  curl_global_init(CURL_GLOBAL_DEFAULT);  // not thread-safe, and readers have threads
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}

}  // namespace outrigger::tests
