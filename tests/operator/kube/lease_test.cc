// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/lease.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/operator/kube/memory_cluster.h"

namespace outrigger::controller::kube {
namespace {

using testing::ElementsAre;

// A replica: an elector that records what it is told.
struct Replica {
  Replica(MemoryCluster& cluster, const std::string& identity, uint64_t seed)
      : elector(cluster.clock, cluster.api, host::Random(seed), cluster.log(),
                {.namespace_name = "ns", .name = "lease", .identity = identity},
                {.on_started_leading = [this] { told.push_back("started"); },
                 .on_stopped_leading = [this, &cluster] { return Wind(cluster); },
                 .writes_ended = [this] { return WritesEnded(); },
                 .on_new_leader =
                     [this](const std::string& holder) { told.push_back("leader " + holder); }}) {}

  host::Task<bool> WritesEnded() {
    EXPECT_FALSE(elector.MayWrite()) << "a write could begin while we wait for the last ones";
    co_return writes_ended;
  }

  host::Task<void> Wind(MemoryCluster& cluster) {
    could_write_while_stopping = elector.MayWrite();
    co_await cluster.clock.Sleep(winding_down);
    told.emplace_back("stopped");
  }

  std::vector<std::string> told;
  std::optional<bool> could_write_while_stopping;
  absl::Duration winding_down;
  bool writes_ended = true;
  LeaderElector elector;
};

class LeaseTest : public testing::Test {
 protected:
  Replica& Start(const std::string& identity) {
    replicas_.push_back(std::make_unique<Replica>(cluster_, identity, replicas_.size() + 1));
    cluster_.Spawn(replicas_.back()->elector.Run());
    return *replicas_.back();
  }
  void TearDown() override {
    cluster_.faults.before_call = nullptr;  // refer to what the test body had
    cluster_.faults.after_call = nullptr;
    for (auto& replica : replicas_) replica->elector.Stop();
    EXPECT_TRUE(cluster_.RunUntil([&] { return cluster_.running == 0; }, absl::Seconds(10)));
  }

  bool WaitUntilLeads(const Replica& replica, absl::Duration limit = absl::Minutes(2)) {
    return cluster_.RunUntil([&] { return replica.elector.leading(); }, limit);
  }
  LeaseRecord Record() {
    const auto leases = cluster_.api.Objects(Leases());
    return leases.empty() ? LeaseRecord{.holder = "no lease"} : ParseLease(leases[0]);
  }
  // No request of that replica reaches the server any more, as if it were killed: its tasks are
  // left waiting for ever.
  void FailAll(const absl::Status& error) {
    cluster_.faults.before_call = [error](const MemoryCall&) -> FaultInjector::Fault {
      return {.error = error};
    };
  }
  // Another party writes the record.
  void Overwrite(const std::string& holder, absl::Duration duration = absl::Seconds(15)) {
    const boost::json::value patch = {
        {"spec",
         {{"holderIdentity", holder}, {"leaseDurationSeconds", absl::ToInt64Seconds(duration)}}}};
    ASSERT_TRUE(cluster_
                    .Await(cluster_.api.Patch(Leases(), "ns", "lease", PatchType::kMerge, patch, {},
                                              cluster_.Soon()))
                    .ok());
  }

