// SPDX-License-Identifier: Apache-2.0
#include "operator/local/deployment_controller.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "operator/kube/memory_api.h"
#include "operator/local/hpa_controller.h"
#include "operator/local/process_runner.h"
#include "tests/operator/kube_memory/memory_fixture.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wait_for.h"

namespace outrigger::controller::local {
namespace {

using kube::At;

// Numbers instead of processes: each replica is ready three seconds after it was asked for.
class FakeWorkload : public Workload {
 public:
  FakeWorkload(host::Clock& clock, std::function<void()> changed)
      : clock_(clock), changed_(std::move(changed)) {}

  absl::Status Apply(const boost::json::object& spec) override {
    if (spec.contains("broken")) return absl::InvalidArgumentError("spec.broken: want none");
    wanted_ = static_cast<int32_t>(spec.at("replicas").as_int64());
    wake_.Notify();
    return absl::OkStatus();
  }
  Counts counts() const override { return counts_; }
  host::Task<void> Run() override {
    while (!stopping_ || counts_.replicas > 0) {
      counts_ = {.replicas = stopping_ ? 0 : wanted_, .ready = std::min(counts_.ready, wanted_)};
      changed_();
      if (!stopping_ && counts_.ready < wanted_) {
        co_await clock_.Sleep(absl::Seconds(3));
        counts_.ready = wanted_;
      } else if (!stopping_) {
        co_await wake_.Wait(clock_);
      }
    }
  }
  void Stop() override {
    stopping_ = true;
    wake_.Notify();
  }
  void Kill() override { Stop(); }

 private:
  host::Clock& clock_;
  const std::function<void()> changed_;
  const host::Event wake_;
  int32_t wanted_ = 0;
  Counts counts_;
  bool stopping_ = false;
};

class DeploymentControllerTest : public testing::Test {
 protected:
  void StartController(WorkloadFactory factory) {
    controller_ = std::make_unique<DeploymentController>(
        fixture_.api, fixture_.clock, host::Logger(host::MakeNullSink()), host::Random(1),
        std::move(factory), DeploymentController::Options());
    boost::asio::co_spawn(fixture_.executor.executor(), controller_->Run(),
                          [this](const std::exception_ptr&) { ended_ = true; });
  }
  void StartFakes() {
    StartController([this](const api::NamespacedName&, std::function<void()> changed) {
      ++made_;
      return std::make_unique<FakeWorkload>(fixture_.clock, std::move(changed));
    });
  }
  ~DeploymentControllerTest() override {
    if (controller_ == nullptr) return;
    controller_->Stop();
    const absl::Status waited = tests::WaitFor(
        [this] {
          fixture_.executor.RunFor(absl::Seconds(1));
          return ended_;
        },
        absl::Seconds(20), "the end", [] { return "still running"; });
    EXPECT_TRUE(waited.ok()) << waited;
  }

  void Create(const std::string& spec) {
    const auto created = fixture_.Create(
        kube::Deployments(), absl::StrCat(R"({"metadata":{"name":"web"},"spec":)", spec, "}"));
    ASSERT_TRUE(created.ok()) << created.status();
  }
  std::string Status(const std::string& member) {
    const auto got = fixture_.Get(kube::Deployments(), "web");
    return got.ok() ? At(*got, absl::StrCat("/status/", member)) : got.status().ToString();
  }

