// SPDX-License-Identifier: Apache-2.0
#include "operator/runtime/status_writer.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/operator/support/forwarding_api.h"
#include "tests/operator/support/memory_cluster.h"

namespace outrigger::controller::runtime {
namespace {

using api::NamespacedName;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr char kStatusPatch[] = "patch scaledobjects.keda.sh/status";

// As an API server whose CRD does not know some fields of ours: it drops them.
class PruningApi : public ForwardingApi {
 public:
  using ForwardingApi::ForwardingApi;

  host::Task<absl::StatusOr<boost::json::value>> Patch(
      kube::Resource resource, std::string namespace_name, std::string name, kube::PatchType type,
      boost::json::value patch, kube::WriteOptions options, host::Deadline deadline) override {
    boost::json::object& status = patch.as_object()["status"].as_object();
    status.erase("phase");
    if (boost::json::value* conditions = status.if_contains("conditions")) {
      for (boost::json::value& one : conditions->as_array()) {
        one.as_object().erase("lastTransitionTime");
      }
    }
    return ForwardingApi::Patch(std::move(resource), std::move(namespace_name), std::move(name),
                                type, std::move(patch), std::move(options), deadline);
  }
};

class CountingSink : public host::LogSink {
 public:
  bool Enabled(host::LogLevel) const override { return true; }
  void Write(host::LogLevel, absl::string_view message,
             const boost::json::object& fields) override {
    lines.push_back(absl::StrCat(std::string(message), " ", boost::json::serialize(fields)));
  }
  std::vector<std::string> lines;
};

class StatusWriterTest : public testing::Test {
 protected:
  StatusWriterTest() {
    cluster_.CreateScaledObject("orders", R"("triggers":[])");
    Adopt();
  }
  ~StatusWriterTest() override {
    writer_.Clear();
    loop_.Advance(absl::Minutes(1));
  }
  void Adopt(const std::string& name = "orders") { writer_.Adopt(cluster_.ScaledObject(name)); }
  void SetHpaName(const std::string& value, const std::string& name = "orders") {
    writer_.Update({"ns", name}, [&](api::ScaledObjectStatus& status) { status.hpa_name = value; });
  }
  void SetReady(const char* status, const std::string& message) {
    writer_.Update(kOrders, [&](api::ScaledObjectStatus& wanted) {
      api::SetCondition(wanted.conditions, api::kReady, status, "Reason", message,
                        loop_.clock().WallNow(), 1);
    });
  }
  absl::Status Flush(absl::Duration within = absl::Seconds(30)) {
    return loop_.Run(writer_.Flush(kOrders, host::Deadline::After(loop_.clock(), within)));
  }
  int Patches() const { return cluster_.faults().Count(kStatusPatch); }
  // As somebody else would.
  void PatchStatus(absl::string_view patch) {
    cluster_.Patch(kube::ScaledObjects(), "orders", patch, "status");
  }

