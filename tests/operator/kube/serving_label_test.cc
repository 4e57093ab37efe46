// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/serving_label.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/object.hpp>
#include <string>

#include "tests/operator/kube/memory_cluster.h"

namespace outrigger::controller::kube {
namespace {

class ServingLabelTest : public testing::Test {
 protected:
  void SetUp() override {
    const boost::json::value pod = {
        {"apiVersion", "v1"},
        {"kind", "Pod"},
        {"metadata", {{"name", "pod"}, {"labels", {{"app", "operator"}}}}},
        {"spec", {{"containers", {{{"name", "operator"}, {"image", "operator"}}}}}}};
    const auto made = cluster_.Await(cluster_.api.Create(Pods(), "ns", pod, {}, cluster_.Soon()));
    ASSERT_TRUE(made.ok()) << made.status();
  }
  void TearDown() override { cluster_.faults.before_call = nullptr; }

  // "app=operator,…", sorted.
  std::string Labels() {
    const auto pods = cluster_.api.Objects(Pods());
    std::map<std::string, std::string> labels;
    for (const auto& [name, value] : pods.at(0).at("metadata").at("labels").as_object()) {
      labels[std::string(name)] = std::string(value.as_string());
    }
    std::string text;
    for (const auto& [name, value] : labels) absl::StrAppend(&text, name, "=", value, ",");
    return text;
  }
  void FailWrites(int times) {
    cluster_.faults.before_call = [times](const MemoryCall&) mutable -> FaultInjector::Fault {
      if (times-- <= 0) return {};
      return {.error = absl::UnavailableError("no API server")};
    };
  }
  absl::Status Await(host::Task<void> task) {
    bool done = false;
    cluster_.Spawn(std::move(task));
    done = cluster_.RunUntil([&] { return cluster_.running == 0; }, absl::Minutes(1));
    return done ? absl::OkStatus() : absl::DeadlineExceededError("it still waits");
  }

  MemoryCluster cluster_;
  ServingLabel label_{cluster_.clock, cluster_.api, cluster_.log(), "ns", "pod"};
};

TEST_F(ServingLabelTest, IsThereWhileWeServeAndOtherLabelsStay) {
  ASSERT_TRUE(Await(label_.Put()).ok());
  EXPECT_EQ(Labels(), "app=operator,outrigger.dev/serving=true,");
  ASSERT_TRUE(Await(label_.Remove(cluster_.Soon())).ok());
  EXPECT_EQ(Labels(), "app=operator,");
}

TEST_F(ServingLabelTest, IsTriedAgainUntilTheApiServerTakesIt) {
  FailWrites(5);
  ASSERT_TRUE(Await(label_.Put()).ok());
  EXPECT_EQ(Labels(), "app=operator,outrigger.dev/serving=true,");
  FailWrites(3);
  ASSERT_TRUE(Await(label_.Remove(cluster_.Soon())).ok());
  EXPECT_EQ(Labels(), "app=operator,");
}

TEST_F(ServingLabelTest, RemoveEndsAPutThatStillTriesAndItself) {
  FailWrites(1'000'000);
  cluster_.Spawn(label_.Put());
  cluster_.RunFor(absl::Seconds(5));
  const host::SteadyTime start = cluster_.clock.SteadyNow();
  ASSERT_TRUE(Await(label_.Remove(host::Deadline::After(cluster_.clock, absl::Seconds(3)))).ok());
  EXPECT_LE(cluster_.clock.SteadyNow() - start, absl::Seconds(4));
}

// A write that is under way when we stop must not be the last word.
TEST_F(ServingLabelTest, RemoveWaitsForAPutThatIsUnderWay) {
  cluster_.faults.before_call = [](const MemoryCall&) -> FaultInjector::Fault {
    return {.delay = absl::Seconds(1)};
  };
  cluster_.Spawn(label_.Put());
  cluster_.RunFor(absl::Milliseconds(10));
  ASSERT_TRUE(Await(label_.Remove(cluster_.Soon())).ok());
  EXPECT_EQ(Labels(), "app=operator,");
}

TEST_F(ServingLabelTest, WithoutAPodNothingIsWritten) {
  ServingLabel none(cluster_.clock, cluster_.api, cluster_.log(), "ns", "");
  const size_t calls = cluster_.faults.calls.size();
  ASSERT_TRUE(Await(none.Put()).ok());
  ASSERT_TRUE(Await(none.Remove(cluster_.Soon())).ok());
  EXPECT_EQ(cluster_.faults.calls.size(), calls);
}

TEST_F(ServingLabelTest, APodThatIsGoneNeedsNoLabel) {
  ASSERT_TRUE(cluster_.Await(cluster_.api.Delete(Pods(), "ns", "pod", {}, cluster_.Soon())).ok());
  const host::SteadyTime start = cluster_.clock.SteadyNow();
  ASSERT_TRUE(Await(label_.Remove(cluster_.Soon())).ok());
  EXPECT_LE(cluster_.clock.SteadyNow() - start, absl::Seconds(1));
}

}  // namespace
}  // namespace outrigger::controller::kube
