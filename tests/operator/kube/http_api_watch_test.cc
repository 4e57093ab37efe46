// SPDX-License-Identifier: Apache-2.0
// HttpApi against a real kube-apiserver: watches, and a server that goes and returns.
#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stop_token>

#include "operator/kube/http_api.h"
#include "tests/cluster/control_plane.h"
#include "tests/operator/kube/crash.h"
#include "tests/operator/kube/http_fixture.h"
#include "tests/support/wait_for.h"

namespace outrigger::controller::kube {
namespace {

using testing::ElementsAre;
using tests::ControlPlane;

class HttpApiWatchTest : public testing::Test, protected HttpFixture {
 protected:
  void SetUp() override {
    namespace_ =
        absl::AsciiStrToLower(testing::UnitTest::GetInstance()->current_test_info()->name());
    ASSERT_TRUE(Plane().CreateNamespace(namespace_).ok());
    const absl::StatusOr<ApiConfig> config = LoadKubeconfig(Plane().admin_kubeconfig(), "");
    ASSERT_TRUE(config.ok()) << config.status();
    api_ = Client({.config = *config});
  }

  virtual ControlPlane& Plane() { return tests::SharedControlPlane(); }

  absl::StatusOr<boost::json::value> Create(const std::string& name) {
    return Await(api_->Create(ConfigMaps(), namespace_, ConfigMap(name, "1"), {}, Soon()));
  }

  // Starts a watch of the namespace's ConfigMaps beside the test.
  void StartWatch(std::string version, host::Deadline stop, bool metadata_only = false) {
    result_.reset();
    WatchOptions options = {.metadata_only = metadata_only,
                            .resource_version = std::move(version),
                            .cancel = stop_.get_token()};
    runner_.Spawn(KeepResult(api_->Watch(
        ConfigMaps(), namespace_, std::move(options),
        [this](WatchEvent event) {
          version_ = Meta(event.object, "resourceVersion");
          if (event.type == WatchEventType::kBookmark) return;
          constexpr const char* kTypes[] = {"added ", "modified ", "deleted "};
          seen_.push_back(
              absl::StrCat(kTypes[static_cast<int>(event.type)], Meta(event.object, "name")));
          last_ = std::move(event.object);
        },
        stop)));
  }

  host::Task<void> KeepResult(host::Task<absl::Status> task) { result_ = co_await std::move(task); }

  // Until `condition` holds, with the tasks running.
  void Until(const std::function<bool()>& condition, absl::string_view what) {
    const absl::Status waited = tests::WaitFor(
        [&] {
          runner_.RunReady();
          return condition();
        },
        absl::Seconds(60), what,
        [&] {
          return absl::StrCat(seen_.size(),
                              " events; ended: ", result_ ? result_->ToString() : "no");
        });
    ASSERT_TRUE(waited.ok()) << waited;
  }

