// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "operator/kube/memory_api.h"
#include "tests/operator/kube_memory/memory_fixture.h"

namespace outrigger::controller::kube {
namespace {

using testing::ElementsAre;

std::string Name(WatchEventType type) {
  switch (type) {
    case WatchEventType::kAdded:
      return "ADDED";
    case WatchEventType::kModified:
      return "MODIFIED";
    case WatchEventType::kDeleted:
      return "DELETED";
    case WatchEventType::kBookmark:
      return "BOOKMARK";
  }
  return "";
}

class MemoryWatchTest : public testing::Test {
 protected:
  struct Watched {
    std::vector<std::string> events;  // "ADDED a"
    std::vector<std::string> versions;
    std::optional<absl::Status> end;
  };

  std::shared_ptr<Watched> Watch(WatchOptions options,
                                 host::Deadline stop = host::Deadline::Never()) {
    auto watched = std::make_shared<Watched>();
    if (!options.cancel.stop_possible()) options.cancel = end_of_test_.get_token();
    auto on_event = [watched](const WatchEvent& event) {
      watched->events.push_back(
          absl::StrCat(Name(event.type), " ", At(event.object, "/metadata/name")));
      watched->versions.push_back(At(event.object, "/metadata/resourceVersion"));
    };
    boost::asio::co_spawn(
        fixture_.executor.executor(),
        fixture_.api.Watch(ConfigMaps(), "ns", std::move(options), std::move(on_event), stop),
        [watched](const std::exception_ptr&, absl::Status status) {
          watched->end = std::move(status);
        });
    return watched;
  }

  ~MemoryWatchTest() override {
    end_of_test_.request_stop();
    Settle();
  }

  void Put(const std::string& name, const std::string& team) {
    const std::string patch = absl::StrCat(R"({"metadata":{"labels":{"team":")", team, R"("}}})");
    if (fixture_.Patch(ConfigMaps(), name, patch).ok()) return;
    const std::string object =
        absl::StrCat(R"({"metadata":{"name":")", name, R"(","labels":{"team":")", team, R"("}}})");
    ASSERT_TRUE(fixture_.Create(ConfigMaps(), object).ok());
  }

  std::string Now() const { return absl::StrCat(fixture_.api.resource_version()); }
  void Settle() { fixture_.executor.RunFor(absl::Seconds(1)); }

  class Faults : public FaultInjector {
   public:
    Fault BeforeCall(const MemoryCall&) override { return {}; }
    Fault AfterCall(const MemoryCall&, const absl::Status&) override { return {}; }
    WatchFault BeforeEvent(const MemoryCall&, const WatchEvent&) override { return fault; }
    WatchFault fault;
  };
  Faults faults_;
  std::stop_source end_of_test_;
  MemoryFixture fixture_{{.store = {.history_limit = 5}, .faults = &faults_}};
};

TEST_F(MemoryWatchTest, TellsChangesAfterItsVersionInOrder) {
  Put("a", "x");
  const std::string version = Now();
  Put("b", "x");
  const auto watched = Watch({.resource_version = version});
  Settle();
  Put("b", "y");
  ASSERT_TRUE(fixture_.Delete(ConfigMaps(), "b").ok());
  Settle();
  EXPECT_THAT(watched->events, ElementsAre("ADDED b", "MODIFIED b", "DELETED b"));
  EXPECT_EQ(watched->versions.back(), Now());
  EXPECT_FALSE(watched->end.has_value());
}

TEST_F(MemoryWatchTest, ObjectsThatStartOrStopToMatchAreAddedAndDeleted) {
  const auto watched = Watch({.label_selector = "team=x", .resource_version = Now()});
  Put("a", "x");
  Put("a", "y");
  Put("a", "z");
  Put("a", "x");
  Settle();
  EXPECT_THAT(watched->events, ElementsAre("ADDED a", "DELETED a", "ADDED a"));
}

TEST_F(MemoryWatchTest, AForgottenVersionIsGone) {
  const std::string version = Now();
  for (int i = 0; i < 7; ++i) Put("a", absl::StrCat("t", i));
  const auto watched = Watch({.resource_version = version});
  Settle();
  ASSERT_TRUE(watched->end.has_value());
  EXPECT_EQ(CodeAndReason(*watched->end), "410 Expired");
  EXPECT_THAT(std::string(watched->end->message()),
              testing::StartsWith("too old resource version: "));
}

TEST_F(MemoryWatchTest, BookmarksComeEachMinute) {
  const auto watched = Watch({.resource_version = Now()});
  Settle();
  Put("a", "x");
  fixture_.executor.RunFor(absl::Seconds(121));
  EXPECT_THAT(watched->events, ElementsAre("ADDED a", "BOOKMARK ", "BOOKMARK "));
  EXPECT_EQ(watched->versions.back(), Now());
}

TEST_F(MemoryWatchTest, EndsAtItsDeadlineOrWhenCancelled) {
  const auto timed =
      Watch({.resource_version = Now()}, host::Deadline::After(fixture_.clock, absl::Seconds(5)));
  std::stop_source cancel;
  const auto cancelled = Watch({.resource_version = Now(), .cancel = cancel.get_token()});
  Settle();
  EXPECT_FALSE(timed->end.has_value());
  cancel.request_stop();
  Settle();
  EXPECT_EQ(cancelled->end, absl::OkStatus());
  fixture_.executor.RunFor(absl::Seconds(5));
  EXPECT_EQ(timed->end, absl::OkStatus());
}

TEST_F(MemoryWatchTest, CutWatchesAreUnavailable) {
  const auto watched = Watch({.resource_version = Now()});
  Settle();
  fixture_.api.CutWatches();
  Settle();
  ASSERT_TRUE(watched->end.has_value());
  EXPECT_EQ(watched->end->code(), absl::StatusCode::kUnavailable);
}

TEST_F(MemoryWatchTest, LagHoldsEventsBackAndKeepsTheirOrder) {
  const auto watched = Watch({.resource_version = Now()});
  faults_.fault.lag = absl::Seconds(10);
  Put("a", "x");
  Put("b", "x");
  fixture_.executor.RunFor(absl::Seconds(15));
  EXPECT_THAT(watched->events, ElementsAre("ADDED a"));
  fixture_.executor.RunFor(absl::Seconds(10));
  EXPECT_THAT(watched->events, ElementsAre("ADDED a", "ADDED b"));
}

TEST_F(MemoryWatchTest, AFaultMayEndTheWatchInsteadOfAnEvent) {
  const auto watched = Watch({.resource_version = Now()});
  faults_.fault.end = absl::OutOfRangeError("too old");
  Put("a", "x");
  Settle();
  EXPECT_TRUE(watched->events.empty());
  ASSERT_TRUE(watched->end.has_value());
  EXPECT_EQ(watched->end->code(), absl::StatusCode::kOutOfRange);
}

TEST_F(MemoryWatchTest, WatchesOfOtherNamespacesHearNothing) {
  const auto watched = Watch({.resource_version = Now()});
  ASSERT_TRUE(
      fixture_
          .Await(fixture_.api.Create(ConfigMaps(), "elsewhere",
                                     Json(R"({"metadata":{"name":"a"}})"), {}, fixture_.Soon()))
          .ok());
  Settle();
  EXPECT_TRUE(watched->events.empty());
}

}  // namespace
}  // namespace outrigger::controller::kube
