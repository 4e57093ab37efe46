// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/informer.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/object.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/operator/kube/memory_cluster.h"

namespace outrigger::controller::kube {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A ConfigMap as a test sees it; its key must be no "bad".
struct Item {
  std::string name;
  std::string value;
};

absl::StatusOr<Item> ParseItem(const boost::json::value& object) {
  Item item = {.name = std::string(object.at("metadata").at("name").as_string()),
               .value = std::string(object.at("data").at("key").as_string())};
  if (item.value == "bad") return absl::InvalidArgumentError("data.key: want no \"bad\"");
  return item;
}

class InformerTest : public testing::Test {
 protected:
  void Start(Reflector::Options options = {}) {
    options.resource = ConfigMaps();
    informer_.emplace(cluster_.clock, cluster_.api, host::Random(7), cluster_.log(),
                      std::move(options), &ParseItem);
    informer_->AddHandlers(Recorder());
    cluster_.Spawn(informer_->Run());
  }
  void StartSynced(Reflector::Options options = {}) {
    Start(std::move(options));
    ASSERT_TRUE(cluster_.RunUntil([&] { return informer_->HasSynced(); }));
    WaitForWatches(1);
    seen_.clear();
  }
  void TearDown() override {
    cluster_.faults.before_call = nullptr;  // refer to what the test body had
    cluster_.faults.after_call = nullptr;
    informer_->Stop();
    EXPECT_TRUE(cluster_.RunUntil([&] { return cluster_.running == 0; }, absl::Seconds(1)))
        << "Run() goes on after Stop()";
  }

  Informer<Item>::Handlers Recorder() {
    using Key = Informer<Item>::Key;
    using Ptr = Informer<Item>::Ptr;
    return {.on_add =
                [this](const Key& key, const Ptr& now) {
                  seen_.push_back(absl::StrCat("add ", key.name, "=", now->value));
                },
            .on_update =
                [this](const Key& key, const Ptr& before, const Ptr& now) {
                  seen_.push_back(
                      absl::StrCat("update ", key.name, "=", before->value, ">", now->value));
                },
            .on_delete =
                [this](const Key& key, const Ptr& last, FinalState state) {
                  seen_.push_back(absl::StrCat("delete ", key.name, "=",
                                               last == nullptr ? "?" : last->value,
                                               state == FinalState::kKnown ? "" : " unknown"));
                },
            .on_parse_error =
                [this](const Key& key, const absl::Status&) {
                  seen_.push_back(absl::StrCat("error ", key.name));
                }};
  }

  bool WaitForSeen(size_t count) {
    return cluster_.RunUntil([&] { return seen_.size() >= count; });
  }
  // Until so many watches have reached the server.
  void WaitForWatches(int count) {
    EXPECT_TRUE(
        cluster_.RunUntil([&] { return cluster_.faults.Count("watch configmaps") >= count; }));
  }
  std::string Value(const std::string& name) {
    const Informer<Item>::Ptr item = informer_->Get({"ns", name});
    return item == nullptr ? "absent" : item->value;
  }