  const NamespacedName kOrders{"ns", "orders"};
  CoreLoop loop_;
  mutable MemoryCluster cluster_{loop_};
  WriteGate gate_{loop_.clock()};
  std::shared_ptr<CountingSink> sink_ = std::make_shared<CountingSink>();
  int conflicts_ = 0;
  std::vector<std::string> failed_;
  StatusWriter writer_{
      loop_.clock(),
      cluster_.api(),
      gate_,
      loop_.executor(),
      host::Logger(sink_),
      {},
      {.on_conflict = [this] { ++conflicts_; },
       .on_written = {},
       .on_failed = [this](const NamespacedName& key) { failed_.push_back(key.ToString()); }}};
};

// Shows R12.
TEST_F(StatusWriterTest, WritesStatusOnlyAndNeverSpec) {
  SetHpaName("hpa");
  ASSERT_TRUE(Flush().ok());
  EXPECT_EQ(cluster_.ScaledObject("orders").status.hpa_name, "hpa");
  EXPECT_THAT(cluster_.faults().Writes(),
              ElementsAre("patch scaledobjects.keda.sh/status ns/orders"));
  EXPECT_EQ(cluster_.ScaledObject("orders").meta.generation, 1);
}

// Shows R13. Case B075.
TEST_F(StatusWriterTest, ManyChangesWithinASecondBecomeOnePatch) {
  SetHpaName("first");
  loop_.Settle();
  EXPECT_EQ(Patches(), 1);
  for (int i = 0; i < 20; ++i) {
    SetHpaName(absl::StrCat("v", i));
    loop_.Advance(absl::Milliseconds(20));
  }
  EXPECT_EQ(Patches(), 1);
  loop_.Advance(absl::Seconds(1));
  EXPECT_EQ(Patches(), 2);
  EXPECT_EQ(cluster_.ScaledObject("orders").status.hpa_name, "v19");
}

// Shows R13.
TEST_F(StatusWriterTest, OneObjectIsPatchedAtMostOnceASecond) {
  for (int i = 0; i < 100; ++i) {
    SetHpaName(absl::StrCat("v", i));
    loop_.Advance(absl::Milliseconds(100));
  }
  EXPECT_LE(Patches(), 11);
  EXPECT_GE(Patches(), 9);
}

// Shows R13.
TEST_F(StatusWriterTest, AtMostThirtyTwoPatchesAreInFlight) {
  for (int i = 0; i < 100; ++i) {
    const std::string name = absl::StrCat("so-", i);
    cluster_.CreateScaledObject(name, R"("triggers":[])");
    Adopt(name);
  }
  SetHpaName("hpa");
  loop_.Settle();
  ASSERT_EQ(Patches(), 1) << "the first goes alone";
  cluster_.faults().Fail(kStatusPatch, absl::OkStatus(), 100, absl::Milliseconds(100));
  for (int i = 0; i < 100; ++i) SetHpaName("hpa", absl::StrCat("so-", i));
  loop_.Settle();
  EXPECT_EQ(Patches(), 1 + 32);
  loop_.Advance(absl::Milliseconds(350));
  EXPECT_EQ(Patches(), 1 + 100);
}

// Shows R3.
TEST_F(StatusWriterTest, WritesNothingWhenNothingDiffers) {
  SetHpaName("hpa");
  ASSERT_TRUE(Flush().ok());
  cluster_.faults().Clear();
  loop_.Advance(absl::Seconds(2));
  Adopt();
  SetHpaName("hpa");
  ASSERT_TRUE(Flush().ok());
  loop_.Advance(absl::Minutes(1));
  EXPECT_THAT(cluster_.faults().Writes(), IsEmpty());
}

TEST_F(StatusWriterTest, AChangeThatIsTakenBackBeforeItIsSentIsNotWritten) {
  SetHpaName("a");
  ASSERT_TRUE(Flush().ok());
  SetHpaName("b");
  loop_.Advance(absl::Milliseconds(500));
  SetHpaName("a");
  loop_.Advance(absl::Seconds(5));
  EXPECT_EQ(Patches(), 1);
}

TEST_F(StatusWriterTest, AConflictIsReadAgainAndWhatStillDiffersIsSent) {
  PatchStatus(R"({"status":{"originalReplicaCount":7}})");  // our version is old now
  SetHpaName("hpa");
  ASSERT_TRUE(Flush().ok());
  EXPECT_EQ(conflicts_, 1);
  EXPECT_EQ(Patches(), 2);
  EXPECT_EQ(cluster_.ScaledObject("orders").status.hpa_name, "hpa");
}

TEST_F(StatusWriterTest, AConflictAfterWhichNothingDiffersEndsTheWrite) {
  PatchStatus(R"({"status":{"hpaName":"hpa"}})");
  SetHpaName("hpa");
  ASSERT_TRUE(Flush().ok());
  EXPECT_EQ(Patches(), 1);
}

TEST_F(StatusWriterTest, WhatSomebodyElseChangedIsPutBack) {
  SetHpaName("hpa");
  ASSERT_TRUE(Flush().ok());
  PatchStatus(R"({"status":{"hpaName":"stolen"}})");
  Adopt();
  loop_.Advance(absl::Seconds(2));
  EXPECT_EQ(cluster_.ScaledObject("orders").status.hpa_name, "hpa");
}

TEST_F(StatusWriterTest, WhatSomebodyElseChangedWhileAPatchWasOnItsWayIsPutBack) {
  cluster_.faults().LoseAnswer("nothing", absl::OkStatus());
  // The answer of our patch comes late; meanwhile the informer shows a later foreign change.
  SetHpaName("hpa");
  bool patched = false;
  cluster_.faults().SetOnCall([&](const std::string&) { patched = true; });
  while (!patched) loop_.Settle();
  cluster_.faults().SetOnCall({});
  PatchStatus(R"({"status":{"hpaName":"stolen"}})");
  Adopt();
  loop_.Advance(absl::Seconds(5));
  EXPECT_EQ(cluster_.ScaledObject("orders").status.hpa_name, "hpa");
}

TEST_F(StatusWriterTest, AnOldVersionFromTheInformerChangesNothing) {
  const api::ScaledObject old = cluster_.ScaledObject("orders");
  SetHpaName("hpa");
  ASSERT_TRUE(Flush().ok());
  writer_.Adopt(old);
  loop_.Advance(absl::Seconds(5));
  EXPECT_EQ(Patches(), 1);
}

TEST_F(StatusWriterTest, AnObjectThatWasMadeAnewStartsFromItsOwnStatus) {
  SetHpaName("old");
  ASSERT_TRUE(Flush().ok());
  cluster_.Delete(kube::ScaledObjects(), "orders");
  cluster_.CreateScaledObject("orders", R"("triggers":[])");
  Adopt();
  EXPECT_EQ(writer_.Wanted(kOrders)->hpa_name, "");
  loop_.Advance(absl::Seconds(5));
  EXPECT_EQ(Patches(), 1);
  SetHpaName("new");
  ASSERT_TRUE(Flush().ok());
  EXPECT_EQ(cluster_.ScaledObject("orders").status.hpa_name, "new");
}

TEST_F(StatusWriterTest, NeverWritesToAnotherObjectOfTheSameName) {
  cluster_.Delete(kube::ScaledObjects(), "orders");
  cluster_.CreateScaledObject("orders", R"("triggers":[])");
  SetHpaName("of the old one");
  EXPECT_EQ(Flush().code(), absl::StatusCode::kNotFound);
  loop_.Advance(absl::Minutes(1));
  EXPECT_EQ(cluster_.ScaledObject("orders").status.hpa_name, "");
  EXPECT_LE(Patches(), 2) << "it must not try for ever";
}

TEST_F(StatusWriterTest, AnObjectThatIsGoneEndsTheFlush) {
  cluster_.Delete(kube::ScaledObjects(), "orders");
  SetHpaName("hpa");
  EXPECT_EQ(Flush().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(loop_.Run(writer_.Flush({"ns", "never-seen"}, host::Deadline::Never())).code(),
            absl::StatusCode::kNotFound);
  EXPECT_THAT(failed_, IsEmpty());
}

// Shows R12.
TEST_F(StatusWriterTest, AFailedWriteIsTheFlushersErrorAndGoesWithTheNext) {
  cluster_.faults().Fail(kStatusPatch, absl::UnavailableError("apiserver down"));
  SetHpaName("hpa");
  const absl::Status failed = Flush();
  EXPECT_EQ(failed.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(failed.message()), HasSubstr("ScaledObject ns/orders status"));
  EXPECT_THAT(failed_, IsEmpty()) << "the flusher knows";
  loop_.Advance(absl::Seconds(1));
  EXPECT_TRUE(Flush().ok());
  EXPECT_EQ(cluster_.ScaledObject("orders").status.hpa_name, "hpa");
}

// Shows R12.
TEST_F(StatusWriterTest, AFailedWriteThatNobodyWaitsForIsTold) {
  cluster_.faults().Fail(kStatusPatch, absl::UnavailableError("apiserver down"));
  SetHpaName("hpa");
  loop_.Advance(absl::Seconds(1));
  EXPECT_THAT(failed_, ElementsAre("ns/orders"));
}

TEST_F(StatusWriterTest, AFlushDoesNotWaitForTheIntervalOfTheObject) {
  SetHpaName("a");
  ASSERT_TRUE(Flush().ok());
  SetHpaName("b");
  const host::SteadyTime start = loop_.clock().SteadyNow();
  EXPECT_TRUE(Flush().ok());
  EXPECT_EQ(loop_.clock().SteadyNow(), start) << "a worker must not wait for a clock";
  loop_.Advance(absl::Seconds(1));
  EXPECT_EQ(cluster_.ScaledObject("orders").status.hpa_name, "b");
}

TEST_F(StatusWriterTest, AFlushEndsAtItsDeadline) {
  cluster_.faults().Fail(kStatusPatch, absl::OkStatus(), 1, absl::Seconds(4));
  SetHpaName("a");
  const absl::Status late = Flush(absl::Seconds(2));
  EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(StatusWriterTest, AFlushLearnsOfAnObjectThatIsForgottenMeanwhile) {
  cluster_.faults().Fail(kStatusPatch, absl::OkStatus(), 1, absl::Seconds(4));
  SetHpaName("a");
  auto flushed = loop_.Start(writer_.Flush(kOrders, host::Deadline::Never()));
  loop_.Settle();
  writer_.Forget(kOrders);
  loop_.Settle();
  ASSERT_TRUE(flushed->has_value());
  EXPECT_EQ((*flushed)->code(), absl::StatusCode::kNotFound);
}

// Case B007.
TEST_F(StatusWriterTest, FactsOfOneUpdateAreNeverSeenApart) {
  std::vector<std::string> seen;
  for (int i = 0; i < 5; ++i) {
    writer_.Update(kOrders, [&](api::ScaledObjectStatus& status) {
      status.health["s0-queue"] = {.number_of_failures = i % 2 == 0 ? 3 : 0};
      api::SetCondition(status.conditions, api::kFallback, i % 2 == 0 ? "True" : "False", "R", "",
                        loop_.clock().WallNow(), 1);
    });
    for (int step = 0; step < 20; ++step) {
      loop_.Advance(absl::Milliseconds(100));
      const api::ScaledObject now = cluster_.ScaledObject("orders");
      if (now.status.health.empty()) continue;
      seen.push_back(absl::StrCat(now.status.health.at("s0-queue").number_of_failures, " ",
                                  api::StatusOf(now.status.conditions, api::kFallback)));
    }
  }
  EXPECT_THAT(seen, testing::Each(testing::AnyOf("3 True", "0 False")));
}

TEST_F(StatusWriterTest, AFieldThatTheServedCrdPrunesIsReportedOnceAndLeftOut) {
  PruningApi pruning(cluster_.api());
  StatusWriter writer(loop_.clock(), pruning, gate_, loop_.executor(), host::Logger(sink_), {});
  writer.Adopt(cluster_.ScaledObject("orders"));
  auto change = [&](const std::string& message) {
    writer.Update(kOrders, [&](api::ScaledObjectStatus& status) {
      status.phase = api::Phase::kRunning;
      status.hpa_name = "hpa";
      api::SetCondition(status.conditions, api::kReady, "True", "Reason", message,
                        loop_.clock().WallNow(), 1);
    });
    loop_.Advance(absl::Seconds(10));
    writer.Adopt(cluster_.ScaledObject("orders"));
  };
  change("one");
  EXPECT_EQ(Patches(), 1) << "what was pruned must not be sent again and again";
  change("two");
  EXPECT_EQ(Patches(), 2);
  change("two");
  EXPECT_EQ(Patches(), 2);
  EXPECT_THAT(sink_->lines, SizeIs(2));
  EXPECT_THAT(sink_->lines, testing::Contains(HasSubstr("status.phase")));
  EXPECT_THAT(sink_->lines, testing::Contains(HasSubstr("status.conditions[].lastTransitionTime")));
  writer.Clear();
  loop_.Advance(absl::Seconds(10));
}

// What one leader left unwritten, for the CRD does not keep it, the next does not write either.
TEST_F(StatusWriterTest, ANewLeaderLearnsWithOnePatchWhatTheServedCrdPrunes) {
  PruningApi pruning(cluster_.api());
  std::vector<std::string> names;
  for (int i = 0; i < 20; ++i) {
    names.push_back(absl::StrCat("so-", i));
    cluster_.CreateScaledObject(names.back(), R"("triggers":[])");
  }
  auto lead = [&] {
    const int before = Patches();
    StatusWriter writer(loop_.clock(), pruning, gate_, loop_.executor(), host::Logger(sink_), {});
    for (const std::string& name : names) {
      writer.Adopt(cluster_.ScaledObject(name));
      writer.Update({"ns", name}, [&](api::ScaledObjectStatus& status) {
        status.phase = api::Phase::kRunning;
        api::SetCondition(status.conditions, api::kReady, "True", "Reason", "",
                          loop_.clock().WallNow(), 1);
      });
    }
    loop_.Advance(absl::Seconds(10));
    writer.Clear();
    loop_.Advance(absl::Seconds(10));
    return Patches() - before;
  };
  EXPECT_EQ(lead(), 20);
  EXPECT_EQ(lead(), 1);
}

// The others must not wait for what a failed patch did not show.
TEST_F(StatusWriterTest, AFirstPatchThatFailsIsFollowedByAnother) {
  cluster_.CreateScaledObject("other", R"("triggers":[])");
  Adopt("other");
  cluster_.faults().Fail(kStatusPatch, absl::UnavailableError("down"), 1, absl::Seconds(1));
  SetHpaName("hpa");
  SetHpaName("hpa", "other");
  loop_.Settle();
  EXPECT_EQ(Patches(), 1);
  loop_.Advance(absl::Seconds(2));
  EXPECT_EQ(Patches(), 2);
  EXPECT_EQ(cluster_.ScaledObject("other").status.hpa_name, "hpa");
  EXPECT_THAT(failed_, ElementsAre("ns/orders"));
}

TEST_F(StatusWriterTest, ForgetsObjectsThatAreGone) {
  EXPECT_EQ(writer_.known_objects(), 1u);
  writer_.Forget(kOrders);
  EXPECT_EQ(writer_.known_objects(), 0u);
  SetHpaName("nobody");
  loop_.Advance(absl::Seconds(5));
  EXPECT_EQ(Patches(), 0);
}

}  // namespace
}  // namespace outrigger::controller::runtime