  kube::MemoryFixture fixture_;
  std::unique_ptr<DeploymentController> controller_;
  int made_ = 0;
  bool ended_ = false;
};

TEST_F(DeploymentControllerTest, StatusFollowsTheWorkload) {
  StartFakes();
  Create(R"({"replicas":2})");
  fixture_.executor.RunFor(absl::Seconds(1));
  EXPECT_EQ(Status("replicas"), "2");
  EXPECT_EQ(Status("readyReplicas"), "");
  fixture_.executor.RunFor(absl::Seconds(3));
  EXPECT_EQ(Status("readyReplicas"), "2");
  EXPECT_EQ(Status("observedGeneration"), "1");
}

TEST_F(DeploymentControllerTest, ScaleReachesTheWorkload) {
  StartFakes();
  Create(R"({"replicas":0})");
  fixture_.executor.RunFor(absl::Seconds(1));
  ASSERT_TRUE(
      fixture_.Patch(kube::Deployments(), "web", R"({"spec":{"replicas":5}})", "scale").ok());
  fixture_.executor.RunFor(absl::Seconds(4));
  EXPECT_EQ(Status("readyReplicas"), "5");
  EXPECT_EQ(made_, 1);
}

TEST_F(DeploymentControllerTest, ASteadyStateWritesNothing) {
  StartFakes();
  Create(R"({"replicas":2})");
  fixture_.executor.RunFor(absl::Minutes(1));
  const int64_t version = fixture_.api.resource_version();
  fixture_.executor.RunFor(absl::Minutes(30));
  EXPECT_EQ(fixture_.api.resource_version(), version);
}

TEST_F(DeploymentControllerTest, ASpecThatCannotRunIsACondition) {
  StartFakes();
  Create(R"({"replicas":2,"broken":true})");
  fixture_.executor.RunFor(absl::Seconds(1));
  EXPECT_EQ(Status("conditions/0/reason"), "FailedCreate");
  EXPECT_EQ(Status("conditions/0/message"), "spec.broken: want none");
  ASSERT_TRUE(fixture_.Patch(kube::Deployments(), "web", R"({"spec":{"broken":null}})").ok());
  fixture_.executor.RunFor(absl::Seconds(4));
  EXPECT_EQ(Status("conditions"), "");
  EXPECT_EQ(Status("readyReplicas"), "2");
}

TEST_F(DeploymentControllerTest, ARecreatedDeploymentGetsANewWorkload) {
  StartFakes();
  Create(R"({"replicas":2})");
  fixture_.executor.RunFor(absl::Seconds(4));
  ASSERT_TRUE(fixture_.Delete(kube::Deployments(), "web").ok());
  fixture_.executor.RunFor(absl::Seconds(4));
  Create(R"({"replicas":3})");
  fixture_.executor.RunFor(absl::Seconds(4));
  EXPECT_EQ(Status("readyReplicas"), "3");
  EXPECT_EQ(made_, 2);
}

class QueueMetrics : public ExternalMetrics {
 public:
  host::Task<absl::StatusOr<std::vector<double>>> Get(std::string, std::string,
                                                      std::map<std::string, std::string>,
                                                      host::Deadline) override {
    co_return std::vector<double>{length};
  }
  double length = 0;
};

// The embedded mode without the operator: a queue's length becomes processes.
TEST_F(DeploymentControllerTest, AQueueDrivesProcesses) {
  const tests::TempDir dir;
  StartController([&](const api::NamespacedName& key, std::function<void()> changed) {
    return std::make_unique<ProcessRunner>(fixture_.clock, host::Logger(host::MakeNullSink()), key,
                                           ProcessRunner::Options{.log_folder = dir.path()},
                                           std::move(changed));
  });
  Create(R"({"replicas":1,"selector":{"matchLabels":{"app":"web"}},"template":{"spec":{
      "containers":[{"name":"c","command":["tail","-f","/dev/null"]}]}}})");
  ASSERT_TRUE(fixture_
                  .Create(kube::HorizontalPodAutoscalers(), R"({"metadata":{"name":"h"},"spec":{
      "scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"},"maxReplicas":10,
      "behavior":{"scaleDown":{"stabilizationWindowSeconds":0}},"metrics":[{"type":"External",
      "external":{"metric":{"name":"q"},"target":{"type":"AverageValue","averageValue":"5"}}}]}})")
                  .ok());
  QueueMetrics queue;
  HpaController hpa(fixture_.api, queue, fixture_.clock, {});
  bool hpa_ended = false;
  boost::asio::co_spawn(fixture_.executor.executor(), hpa.Run(),
                        [&](const std::exception_ptr&) { hpa_ended = true; });
  const auto reaches = [&](const std::string& ready) {
    const absl::Status waited = tests::WaitFor(
        [&] {
          fixture_.executor.RunFor(absl::Seconds(1));
          return Status("readyReplicas") == ready;
        },
        absl::Seconds(20), absl::StrCat(ready, " ready replicas"),
        [&] { return Status("readyReplicas"); });
    EXPECT_TRUE(waited.ok()) << waited;
  };
  queue.length = 23;
  reaches("5");
  queue.length = 3;
  reaches("1");
  hpa.Stop();
  EXPECT_TRUE(fixture_.executor.RunUntil([&] { return hpa_ended; }, absl::Minutes(1)));
}

}  // namespace
}  // namespace outrigger::controller::local