  std::vector<std::string> seen_;
  std::optional<Informer<Item>> informer_;
  MemoryCluster cluster_;
};

// Shows R21.
TEST_F(InformerTest, ListsInPagesThenFollowsChangesWithoutAnotherList) {
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(cluster_.Put(absl::StrCat("c", i), "1").ok());
  Start({.page_size = 2});
  EXPECT_FALSE(informer_->HasSynced());
  ASSERT_TRUE(cluster_.RunUntil([&] { return informer_->HasSynced(); }));
  EXPECT_EQ(informer_->size(), 5U);
  EXPECT_EQ(cluster_.faults.Count("list configmaps"), 3);
  EXPECT_EQ(informer_->counts().lists, 1);

  seen_.clear();
  ASSERT_TRUE(cluster_.Put("new", "1").ok());
  ASSERT_TRUE(cluster_.Put("c0", "2").ok());
  ASSERT_TRUE(cluster_.Erase("c1").ok());
  ASSERT_TRUE(WaitForSeen(3));
  EXPECT_THAT(seen_, ElementsAre("add new=1", "update c0=1>2", "delete c1=1"));
  EXPECT_EQ(Value("c0"), "2");
  EXPECT_EQ(Value("c1"), "absent");
  EXPECT_EQ(cluster_.faults.Count("list configmaps"), 3);
  EXPECT_EQ(cluster_.faults.Count("get configmaps"), 0);
}

TEST_F(InformerTest, ListIsInOrderOfKeys) {
  for (const char* name : {"b", "c", "a"}) ASSERT_TRUE(cluster_.Put(name, "1").ok());
  StartSynced();
  std::vector<std::string> names;
  for (const auto& item : informer_->List()) names.push_back(item->name);
  EXPECT_THAT(names, ElementsAre("a", "b", "c"));
}

TEST_F(InformerTest, CutWatchIsResumedWithoutALossARepeatOrAList) {
  ASSERT_TRUE(cluster_.Put("a", "1").ok());
  StartSynced();
  cluster_.api.CutWatches();
  ASSERT_TRUE(cluster_.Put("a", "2").ok());
  ASSERT_TRUE(cluster_.Put("b", "1").ok());
  ASSERT_TRUE(WaitForSeen(2));
  cluster_.RunFor(absl::Minutes(1));
  EXPECT_THAT(seen_, ElementsAre("update a=1>2", "add b=1"));
  EXPECT_EQ(informer_->counts().lists, 1);
}

TEST_F(InformerTest, WatchIsRenewedBetweenFiveAndTenMinutes) {
  StartSynced();
  cluster_.RunFor(absl::Minutes(5) - absl::Seconds(1));
  EXPECT_EQ(cluster_.faults.Count("watch configmaps"), 1);
  cluster_.RunFor(absl::Minutes(5) + absl::Seconds(2));
  EXPECT_EQ(cluster_.faults.Count("watch configmaps"), 2);
  EXPECT_EQ(informer_->counts().errors, 0);
  EXPECT_EQ(informer_->counts().lists, 1);
}

// What was missed while the version became too old is found by a new list; what did not change is
// not delivered again.
TEST_F(InformerTest, TooOldVersionIsListedAgainAndMissedDeletionsAreDelivered) {
  for (const char* name : {"changed", "gone", "same"}) {
    ASSERT_TRUE(cluster_.Put(name, "1").ok());
  }
  StartSynced();
  cluster_.faults.before_call = [](const MemoryCall& call) -> FaultInjector::Fault {
    return {.error = call.verb == "watch" ? absl::UnavailableError("down") : absl::OkStatus()};
  };
  cluster_.api.CutWatches();
  cluster_.RunFor(absl::Seconds(1));
  ASSERT_TRUE(cluster_.Put("changed", "2").ok());
  ASSERT_TRUE(cluster_.Erase("gone").ok());
  ASSERT_TRUE(cluster_.Put("new", "1").ok());
  cluster_.api.Compact();
  cluster_.faults.before_call = nullptr;
  ASSERT_TRUE(WaitForSeen(3));
  cluster_.RunFor(absl::Seconds(5));
  EXPECT_THAT(seen_, ElementsAre("update changed=1>2", "add new=1", "delete gone=1 unknown"));
  EXPECT_EQ(informer_->counts().lists, 2);
}

TEST_F(InformerTest, ObjectMadeAnewUnderTheSameNameIsADeletionAndAnAddition) {
  ASSERT_TRUE(cluster_.Put("a", "1").ok());
  StartSynced();
  cluster_.faults.before_call = [](const MemoryCall& call) -> FaultInjector::Fault {
    return {.error = call.verb == "watch" ? absl::OutOfRangeError("too old") : absl::OkStatus()};
  };
  cluster_.api.CutWatches();
  ASSERT_TRUE(cluster_.Erase("a").ok());
  ASSERT_TRUE(cluster_.Put("a", "2").ok());
  ASSERT_TRUE(WaitForSeen(2));
  EXPECT_THAT(seen_, ElementsAre("delete a=1 unknown", "add a=2"));
}

TEST_F(InformerTest, ListWhoseContinueTokenExpiredBeginsAnew) {
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(cluster_.Put(absl::StrCat("c", i), "1").ok());
  bool compacted = false;
  cluster_.faults.after_call = [&](const MemoryCall& call,
                                   const absl::Status&) -> FaultInjector::Fault {
    if (call.verb == "list" && !compacted) {
      compacted = true;
      return {.delay = absl::Milliseconds(10)};
    }
    return {};
  };
  Start({.page_size = 2});
  ASSERT_TRUE(cluster_.RunUntil([&] { return compacted; }));
  ASSERT_TRUE(cluster_.Erase("c0").ok());
  cluster_.api.Compact();
  ASSERT_TRUE(cluster_.RunUntil([&] { return informer_->HasSynced(); }));
  EXPECT_EQ(informer_->size(), 4U);
  EXPECT_EQ(Value("c0"), "absent");
}

// Shows R18 for the watches: no backoff exceeds 30 s, all are jittered.
// Case B071.
TEST_F(InformerTest, BacksOffFromBelowASecondToThirtySecondsAndStartsAnewAfterSuccess) {
  ASSERT_TRUE(cluster_.Put("a", "1").ok());
  StartSynced();
  std::vector<host::SteadyTime> tries;
  bool down = true;
  cluster_.faults.before_call = [&](const MemoryCall& call) -> FaultInjector::Fault {
    if (call.verb != "watch") return {};
    tries.push_back(cluster_.clock.SteadyNow());
    return {.error = down ? absl::UnavailableError("connection refused") : absl::OkStatus()};
  };
  const host::SteadyTime cut = cluster_.clock.SteadyNow();
  cluster_.api.CutWatches();
  cluster_.RunFor(absl::Minutes(5));
  ASSERT_GE(tries.size(), 8U);
  EXPECT_LE(tries[0] - cut, absl::Milliseconds(800));
  absl::Duration longest = absl::Milliseconds(800);
  for (size_t i = 1; i < tries.size(); ++i) {
    const absl::Duration gap = tries[i] - tries[i - 1];
    longest = std::min(2 * longest, absl::Seconds(30));
    EXPECT_LE(gap, longest) << "try " << i;
    EXPECT_GE(gap, longest / 2) << "try " << i;
  }
  EXPECT_EQ(Value("a"), "1") << "an outage empties no cache";
  EXPECT_FALSE(informer_->last_error().ok());

  down = false;
  const size_t before = tries.size();
  ASSERT_TRUE(cluster_.Put("a", "2").ok());
  ASSERT_TRUE(WaitForSeen(1));
  EXPECT_THAT(seen_, ElementsAre("update a=1>2"));
  down = true;
  cluster_.api.CutWatches();
  const host::SteadyTime again = cluster_.clock.SteadyNow();
  ASSERT_TRUE(cluster_.RunUntil([&] { return tries.size() > before + 1; }));
  EXPECT_LE(tries.back() - again, absl::Milliseconds(801));
}

TEST_F(InformerTest, RetryAfterOfTheServerIsObeyed) {
  std::vector<host::SteadyTime> tries;
  cluster_.faults.before_call = [&](const MemoryCall&) -> FaultInjector::Fault {
    tries.push_back(cluster_.clock.SteadyNow());
    if (tries.size() > 1) return {};
    return {.error = ToStatus({.http_code = 429, .retry_after = absl::Seconds(7)})};
  };
  Start();
  ASSERT_TRUE(cluster_.RunUntil([&] { return informer_->HasSynced(); }));
  EXPECT_EQ(tries[1] - tries[0], absl::Seconds(7));
}

// A server that accepts watches and ends them at once must not be asked in a loop.
// Case B066.
class ClosingApi : public MemoryApi {
 public:
  using MemoryApi::MemoryApi;
  host::Task<absl::Status> Watch(Resource, std::string, WatchOptions,
                                 std::function<void(WatchEvent)>, host::Deadline) override {
    ++watches;
    co_return absl::OkStatus();
  }
  int watches = 0;
};

TEST(InformerStormTest, ServerThatEndsEachWatchAtOnceIsAskedEverLessOften) {
  host::FakeClock clock;
  ClosingApi api(clock);
  Informer<Item> informer(clock, api, host::Random(1), host::Logger(host::MakeNullSink()),
                          {.resource = ConfigMaps()}, &ParseItem);
  simulation::SeededExecutor executor(clock, 1);
  bool ended = false;
  boost::asio::co_spawn(executor.executor(), informer.Run(),
                        [&](const std::exception_ptr&) { ended = true; });
  executor.RunFor(absl::Minutes(10));
  EXPECT_LE(api.watches, 10 * 60 / 15 + 6);
  EXPECT_EQ(informer.counts().lists, 1);
  informer.Stop();
  EXPECT_TRUE(executor.RunUntil([&] { return ended; }, absl::Seconds(1)));
}

TEST_F(InformerTest, ObjectThatCannotBeParsedStopsNobodyAndHeals) {
  ASSERT_TRUE(cluster_.Put("a", "1").ok());
  ASSERT_TRUE(cluster_.Put("never", "bad").ok());
  Start();
  ASSERT_TRUE(cluster_.RunUntil([&] { return informer_->HasSynced(); }));
  EXPECT_THAT(seen_, ElementsAre("add a=1", "error never"));
  EXPECT_EQ(Value("never"), "absent");
  ASSERT_NE(informer_->ParseError({"ns", "never"}), nullptr);
  EXPECT_THAT(std::string(informer_->ParseError({"ns", "never"})->message()),
              HasSubstr("data.key"));

  seen_.clear();
  ASSERT_TRUE(cluster_.Put("a", "bad").ok());
  ASSERT_TRUE(cluster_.Put("b", "1").ok());
  ASSERT_TRUE(WaitForSeen(2));
  EXPECT_THAT(seen_, ElementsAre("error a", "add b=1"));
  EXPECT_EQ(Value("a"), "1") << "a bad edit is no deletion";

  seen_.clear();
  ASSERT_TRUE(cluster_.Put("a", "3").ok());
  ASSERT_TRUE(cluster_.Erase("never").ok());
  ASSERT_TRUE(WaitForSeen(2));
  EXPECT_THAT(seen_, ElementsAre("update a=1>3", "delete never=? unknown"));
  EXPECT_EQ(informer_->ParseError({"ns", "a"}), nullptr);
  EXPECT_EQ(informer_->ParseError({"ns", "never"}), nullptr);
}

TEST_F(InformerTest, IndexFollowsAdditionsChangesAndDeletions) {
  ASSERT_TRUE(cluster_.Put("a", "x").ok());
  StartSynced();
  informer_->AddIndex("value", [](const Item& item) { return std::vector{item.value}; });
  const auto names = [&](const std::string& value) {
    std::string joined;
    for (const auto& item : informer_->ByIndex("value", value)) joined += item->name;
    return joined;
  };
  EXPECT_EQ(names("x"), "a") << "objects that were there before";
  ASSERT_TRUE(cluster_.Put("b", "x").ok());
  ASSERT_TRUE(WaitForSeen(1));
  EXPECT_EQ(names("x"), "ab");
  ASSERT_TRUE(cluster_.Put("a", "y").ok());
  ASSERT_TRUE(WaitForSeen(2));
  EXPECT_EQ(names("x"), "b");
  EXPECT_EQ(names("y"), "a");
  ASSERT_TRUE(cluster_.Erase("b").ok());
  ASSERT_TRUE(WaitForSeen(3));
  EXPECT_EQ(names("x"), "");
  EXPECT_TRUE(informer_->ByIndex("absent", "x").empty());
}

TEST_F(InformerTest, LateHandlersAreToldWhatIsThere) {
  ASSERT_TRUE(cluster_.Put("a", "1").ok());
  ASSERT_TRUE(cluster_.Put("b", "bad").ok());
  StartSynced();
  informer_->AddHandlers(Recorder());
  EXPECT_THAT(seen_, ElementsAre("add a=1", "error b"));
}

TEST_F(InformerTest, WaitForSyncSaysWhyItIsNotSynced) {
  cluster_.faults.before_call = [](const MemoryCall&) -> FaultInjector::Fault {
    return {.error = absl::PermissionDeniedError("cannot list resource \"configmaps\"")};
  };
  Start();
  const absl::Status status = cluster_.Await(informer_->WaitForSync(cluster_.Soon()));
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("the cache of configmaps is not complete: PERMISSION_DENIED: cannot list"));
  cluster_.faults.before_call = nullptr;
  EXPECT_TRUE(
      cluster_
          .Await(informer_->WaitForSync(host::Deadline::After(cluster_.clock, absl::Minutes(1))))
          .ok());
}