  std::string namespace_;
  std::unique_ptr<HttpApi> api_;
  std::stop_source stop_;
  std::vector<std::string> seen_;
  boost::json::value last_;
  std::string version_;
  std::optional<absl::Status> result_;
};

TEST_F(HttpApiWatchTest, DeliversChangesInOrderAndEndsWhenCancelled) {
  const absl::StatusOr<boost::json::value> first = Create("a");
  ASSERT_TRUE(first.ok()) << first.status();
  StartWatch(Meta(*first, "resourceVersion"), host::Deadline::Never());
  ASSERT_TRUE(Create("b").ok());
  ASSERT_TRUE(Await(api_->Patch(ConfigMaps(), namespace_, "a", PatchType::kMerge,
                                Json(R"({"data":{"key":"2"}})"), {}, Soon()))
                  .ok());
  ASSERT_TRUE(Await(api_->Delete(ConfigMaps(), namespace_, "a", {}, Soon())).ok());
  Until([&] { return seen_.size() == 3; }, "three events");
  EXPECT_THAT(seen_, ElementsAre("added b", "modified a", "deleted a"));
  EXPECT_EQ(last_.at("data").at("key"), "2") << "a deletion carries the last state";
  stop_.request_stop();
  Until([&] { return result_.has_value(); }, "the end of the watch");
  EXPECT_TRUE(result_->ok()) << *result_;
}

TEST_F(HttpApiWatchTest, ResumesFromTheLastVersionWithoutALossOrARepeat) {
  const absl::StatusOr<boost::json::value> first = Create("a");
  ASSERT_TRUE(first.ok()) << first.status();
  StartWatch(Meta(*first, "resourceVersion"), host::Deadline::Never());
  ASSERT_TRUE(Create("b").ok());
  Until([&] { return seen_.size() == 1; }, "an event");
  stop_.request_stop();
  Until([&] { return result_.has_value(); }, "the end of the watch");
  ASSERT_TRUE(Create("c").ok());
  stop_ = {};
  StartWatch(version_, host::Deadline::Never());
  ASSERT_TRUE(Create("d").ok());
  Until([&] { return seen_.size() == 3; }, "three events");
  EXPECT_THAT(seen_, ElementsAre("added b", "added c", "added d"));
  stop_.request_stop();
  Until([&] { return result_.has_value(); }, "the end of the watch");
}

TEST_F(HttpApiWatchTest, EndsByItsStopTimeWithOk) {
  const absl::StatusOr<boost::json::value> first = Create("a");
  ASSERT_TRUE(first.ok()) << first.status();
  StartWatch(Meta(*first, "resourceVersion"), host::Deadline::After(clock_, absl::Seconds(1)));
  Until([&] { return result_.has_value(); }, "the end of the watch");
  EXPECT_TRUE(result_->ok()) << *result_;
}

TEST_F(HttpApiWatchTest, MetadataOnlyEventsHoldNoData) {
  const absl::StatusOr<boost::json::value> first = Create("a");
  ASSERT_TRUE(first.ok()) << first.status();
  StartWatch(Meta(*first, "resourceVersion"), host::Deadline::Never(), true);
  ASSERT_TRUE(Create("b").ok());
  Until([&] { return seen_.size() == 1; }, "an event");
  EXPECT_EQ(last_.get_object().if_contains("data"), nullptr);
  stop_.request_stop();
  Until([&] { return result_.has_value(); }, "the end of the watch");
}

TEST_F(HttpApiWatchTest, WithoutAVersionIsInvalid) {
  StartWatch("", host::Deadline::Never());
  Until([&] { return result_.has_value(); }, "the end of the watch");
  EXPECT_EQ(result_->code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(HttpApiWatchTest, WithoutRightsIsPermissionDenied) {
  ControlPlane& plane = Plane();
  ASSERT_TRUE(plane.MustKubectl({"create", "serviceaccount", "sa", "-n", namespace_}).ok());
  const absl::StatusOr<std::string> path = plane.ServiceAccountKubeconfig(namespace_, "sa");
  ASSERT_TRUE(path.ok()) << path.status();
  api_ = Client({.config = *LoadKubeconfig(*path, "")});
  StartWatch("1", host::Deadline::Never());
  Until([&] { return result_.has_value(); }, "the end of the watch");
  EXPECT_EQ(result_->code(), absl::StatusCode::kPermissionDenied) << *result_;
}

// A control plane of its own: the API server is stopped and restarted.
class HttpApiRestartTest : public HttpApiWatchTest {
 protected:
  static void SetUpTestSuite() {
    auto started = ControlPlane::Start({.controller_manager = false});
    ASSERT_TRUE(started.ok()) << started.status();
    plane_ = std::move(*started);
  }
  static void TearDownTestSuite() { plane_.reset(); }
  ControlPlane& Plane() override { return *plane_; }
  static std::unique_ptr<ControlPlane> plane_;
};
std::unique_ptr<ControlPlane> HttpApiRestartTest::plane_;

// Case B071: an outage of the API server costs errors, not the process or its connections.
TEST_F(HttpApiRestartTest, OutageIsUnavailableAndHealsByItself) {
  const absl::StatusOr<boost::json::value> first = Create("a");
  ASSERT_TRUE(first.ok()) << first.status();
  StartWatch(Meta(*first, "resourceVersion"), host::Deadline::Never());
  runner_.RunReady();
  const absl::Status stopped = CrashApiServer(Plane());
  ASSERT_TRUE(stopped.ok()) << stopped;
  Until([&] { return result_.has_value(); }, "the end of the watch");
  const absl::Status down = Await(api_->Get(ConfigMaps(), namespace_, "a", "", Soon())).status();
  EXPECT_EQ(down.code(), absl::StatusCode::kUnavailable) << down;
  ASSERT_TRUE(Plane().StartApiServer().ok());
  EXPECT_TRUE(Await(api_->Get(ConfigMaps(), namespace_, "a", "", Soon())).ok());
}

// The other form, an ERROR event, is WatchFramerLineTest's.
TEST_F(HttpApiRestartTest, TooOldVersionIsOutOfRange) {
  ASSERT_TRUE(Create("a").ok());
  ASSERT_TRUE(Create("b").ok());
  // After a restart the watch cache knows no version before the newest.
  ASSERT_TRUE(CrashApiServer(Plane()).ok());
  ASSERT_TRUE(Plane().StartApiServer().ok());
  StartWatch("1", host::Deadline::Never());
  Until([&] { return result_.has_value(); }, "the end of the watch");
  EXPECT_EQ(result_->code(), absl::StatusCode::kOutOfRange) << *result_;
}

}  // namespace
}  // namespace outrigger::controller::kube
