// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/fenced_api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/object.hpp>

#include "tests/operator/kube/memory_cluster.h"

namespace outrigger::controller::kube {
namespace {

using testing::HasSubstr;

class FencedApiTest : public testing::Test {
 protected:
  host::Deadline In(absl::Duration d) { return host::Deadline::After(cluster_.clock, d); }
  void LeaseFor(absl::Duration left) { writes_end_ = cluster_.clock.SteadyNow() + left; }
  absl::Status Create(absl::Duration timeout) {
    const boost::json::value object = {
        {"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", {{"name", "a"}}}};
    return cluster_.Await(api_.Create(ConfigMaps(), "ns", object, {}, In(timeout))).status();
  }

  host::SteadyTime writes_end_ = host::SteadyTime::InfinitePast();
  MemoryCluster cluster_;
  FencedApi api_{cluster_.clock, cluster_.api, [this] { return writes_end_; }};
};

TEST_F(FencedApiTest, NoWriteIsSentWithoutTheLease) {
  const auto refused = [](const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_TRUE(IsNotLeader(status));
    EXPECT_THAT(std::string(status.message()), HasSubstr("configmaps: not sent: not the leader"));
  };
  const boost::json::value object = boost::json::object();
  refused(Create(absl::Seconds(5)));
  refused(cluster_.Await(api_.Update(ConfigMaps(), "ns", "a", object, {}, In(absl::Seconds(5))))
              .status());
  refused(cluster_
              .Await(api_.Patch(ConfigMaps(), "ns", "a", PatchType::kMerge, object, {},
                                In(absl::Seconds(5))))
              .status());
  refused(cluster_.Await(api_.Delete(ConfigMaps(), "ns", "a", {}, In(absl::Seconds(5)))));
  EXPECT_THAT(cluster_.faults.calls, testing::IsEmpty());
}

TEST_F(FencedApiTest, ReadsAndReviewsPassWithoutTheLease) {
  EXPECT_EQ(
      cluster_.Await(api_.Get(ConfigMaps(), "ns", "a", "", In(absl::Seconds(5)))).status().code(),
      absl::StatusCode::kNotFound);
  EXPECT_TRUE(cluster_.Await(api_.List(ConfigMaps(), "ns", {}, In(absl::Seconds(5)))).ok());
  const boost::json::value review = {{"spec", boost::json::object()}};
  const absl::Status status =
      cluster_.Await(api_.Create(SubjectAccessReviews(), "", review, {}, In(absl::Seconds(5))))
          .status();
  EXPECT_FALSE(IsNotLeader(status)) << status;
}

TEST_F(FencedApiTest, WritesPassWithTheLease) {
  LeaseFor(absl::Seconds(14));
  EXPECT_TRUE(Create(absl::Seconds(5)).ok());
  EXPECT_TRUE(cluster_.Await(api_.Delete(ConfigMaps(), "ns", "a", {}, In(absl::Seconds(5)))).ok());
}

TEST_F(FencedApiTest, NoWriteIsSentInTheLastSecond) {
  LeaseFor(FencedApi::kShortestWrite - absl::Milliseconds(1));
  const absl::Status status = Create(absl::Milliseconds(10));
  EXPECT_TRUE(IsNotLeader(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("the lease is about to end"));
  LeaseFor(FencedApi::kShortestWrite);
  EXPECT_TRUE(Create(absl::Seconds(5)).ok());
}

TEST_F(FencedApiTest, WriteEndsBeforeTheLeaseDoes) {
  cluster_.faults.before_call = [](const MemoryCall&) -> FaultInjector::Fault {
    return {.delay = absl::Seconds(10)};
  };
  LeaseFor(absl::Seconds(3));
  const absl::Status status = Create(absl::Seconds(20));
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_LE(cluster_.clock.SteadyNow(), writes_end_);
  EXPECT_FALSE(IsNotLeader(status));
}

TEST_F(FencedApiTest, WhoeverClosesTheFenceCanWaitForTheWritesThatPassedIt) {
  cluster_.faults.before_call = [](const MemoryCall&) -> FaultInjector::Fault {
    return {.delay = absl::Seconds(2)};
  };
  LeaseFor(absl::Seconds(14));
  const boost::json::value object = {
      {"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", {{"name", "a"}}}};
  std::optional<absl::StatusOr<boost::json::value>> made;
  cluster_.SpawnInto(api_.Create(ConfigMaps(), "ns", object, {}, In(absl::Seconds(5))), made);
  cluster_.RunFor(absl::Milliseconds(1));
  writes_end_ = host::SteadyTime::InfinitePast();
  EXPECT_FALSE(cluster_.Await(api_.WaitForWrites(In(absl::Seconds(1)))));
  EXPECT_TRUE(cluster_.Await(api_.WaitForWrites(In(absl::Seconds(5)))));
  ASSERT_TRUE(made.has_value());
  EXPECT_TRUE(made->ok()) << made->status();
  EXPECT_TRUE(cluster_.Await(api_.WaitForWrites(In(absl::ZeroDuration())))) << "none is left";
}

TEST_F(FencedApiTest, ShorterDeadlineStays) {
  cluster_.faults.before_call = [](const MemoryCall&) -> FaultInjector::Fault {
    return {.delay = absl::Seconds(10)};
  };
  LeaseFor(absl::Seconds(14));
  const host::SteadyTime before = cluster_.clock.SteadyNow();
  EXPECT_EQ(Create(absl::Seconds(2)).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(cluster_.clock.SteadyNow() - before, absl::Seconds(2));
}

}  // namespace
}  // namespace outrigger::controller::kube
