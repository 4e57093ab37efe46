// SPDX-License-Identifier: Apache-2.0
#include "operator/adapter/authorizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/base/fake_clock.h"
#include "tests/operator/adapter/review_api.h"
#include "tests/operator/kube/task_runner.h"

namespace outrigger::controller::adapter {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

const UserInfo kHpaController = {
    .name = "system:serviceaccount:kube-system:horizontal-pod-autoscaler",
    .groups = {"system:serviceaccounts", "system:authenticated"},
    .extra = {{"authentication.kubernetes.io/credential-id", {"JTI=1"}}}};

// Allows reviews for one namespace only, as a RoleBinding would.
absl::StatusOr<bool> OnlyNamespaceShop(const boost::json::value& spec) {
  const boost::json::object& attributes = spec.as_object().at("resourceAttributes").as_object();
  return attributes.contains("namespace") && attributes.at("namespace") == "shop";
}

class AuthorizerTest : public testing::Test {
 protected:
  absl::Status Ask(const UserInfo& user, const std::string& namespace_name = "shop",
                   const std::string& metric = "s0-redis") {
    return runner_.Run(authorizer_.Authorize(user, namespace_name, metric,
                                             host::Deadline::After(clock_, absl::Seconds(10))));
  }
  // Asks without waiting; the answer comes into `out`.
  void AskLater(const UserInfo& user, std::optional<absl::Status>& out,
                absl::Duration patience = absl::Seconds(10)) {
    runner_.Spawn([](Authorizer& authorizer, UserInfo user, host::Deadline deadline,
                     std::optional<absl::Status>& out) -> host::Task<void> {
      out = co_await authorizer.Authorize(std::move(user), "shop", "s0-redis", deadline);
    }(authorizer_, user, host::Deadline::After(clock_, patience), out));
    runner_.RunReady();
  }

  host::FakeClock clock_;
  ReviewApi api_;
  tests::TaskRunner runner_;
  Authorizer authorizer_{clock_, api_, {.most_entries = 8}};
};

TEST_F(AuthorizerTest, AsksOnceForTheWholeGroupWithAllThatIsKnownOfTheUser) {
  UserInfo user = kHpaController;
  user.uid = "u-1";
  EXPECT_TRUE(Ask(user).ok());
  EXPECT_THAT(
      api_.reviews(),
      ElementsAre(
          R"({"user":"system:serviceaccount:kube-system:horizontal-pod-autoscaler","uid":"u-1",)"
          R"("groups":["system:serviceaccounts","system:authenticated"],)"
          R"("extra":{"authentication.kubernetes.io/credential-id":["JTI=1"]},)"
          R"("resourceAttributes":{"group":"external.metrics.k8s.io","version":"v1beta1",)"
          R"("verb":"list","resource":"*"}})"));
}

TEST_F(AuthorizerTest, AsksOncePerUserAndTenSecondsWhateverTheMetric) {
  for (int i = 0; i < 100; ++i)
    EXPECT_TRUE(Ask(kHpaController, absl::StrCat("ns-", i % 7), absl::StrCat("s0-", i)).ok());
  clock_.Advance(absl::Seconds(10) - absl::Milliseconds(1));
  EXPECT_TRUE(Ask(kHpaController).ok());
  EXPECT_THAT(api_.reviews(), SizeIs(1));
  clock_.Advance(absl::Milliseconds(1));
  EXPECT_TRUE(Ask(kHpaController).ok());
  EXPECT_THAT(api_.reviews(), SizeIs(2));
}

TEST_F(AuthorizerTest, UsersWithOtherGroupsAreOtherUsers) {
  UserInfo fewer_groups = kHpaController;
  fewer_groups.groups.pop_back();
  UserInfo other_extra = kHpaController;
  other_extra.extra.clear();
  for (const UserInfo& user : {kHpaController, fewer_groups, other_extra}) {
    EXPECT_TRUE(Ask(user).ok());
  }
  EXPECT_THAT(api_.reviews(), SizeIs(3));
}

TEST_F(AuthorizerTest, EqualQuestionsAtOneTimeBecomeOne) {
  api_.Hold();
  std::vector<std::optional<absl::Status>> answers(50);
  for (std::optional<absl::Status>& answer : answers) AskLater(kHpaController, answer);
  EXPECT_THAT(api_.reviews(), SizeIs(1));
  api_.Release();
  runner_.RunReady();
  for (const std::optional<absl::Status>& answer : answers) {
    ASSERT_TRUE(answer.has_value());
    EXPECT_TRUE(answer->ok()) << *answer;
  }
  EXPECT_THAT(api_.reviews(), SizeIs(1));
}

TEST_F(AuthorizerTest, RefusedForAllAsksForTheExactMetric) {
  api_.SetJudge(OnlyNamespaceShop);
  EXPECT_TRUE(Ask(kHpaController, "shop", "s0-redis").ok());
  EXPECT_THAT(api_.reviews(),
              ElementsAre(HasSubstr(R"("resource":"*")"),
                          HasSubstr(R"("resource":"s0-redis","namespace":"shop")")));
  // Both answers are remembered.
  EXPECT_TRUE(Ask(kHpaController, "shop", "s0-redis").ok());
  EXPECT_THAT(api_.reviews(), SizeIs(2));
}

TEST_F(AuthorizerTest, RefusedNamesUserVerbAndResource) {
  api_.SetJudge(OnlyNamespaceShop);
  const absl::Status status = Ask(kHpaController, "bank", "s0-redis");
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(status.message(),
            "user \"system:serviceaccount:kube-system:horizontal-pod-autoscaler\" may not list "
            "resource \"s0-redis\" in API group \"external.metrics.k8s.io\" in the namespace "
            "\"bank\"");
  clock_.Advance(absl::Seconds(9));
  EXPECT_FALSE(Ask(kHpaController, "bank", "s0-redis").ok());
  EXPECT_THAT(api_.reviews(), SizeIs(2));
}

TEST_F(AuthorizerTest, MembersOfSystemMastersAreNotAskedFor) {
  EXPECT_TRUE(Ask({.name = "admin", .groups = {"system:masters"}, .extra = {}}).ok());
  EXPECT_THAT(api_.reviews(), SizeIs(0));
}

struct Failure {
  const char* name;
  absl::Status of_the_server;
  absl::StatusCode want;
};
class AuthorizerFailureTest : public AuthorizerTest, public testing::WithParamInterface<Failure> {};

TEST_P(AuthorizerFailureTest, NeverOpensAndIsNotTheUsersRefusal) {
  api_.SetJudge([](const boost::json::value&) { return GetParam().of_the_server; });
  const absl::Status status = Ask(kHpaController);
  EXPECT_EQ(status.code(), GetParam().want);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("horizontal-pod-autoscaler"),
                    HasSubstr("create subjectaccessreviews: the server said so")));
  // Not remembered: the next question is asked, and may be answered.
  api_.SetJudge(nullptr);
  EXPECT_TRUE(Ask(kHpaController).ok());
}

