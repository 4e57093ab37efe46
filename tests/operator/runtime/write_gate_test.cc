// SPDX-License-Identifier: Apache-2.0
#include "operator/runtime/write_gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/operator/support/core_loop.h"

namespace outrigger::controller::runtime {
namespace {

using testing::ElementsAre;

class WriteGateTest : public testing::Test {
 protected:
  host::Task<void> Write(WriteGate& gate, WriteLane lane, std::string name) {
    WriteGate::Permit permit = co_await gate.Acquire(lane);
    order_.push_back(name);
    most_ = std::max(most_, ++writing_);
    co_await loop_.clock().Sleep(absl::Seconds(1));
    --writing_;
  }

  CoreLoop loop_;
  std::vector<std::string> order_;
  int writing_ = 0;
  int most_ = 0;
};

// Shows R13.
TEST_F(WriteGateTest, NoMoreThanThirtyTwoWritesAreInFlight) {
  WriteGate gate(loop_.clock());
  for (int i = 0; i < 100; ++i) loop_.Spawn(Write(gate, WriteLane::kStatus, "x"));
  loop_.Settle();
  EXPECT_EQ(writing_, 32);
  EXPECT_EQ(gate.waiting(), 68u);
  loop_.Advance(absl::Seconds(10));
  EXPECT_EQ(order_.size(), 100u);
  EXPECT_EQ(most_, 32);
  EXPECT_EQ(gate.waiting(), 0u);
}

TEST_F(WriteGateTest, TheMostUrgentLaneGoesFirst) {
  WriteGate gate(loop_.clock(), 1);
  loop_.Spawn(Write(gate, WriteLane::kEvent, "first come"));
  loop_.Settle();
  loop_.Spawn(Write(gate, WriteLane::kEvent, "event"));
  loop_.Spawn(Write(gate, WriteLane::kStatus, "status 1"));
  loop_.Spawn(Write(gate, WriteLane::kStatus, "status 2"));
  loop_.Spawn(Write(gate, WriteLane::kHpa, "hpa"));
  loop_.Spawn(Write(gate, WriteLane::kScale, "scale"));
  loop_.Advance(absl::Seconds(10));
  EXPECT_THAT(order_, ElementsAre("first come", "scale", "hpa", "status 1", "status 2", "event"));
}

TEST_F(WriteGateTest, APermitThatIsMovedGivesItsPlaceBackOnce) {
  WriteGate gate(loop_.clock(), 1);
  {
    WriteGate::Permit a = loop_.Run(gate.Acquire(WriteLane::kHpa));
    WriteGate::Permit b = std::move(a);
  }
  loop_.Spawn(Write(gate, WriteLane::kHpa, "one"));
  loop_.Spawn(Write(gate, WriteLane::kHpa, "two"));
  loop_.Settle();
  EXPECT_EQ(writing_, 1);
  loop_.Advance(absl::Seconds(5));
}

}  // namespace
}  // namespace outrigger::controller::runtime