  std::vector<std::unique_ptr<Replica>> replicas_;
  MemoryCluster cluster_;
};

TEST_F(LeaseTest, FirstCandidateMakesTheLeaseAndRenewsIt) {
  Replica& a = Start("a");
  ASSERT_TRUE(WaitUntilLeads(a, absl::Seconds(1)));
  const LeaseRecord made = Record();
  EXPECT_EQ(made.holder, "a");
  EXPECT_EQ(made.duration, absl::Seconds(15));
  EXPECT_EQ(made.transitions, 0);
  EXPECT_THAT(a.told, ElementsAre("leader a", "started"));
  cluster_.RunFor(absl::Minutes(1));
  EXPECT_TRUE(a.elector.MayWrite());
  const LeaseRecord renewed = Record();
  EXPECT_EQ(renewed.acquired, made.acquired);
  EXPECT_LE(cluster_.clock.WallNow() - renewed.renewed, absl::Seconds(2));
  const int updates = cluster_.faults.Count("update leases");
  EXPECT_GE(updates, 30);
  EXPECT_LE(updates, 60);
  EXPECT_LE(cluster_.faults.Count("get leases"), 1) << "a holder does not read";
}

// Shows R25.
TEST_F(LeaseTest, SecondReplicaWaitsAndTakesOverSoonAfterARelease) {
  Replica& a = Start("a");
  ASSERT_TRUE(WaitUntilLeads(a));
  Replica& b = Start("b");
  cluster_.RunFor(absl::Minutes(2));
  EXPECT_FALSE(b.elector.leading());
  EXPECT_EQ(b.elector.holder(), "a");
  a.elector.Stop();
  EXPECT_TRUE(WaitUntilLeads(b, absl::Seconds(2)));
  EXPECT_FALSE(a.elector.leading());
  EXPECT_EQ(Record().holder, "b");
  EXPECT_EQ(Record().transitions, 1);
  EXPECT_THAT(b.told, ElementsAre("leader a", "leader b", "started"));
}

// Case B073: nobody releases a killed leader's lease; time does. The times in the record, which
// are of another clock, do not matter.
TEST_F(LeaseTest, SilentHolderLosesTheLeaseByTheTimeSeenHere) {
  for (const absl::Duration clock_error : {-absl::Hours(5), absl::Hours(5)}) {
    LeaseRecord record = {.holder = "killed",
                          .duration = absl::Seconds(15),
                          .acquired = cluster_.clock.WallNow() + clock_error,
                          .renewed = cluster_.clock.WallNow() + clock_error};
    (void)cluster_.Await(cluster_.api.Delete(Leases(), "ns", "lease", {}, cluster_.Soon()));
    ASSERT_TRUE(cluster_
                    .Await(cluster_.api.Create(Leases(), "ns", MakeLease("ns", "lease", record), {},
                                               cluster_.Soon()))
                    .ok());
    Replica& b = Start(absl::StrCat("b", absl::ToInt64Hours(clock_error)));
    cluster_.RunFor(absl::Seconds(14.9));
    EXPECT_FALSE(b.elector.leading());
    EXPECT_TRUE(WaitUntilLeads(b, absl::Seconds(0.2)));
    b.elector.Stop();
    cluster_.RunFor(absl::Seconds(1));
  }
}

TEST_F(LeaseTest, ReleasedLeaseIsHeldWhileTheLeadersWorkEnds) {
  Replica& a = Start("a");
  a.winding_down = absl::Seconds(3);
  ASSERT_TRUE(WaitUntilLeads(a));
  cluster_.RunFor(absl::Seconds(5));
  a.elector.Stop();
  cluster_.RunFor(absl::Seconds(2.9));
  EXPECT_EQ(Record().holder, "a");
  cluster_.RunFor(absl::Seconds(0.2));
  EXPECT_EQ(Record().holder, "");
  EXPECT_EQ(a.could_write_while_stopping, true);
  EXPECT_THAT(a.told, ElementsAre("leader a", "started", "stopped"));
}

// Case B071: the outage ends the leadership, not the process, and no replica leads twice.
// A write that is under way could be done after the next leader's.
TEST_F(LeaseTest, LeaseIsNotReleasedWhileAWriteIsUnderWay) {
  Replica& a = Start("a");
  a.writes_ended = false;
  ASSERT_TRUE(WaitUntilLeads(a));
  Replica& b = Start("b");
  a.elector.Stop();
  cluster_.RunFor(absl::Seconds(10));
  EXPECT_FALSE(a.elector.leading());
  EXPECT_FALSE(b.elector.leading());
  EXPECT_EQ(Record().holder, "a");
  EXPECT_TRUE(WaitUntilLeads(b, absl::Seconds(10)));
}

TEST_F(LeaseTest, LeaderThatCannotRenewStopsBeforeTheLeaseEndsAndLeadsAgainAfterwards) {
  Replica& a = Start("a");
  ASSERT_TRUE(WaitUntilLeads(a));
  Replica& b = Start("b");
  cluster_.RunFor(absl::Seconds(20));
  FailAll(absl::UnavailableError("connection refused"));
  cluster_.RunFor(absl::Seconds(7.9));
  EXPECT_TRUE(a.elector.MayWrite()) << "a blink is no reason to stop";
  cluster_.RunFor(absl::Seconds(2.2));
  EXPECT_FALSE(a.elector.leading());
  EXPECT_EQ(a.could_write_while_stopping, false);
  cluster_.RunFor(absl::Minutes(1));
  EXPECT_FALSE(a.elector.leading() || b.elector.leading());
  cluster_.faults.before_call = nullptr;
  EXPECT_TRUE(cluster_.RunUntil([&] { return a.elector.leading() || b.elector.leading(); },
                                absl::Seconds(2)));
  cluster_.RunFor(absl::Seconds(30));
  EXPECT_NE(a.elector.leading(), b.elector.leading());
}

TEST_F(LeaseTest, LeaderStopsAtOnceWhenSomebodyElseHoldsTheLease) {
  Replica& a = Start("a");
  ASSERT_TRUE(WaitUntilLeads(a));
  Overwrite("thief");
  EXPECT_TRUE(cluster_.RunUntil([&] { return !a.elector.leading(); }, absl::Seconds(2)));
  cluster_.RunFor(absl::Milliseconds(1));
  EXPECT_THAT(a.told, ElementsAre("leader a", "started", "leader thief", "stopped"));
  EXPECT_TRUE(WaitUntilLeads(a, absl::Seconds(16))) << "the thief renews nothing";
}

TEST_F(LeaseTest, ChangeOfALabelDoesNotEndTheLeadership) {
  Replica& a = Start("a");
  ASSERT_TRUE(WaitUntilLeads(a));
  const boost::json::value patch = {{"metadata", {{"labels", {{"team", "x"}}}}}};
  ASSERT_TRUE(cluster_
                  .Await(cluster_.api.Patch(Leases(), "ns", "lease", PatchType::kMerge, patch, {},
                                            cluster_.Soon()))
                  .ok());
  cluster_.RunFor(absl::Seconds(5));
  EXPECT_EQ(cluster_.api.Objects(Leases())[0].at("metadata").at("labels").at("team"), "x");
  EXPECT_THAT(a.told, ElementsAre("leader a", "started"));
}

TEST_F(LeaseTest, RenewalWhoseAnswerWasLostKeepsTheLeadership) {
  Replica& a = Start("a");
  ASSERT_TRUE(WaitUntilLeads(a));
  int lost = 0;
  cluster_.faults.after_call = [&](const MemoryCall& call,
                                   const absl::Status&) -> FaultInjector::Fault {
    if (call.verb != "update" || lost++ > 0) return {};
    return {.error = absl::UnavailableError("connection reset")};
  };
  cluster_.RunFor(absl::Seconds(30));
  EXPECT_GE(lost, 1);
  EXPECT_THAT(a.told, ElementsAre("leader a", "started"));
}

// A process that was stopped (SIGSTOP) runs nothing of its own while the clock goes on.
TEST(LeaseClockTest, LeadershipIsJudgedByTheClockNotByWhatHasRun) {
  host::FakeClock clock;
  MemoryApi api(clock);
  LeaderElector elector(clock, api, host::Random(1), host::Logger(host::MakeNullSink()),
                        {.namespace_name = "ns", .identity = "a"}, {});
  simulation::SeededExecutor executor(clock, 1);
  bool ended = false;
  boost::asio::co_spawn(executor.executor(), elector.Run(),
                        [&](const std::exception_ptr&) { ended = true; });
  ASSERT_TRUE(executor.RunUntil([&] { return elector.leading(); }, absl::Seconds(5)));
  const int64_t version = api.resource_version();
  clock.Advance(absl::Seconds(25));  // nothing runs: stopped
  EXPECT_FALSE(elector.MayWrite());
  executor.RunUntil([&] { return !elector.leading(); }, absl::Milliseconds(1));
  EXPECT_FALSE(elector.leading()) << "noticed before anything else";
  EXPECT_EQ(api.resource_version(), version) << "and before anything was written";
  elector.Stop();
  EXPECT_TRUE(executor.RunUntil([&] { return ended; }, absl::Seconds(10)));
}

// Whatever the API server does, no two replicas may write at the same time, and after the last
// fault one leads again within 20 s.
// Shows R25.
TEST(LeaseSimulationTest, NeverTwoLeadersUnderRandomFaults) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    std::vector<std::unique_ptr<Replica>> replicas;
    MemoryCluster cluster(seed);
    host::Random random(seed);
    bool faulty = true;
    const auto fault = [&]() -> FaultInjector::Fault {
      if (!faulty || random.Fraction() > 0.4) return {};
      return {.delay = absl::Seconds(8 * random.Fraction()),
              .error = random.Fraction() < 0.5 ? absl::UnavailableError("x") : absl::OkStatus()};
    };
    cluster.faults.before_call = [&](const MemoryCall&) { return fault(); };
    cluster.faults.after_call = [&](const MemoryCall&, const absl::Status&) { return fault(); };
    for (const char* identity : {"a", "b", "c"}) {
      replicas.push_back(std::make_unique<Replica>(cluster, identity, seed + replicas.size()));
      cluster.Spawn(replicas.back()->elector.Run());
    }
    int writers = 0;
    const auto count_writers = [&] {
      writers = 0;
      for (const auto& replica : replicas) writers += replica->elector.MayWrite() ? 1 : 0;
      return writers > 1;
    };
    EXPECT_FALSE(cluster.RunUntil(count_writers, absl::Minutes(5))) << "two writers, seed " << seed;
    faulty = false;
    EXPECT_FALSE(cluster.RunUntil(count_writers, absl::Seconds(28))) << "seed " << seed;
    EXPECT_EQ(writers, 1) << "seed " << seed;
    for (auto& replica : replicas) replica->elector.Stop();
    EXPECT_TRUE(cluster.RunUntil([&] { return cluster.running == 0; }, absl::Seconds(20)));
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace outrigger::controller::kube