INSTANTIATE_TEST_SUITE_P(Failures, AuthorizerFailureTest,
                         testing::ValuesIn<Failure>({
                             {"Unreachable", absl::UnavailableError("the server said so"),
                              absl::StatusCode::kUnavailable},
                             {"TooSlow", absl::DeadlineExceededError("the server said so"),
                              absl::StatusCode::kDeadlineExceeded},
                             {"Throttled", absl::ResourceExhaustedError("the server said so"),
                              absl::StatusCode::kUnavailable},
                             {"WeMayNotAsk", absl::PermissionDeniedError("the server said so"),
                              absl::StatusCode::kInternal},
                             {"WeAreNobody", absl::UnauthenticatedError("the server said so"),
                              absl::StatusCode::kInternal},
                         }),
                         [](const testing::TestParamInfo<Failure>& info) {
                           return std::string(info.param.name);
                         });

TEST_F(AuthorizerTest, AllWhoWaitHearOfTheFailure) {
  api_.Hold();
  api_.SetJudge([](const boost::json::value&) { return absl::UnavailableError("gone"); });
  std::vector<std::optional<absl::Status>> answers(3);
  for (std::optional<absl::Status>& answer : answers) AskLater(kHpaController, answer);
  api_.Release();
  runner_.RunReady();
  for (const std::optional<absl::Status>& answer : answers) {
    ASSERT_TRUE(answer.has_value());
    EXPECT_THAT(std::string(answer->message()), HasSubstr("gone"));
  }
}

TEST_F(AuthorizerTest, WhoWaitsForAnothersQuestionKeepsItsOwnDeadline) {
  api_.Hold();
  std::optional<absl::Status> first;
  std::optional<absl::Status> hurried;
  AskLater(kHpaController, first);
  AskLater(kHpaController, hurried, absl::Seconds(1));
  clock_.Advance(absl::Seconds(1));
  runner_.RunReady();
  EXPECT_FALSE(first.has_value());
  ASSERT_TRUE(hurried.has_value());
  EXPECT_EQ(hurried->code(), absl::StatusCode::kDeadlineExceeded);
  api_.Release();
  runner_.RunReady();
  ASSERT_TRUE(first.has_value());
  EXPECT_TRUE(first->ok());
}

TEST_F(AuthorizerTest, RemembersNoMoreThanItsRoom) {
  api_.SetJudge([](const boost::json::value&) { return false; });
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(Ask(kHpaController, "shop", absl::StrCat("s0-", i)).ok());
    ASSERT_LE(authorizer_.remembered(), 8u);
  }
}

}  // namespace
}  // namespace outrigger::controller::adapter
