// SPDX-License-Identifier: Apache-2.0
#include "operator/runtime/controller.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "operator/kube/api.h"
#include "tests/operator/support/core_loop.h"

namespace outrigger::controller::runtime {
namespace {

using api::NamespacedName;
using testing::ElementsAre;

// A controller whose reconciler takes as long, and ends as, a test says.
class ControllerTest : public testing::Test {
 protected:
  ~ControllerTest() override {
    queue_.ShutDown();
    loop_.Advance(absl::Hours(1));
    EXPECT_TRUE(!started_ || ended_) << "Run() did not return";
  }
  void Start(Controller::Options options = {}) {
    controller_.emplace(
        loop_.clock(), queue_,
        [this](NamespacedName key, host::Deadline deadline) {
          return Reconcile(std::move(key), deadline);
        },
        host::Logger(host::MakeNullSink()), options,
        [this](absl::string_view outcome, absl::Duration, const absl::Status&) {
          outcomes_.emplace_back(outcome);
        });
    started_ = true;
    loop_.Spawn(RunToEnd());
    loop_.Settle();
  }
  host::Task<void> RunToEnd() {
    co_await controller_->Run();
    ended_ = true;
  }
  host::Task<absl::StatusOr<Result>> Reconcile(NamespacedName key, host::Deadline deadline) {
    times_[key.name].push_back(absl::ToInt64Milliseconds(loop_.clock().SteadyNow().since_epoch()));
    deadline_ = deadline.Remaining(loop_.clock());
    if (takes_.contains(key.name)) co_await loop_.clock().Sleep(takes_[key.name]);
    const bool once = results_.contains(key.name) && times_[key.name].size() == 1;
    if (once || always_) co_return results_.at(key.name);
    co_return Result::Done();
  }
  void RunWith(const std::string& name, absl::StatusOr<Result> result,
               absl::Duration watched = absl::Minutes(2)) {
    results_.insert_or_assign(name, std::move(result));
    queue_.Add({"ns", name});
    loop_.Advance(watched);
  }

  CoreLoop loop_;
  WorkQueue queue_{loop_.clock(), {}};
  std::optional<Controller> controller_;
  std::map<std::string, absl::StatusOr<Result>> results_;
  std::map<std::string, absl::Duration> takes_;
  std::map<std::string, std::vector<int64_t>> times_;
  std::vector<std::string> outcomes_;
  absl::Duration deadline_;
  bool always_ = false;
  bool started_ = false;
  bool ended_ = false;
};

absl::Status ApiFailure(const kube::ApiError& error) { return kube::ToStatus(error); }

// Shows R19.
TEST_F(ControllerTest, TheCodeOfAnErrorSaysWhenTheKeyComesBack) {
  Start();
  RunWith("done", Result::Done());
  EXPECT_THAT(times_["done"], ElementsAre(0)) << "success comes back with a change only";

  const int64_t two = 120'000;
  RunWith("after", Result::After(absl::Seconds(7)));
  EXPECT_THAT(times_["after"], ElementsAre(two, two + 7000));

  RunWith("gone", absl::NotFoundError("deleted"));
  EXPECT_THAT(times_["gone"], ElementsAre(2 * two)) << "gone: nothing to do";

  RunWith("invalid", absl::InvalidArgumentError("spec"));
  EXPECT_THAT(times_["invalid"], ElementsAre(3 * two)) << "only a change heals a configuration";

  RunWith("transient", absl::UnavailableError("down"));
  EXPECT_THAT(times_["transient"], ElementsAre(4 * two, 4 * two + 100));

  RunWith("conflict", absl::AbortedError("conflict"));
  EXPECT_THAT(times_["conflict"], ElementsAre(5 * two, 5 * two + 100));

  RunWith("forbidden", absl::PermissionDeniedError("patch hpa"));
  EXPECT_THAT(times_["forbidden"], ElementsAre(6 * two, 6 * two + 100));
}

// Shows R11.
TEST_F(ControllerTest, AQuotaRefusalComesBackAfterThirtySeconds) {
  Start();
  RunWith("quota", ApiFailure({.http_code = 403,
                               .reason = "Forbidden",
                               .message = "exceeded quota: few, requested: count/hpa=1"}));
  EXPECT_THAT(times_["quota"], ElementsAre(0, 30'000));
}

TEST_F(ControllerTest, AThrottledRequestComesBackWhenTheServerSaid) {
  Start();
  RunWith("throttled", ApiFailure({.http_code = 429,
                                   .reason = "TooManyRequests",
                                   .message = "later",
                                   .retry_after = absl::Seconds(3)}));
  EXPECT_THAT(times_["throttled"], ElementsAre(0, 3'000));
}

TEST_F(ControllerTest, AChangeBringsAnInvalidObjectBackAtOnceAndItsBackoffAnew) {
  Start();
  always_ = true;
  RunWith("a", absl::InvalidArgumentError("spec"), absl::Seconds(10));
  RunWith("a", absl::UnavailableError("down"), absl::Milliseconds(150));
  EXPECT_THAT(times_["a"], ElementsAre(0, 10'000, 10'100));
}

// Shows R22.
TEST_F(ControllerTest, AnObjectThatHangsHoldsUpNoOther) {
  Start({.workers = 10});
  takes_["hangs"] = absl::Seconds(50);
  queue_.Add({"ns", "hangs"});
  for (int i = 0; i < 100; ++i) queue_.Add({"ns", absl::StrCat("k", i)});
  loop_.Settle();
  for (int i = 0; i < 100; ++i) {
    EXPECT_THAT(times_[absl::StrCat("k", i)], ElementsAre(0));
  }
}

// Shows R22.
TEST_F(ControllerTest, NoMoreReconcilesRunAtOnceThanWorkers) {
  Start({.workers = 3});
  for (int i = 0; i < 6; ++i) {
    takes_[absl::StrCat("k", i)] = absl::Seconds(1);
    queue_.Add({"ns", absl::StrCat("k", i)});
  }
  loop_.Advance(absl::Milliseconds(500));
  EXPECT_EQ(times_.size(), 3u);
  loop_.Advance(absl::Seconds(1));
  EXPECT_EQ(times_.size(), 6u);
}

TEST_F(ControllerTest, EachReconcileHasADeadline) {
  Start({.reconcile_timeout = absl::Seconds(42)});
  RunWith("a", Result::Done());
  EXPECT_EQ(deadline_, absl::Seconds(42));
}

TEST_F(ControllerTest, TellsTheOutcomeOfEachPass) {
  Start();
  RunWith("a", Result::Done());
  RunWith("b", Result::After(absl::Hours(1)));
  RunWith("c", absl::InvalidArgumentError("x"));
  EXPECT_THAT(outcomes_, ElementsAre("success", "requeue_after", "error"));
  outcomes_.clear();
  RunWith("d", absl::AbortedError("x"));
  EXPECT_THAT(outcomes_, ElementsAre("requeue", "success"));
}

}  // namespace
}  // namespace outrigger::controller::runtime