TEST_F(InformerTest, StopEndsAWatchABackoffAndWaiters) {
  cluster_.faults.before_call = [](const MemoryCall&) -> FaultInjector::Fault {
    return {.error = absl::UnavailableError("down")};
  };
  Start();
  cluster_.RunFor(absl::Minutes(2));
  std::optional<absl::Status> waited;
  cluster_.SpawnInto(informer_->WaitForSync(host::Deadline::Never()), waited);
  informer_->Stop();
  ASSERT_TRUE(
      cluster_.RunUntil([&] { return waited && cluster_.running == 0; }, absl::Milliseconds(1)));
  EXPECT_EQ(waited->code(), absl::StatusCode::kCancelled);
}

TEST_F(InformerTest, MetadataOnlyIsAskedForAndHoldsNoData) {
  ASSERT_TRUE(cluster_.Put("a", "1").ok());
  bool has_data = false;
  Informer<std::string> names(cluster_.clock, cluster_.api, host::Random(1), cluster_.log(),
                              {.resource = ConfigMaps(), .metadata_only = true},
                              [&](const boost::json::value& object) -> absl::StatusOr<std::string> {
                                has_data |= object.get_object().if_contains("data") != nullptr;
                                return IdentityOf(object).key.name;
                              });
  cluster_.Spawn(names.Run());
  ASSERT_TRUE(cluster_.RunUntil([&] { return names.HasSynced(); }));
  ASSERT_TRUE(cluster_.Put("b", "1").ok());
  ASSERT_TRUE(cluster_.RunUntil([&] { return names.size() == 2; }));
  EXPECT_FALSE(has_data);
  names.Stop();
  ASSERT_TRUE(cluster_.RunUntil([&] { return cluster_.running == 0; }));
  Start();  // for TearDown()
}

