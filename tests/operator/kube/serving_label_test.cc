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
  // Writes of labels that the API server got.
  int Patches() const { return cluster_.faults.Count("patch pods"); }
  void Start() { cluster_.Spawn(label_.Run()); }
  // How long Remove() took, and Run() to end.
  absl::Duration Remove(absl::Duration patience = absl::Seconds(10)) {
    const host::SteadyTime start = cluster_.clock.SteadyNow();
    cluster_.Spawn(label_.Remove(host::Deadline::After(cluster_.clock, patience)));
    EXPECT_TRUE(cluster_.RunUntil([&] { return cluster_.running == 0; }, absl::Minutes(1)));
    return cluster_.clock.SteadyNow() - start;
  }

  MemoryCluster cluster_;
  ServingLabel label_{cluster_.clock, cluster_.api, host::Random(1), cluster_.log(), "ns", "pod"};
};

TEST_F(ServingLabelTest, IsThereWhileWeServeAndOtherLabelsStay) {
  Start();
  label_.Put();
  cluster_.RunFor(absl::Seconds(1));
  EXPECT_EQ(Labels(), "app=operator,outrigger.dev/serving=true,");
  Remove();
  EXPECT_EQ(Labels(), "app=operator,");
}

// A container that was killed leaves it, and the next one does not answer yet.
TEST_F(ServingLabelTest, AtTheStartItIsTakenOff) {
  Start();
  label_.Put();
  cluster_.RunFor(absl::Seconds(1));
  label_.Stop();
  ASSERT_TRUE(cluster_.RunUntil([&] { return cluster_.running == 0; }));
  ServingLabel next(cluster_.clock, cluster_.api, host::Random(1), cluster_.log(), "ns", "pod");
  cluster_.Spawn(next.Run());
  cluster_.RunFor(absl::Seconds(1));
  EXPECT_EQ(Labels(), "app=operator,");
  next.Put();
  cluster_.RunFor(absl::Seconds(1));
  EXPECT_EQ(Labels(), "app=operator,outrigger.dev/serving=true,");
  next.Stop();
  ASSERT_TRUE(cluster_.RunUntil([&] { return cluster_.running == 0; }));
}

TEST_F(ServingLabelTest, IsTriedAgainUntilTheApiServerTakesIt) {
  FailWrites(5);
  Start();
  label_.Put();
  cluster_.RunFor(absl::Minutes(1));
  EXPECT_EQ(Labels(), "app=operator,outrigger.dev/serving=true,");
  FailWrites(3);
  EXPECT_LE(Remove(), absl::Seconds(1));
  EXPECT_EQ(Labels(), "app=operator,");
}

TEST_F(ServingLabelTest, ForGoodRefusalIsTriedEverMoreSeldom) {
  FailWrites(1'000'000);
  Start();
  label_.Put();
  cluster_.RunFor(absl::Minutes(5));
  const int before = Patches();
  EXPECT_GE(before, 8);
  cluster_.RunFor(absl::Minutes(5));
  EXPECT_LE(Patches() - before, 20) << "one in 15 to 30 s";
  Remove(absl::Seconds(1));
}

TEST_F(ServingLabelTest, RemoveGivesUpAtItsDeadline) {
  FailWrites(1'000'000);
  Start();
  label_.Put();
  cluster_.RunFor(absl::Seconds(5));
  EXPECT_LE(Remove(absl::Seconds(3)), absl::Seconds(4));
}

// A write that is under way when we stop must not be the last word.
TEST_F(ServingLabelTest, RemoveWaitsForAPutThatIsUnderWay) {
  Start();
  cluster_.RunFor(absl::Seconds(1));
  cluster_.faults.before_call = [](const MemoryCall&) -> FaultInjector::Fault {
    return {.delay = absl::Milliseconds(900)};
  };
  label_.Put();
  cluster_.RunFor(absl::Milliseconds(10));
  Remove();
  EXPECT_EQ(Labels(), "app=operator,");
}

TEST_F(ServingLabelTest, WithoutAPodNothingIsWritten) {
  ServingLabel none(cluster_.clock, cluster_.api, host::Random(1), cluster_.log(), "ns", "");
  const size_t calls = cluster_.faults.calls.size();
  cluster_.Spawn(none.Run());
  none.Put();
  cluster_.Spawn(none.Remove(cluster_.Soon()));
  EXPECT_TRUE(cluster_.RunUntil([&] { return cluster_.running == 0; }));
  EXPECT_EQ(cluster_.faults.calls.size(), calls);
}

TEST_F(ServingLabelTest, APodThatIsGoneNeedsNoLabel) {
  Start();
  ASSERT_TRUE(cluster_.Await(cluster_.api.Delete(Pods(), "ns", "pod", {}, cluster_.Soon())).ok());
  EXPECT_LE(Remove(), absl::Seconds(1));
}

}  // namespace
}  // namespace outrigger::controller::kube