// Whatever happens to lists and watches, the cache ends equal to the cluster, and the handlers'
// story leads there.
TEST(InformerSimulationTest, CacheEqualsTheClusterAfterRandomFaults) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    host::Random random(seed);
    std::map<std::string, std::string> told;
    std::optional<Informer<Item>> informer;
    MemoryCluster cluster(seed);
    bool faulty = true;
    cluster.faults.before_call = [&](const MemoryCall& call) -> FaultInjector::Fault {
      if (!faulty || call.IsWrite() || random.Fraction() > 0.3) return {};
      return {.delay = absl::Seconds(random.Fraction()), .error = absl::UnavailableError("fault")};
    };
    cluster.faults.before_event = [&](const WatchEvent&) -> FaultInjector::WatchFault {
      if (!faulty || random.Fraction() > 0.2) return {};
      const double which = random.Fraction();
      if (which < 0.3) return {.lag = absl::Seconds(random.Fraction())};
      if (which < 0.6) return {.end = absl::OkStatus()};
      if (which < 0.8) return {.end = absl::UnavailableError("cut")};
      return {.end = absl::OutOfRangeError("gone")};
    };
    informer.emplace(cluster.clock, cluster.api, host::Random(seed), cluster.log(),
                     Reflector::Options{.resource = ConfigMaps(), .page_size = 3}, &ParseItem);
    informer->AddHandlers({.on_add =
                               [&](const auto& key, const auto& now) {
                                 EXPECT_TRUE(told.emplace(key.name, now->value).second)
                                     << "added twice: " << key.name;
                               },
                           .on_update =
                               [&](const auto& key, const auto& before, const auto& now) {
                                 EXPECT_EQ(told[key.name], before->value);
                                 told[key.name] = now->value;
                               },
                           .on_delete =
                               [&](const auto& key, const auto&, FinalState) {
                                 EXPECT_EQ(told.erase(key.name), 1U)
                                     << "deleted twice: " << key.name;
                               }});
    cluster.Spawn(informer->Run());
    for (int step = 0; step < 60; ++step) {
      const std::string name = absl::StrCat("c", random.Next() % 8);
      if (random.Fraction() < 0.3) {
        (void)cluster.Erase(name);
      } else {
        (void)cluster.Put(name, absl::StrCat(step));
      }
      if (random.Fraction() < 0.1) cluster.api.CutWatches();
      if (random.Fraction() < 0.05) cluster.api.Compact();
      cluster.RunFor(absl::Seconds(2 * random.Fraction()));
    }
    faulty = false;
    cluster.RunFor(absl::Minutes(1));
    std::map<std::string, std::string> wanted;
    for (const boost::json::value& object : cluster.api.Objects(ConfigMaps())) {
      const Item item = *ParseItem(object);
      wanted[item.name] = item.value;
    }
    std::map<std::string, std::string> cached;
    for (const auto& item : informer->List()) cached[item->name] = item->value;
    EXPECT_EQ(cached, wanted) << "seed " << seed;
    EXPECT_EQ(told, wanted) << "seed " << seed;
    informer->Stop();
    EXPECT_TRUE(cluster.RunUntil([&] { return cluster.running == 0; }, absl::Seconds(5)))
        << "seed " << seed;
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace outrigger::controller::kube
