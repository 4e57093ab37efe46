// SPDX-License-Identifier: Apache-2.0
// Informer and LeaderElector through HttpApi on a real kube-apiserver of their own, which is
// stopped, restarted and cut off.
#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "operator/kube/http_api.h"
#include "operator/kube/informer.h"
#include "operator/kube/lease.h"
#include "tests/cluster/control_plane.h"
#include "tests/operator/kube/crash.h"
#include "tests/operator/kube/freezing_proxy.h"
#include "tests/operator/kube/http_fixture.h"
#include "tests/support/wait_for.h"

namespace outrigger::controller::kube {
namespace {

using tests::ControlPlane;

class LiveTest : public testing::Test, protected HttpFixture {
 protected:
  static void SetUpTestSuite() {
    auto started = ControlPlane::Start({.controller_manager = false});
    ASSERT_TRUE(started.ok()) << started.status();
    plane_ = std::move(*started);
  }
  static void TearDownTestSuite() { plane_.reset(); }

  void SetUp() override {
    namespace_ =
        absl::AsciiStrToLower(testing::UnitTest::GetInstance()->current_test_info()->name());
    ASSERT_TRUE(plane_->CreateNamespace(namespace_).ok());
    api_ = Client({.config = Config()});
  }
  static ApiConfig Config() { return LoadKubeconfig(plane_->admin_kubeconfig(), "").value(); }

  void Until(const std::function<bool()>& condition, absl::string_view what,
             absl::Duration limit = absl::Seconds(60)) {
    const absl::Status waited = tests::WaitFor(
        [&] {
          runner_.RunReady();
          return condition();
        },
        limit, what, [] { return "not yet"; });
    ASSERT_TRUE(waited.ok()) << waited;
  }
  void Create(const std::string& name, const std::string& value = "1") {
    const auto made =
        Await(api_->Create(ConfigMaps(), namespace_, ConfigMap(name, value), {}, Soon()));
    ASSERT_TRUE(made.ok()) << made.status();
  }

  static std::unique_ptr<ControlPlane> plane_;
  std::string namespace_;
  std::unique_ptr<HttpApi> api_;
};
std::unique_ptr<ControlPlane> LiveTest::plane_;

// Case B071: the API server goes and returns; the cache stays and catches up by itself.
// Shows R21.
TEST_F(LiveTest, InformerOutlivesAnOutageOfTheApiServer) {
  for (const char* name : {"a", "b", "c"}) Create(name);
  Informer<std::string> informer(
      clock_, *api_, host::Random(1), host::Logger(host::MakeNullSink()),
      {.resource = ConfigMaps(), .namespace_name = namespace_, .page_size = 2},
      [](const boost::json::value& object) -> absl::StatusOr<std::string> {
        return std::string(object.at("data").at("key").as_string());
      });
  std::vector<std::string> changes;
  informer.AddHandlers(
      {.on_update = [&](const auto& key, const auto& before,
                        const auto& now) { changes.push_back(key.name + *before + *now); },
       .on_delete = [&](const auto& key, const auto&,
                        FinalState) { changes.push_back("-" + key.name); }});
  runner_.Spawn(informer.Run());
  Until([&] { return informer.HasSynced(); }, "the first list");
  ASSERT_EQ(informer.size(), 3U);

  const absl::Status stopped = CrashApiServer(*plane_);
  ASSERT_TRUE(stopped.ok()) << stopped;
  Until([&] { return !informer.last_error().ok(); }, "an error");
  EXPECT_EQ(informer.size(), 3U);
  ASSERT_TRUE(plane_->StartApiServer().ok());
  const auto changed =
      Await(api_->Update(ConfigMaps(), namespace_, "a", ConfigMap("a", "2"), {}, Soon()));
  ASSERT_TRUE(changed.ok()) << changed.status();
  ASSERT_TRUE(Await(api_->Delete(ConfigMaps(), namespace_, "b", {}, Soon())).ok());
  Until([&] { return changes.size() == 2; }, "the changes");
  EXPECT_THAT(changes, testing::UnorderedElementsAre("a12", "-b"));
  informer.Stop();
  Until([&] { return runner_.running() == 0; }, "the end");
}

// An informer of Secrets by metadata only never sees a value.
TEST_F(LiveTest, InformerOfMetadataHoldsNoSecret) {
  bool has_data = false;
  Informer<std::string> informer(
      clock_, *api_, host::Random(1), host::Logger(host::MakeNullSink()),
      {.resource = Secrets(), .namespace_name = namespace_, .metadata_only = true},
      [&](const boost::json::value& object) -> absl::StatusOr<std::string> {
        has_data |= object.get_object().if_contains("data") != nullptr;
        return IdentityOf(object).resource_version;
      });
  const auto create = [&](const char* name) {
    const boost::json::value secret = {{"metadata", {{"name", name}}},
                                       {"stringData", {{"password", "hunter2"}}}};
    ASSERT_TRUE(Await(api_->Create(Secrets(), namespace_, secret, {}, Soon())).ok());
  };
  create("listed");
  runner_.Spawn(informer.Run());
  Until([&] { return informer.HasSynced(); }, "the first list");
  create("watched");
  Until([&] { return informer.size() == 2; }, "the second secret");
  EXPECT_FALSE(has_data);
  informer.Stop();
  Until([&] { return runner_.running() == 0; }, "the end");
}

// Times are a fifth of the real ones, to be quick.
class LiveLeaseTest : public LiveTest {
 protected:
  LeaderElector::Options Options(const std::string& identity) {
    return {.namespace_name = namespace_,
            .name = "lease",
            .identity = identity,
            .lease_duration = absl::Seconds(3),
            .renew_deadline = absl::Seconds(2),
            .retry_period = absl::Milliseconds(400),
            .write_margin = absl::Milliseconds(200)};
  }
  std::unique_ptr<LeaderElector> Elector(const std::string& identity, HttpApi& api) {
    return std::make_unique<LeaderElector>(clock_, api, host::Random(identity[0]),
                                           host::Logger(host::MakeNullSink()), Options(identity),
                                           LeaderElector::Callbacks{});
  }
  std::string Kubectl(const std::string& path) {
    return plane_->MustKubectl({"get", "lease", "lease", "-n", namespace_, "-o", path})
        .value_or("no lease");
  }
};

// Shows R25.
TEST_F(LiveLeaseTest, ReleasedLeaseIsTakenOverAndReadsWellInKubectl) {
  const std::unique_ptr<HttpApi> other_api = Client({.config = Config()});
  const auto a = Elector("a", *api_);
  const auto b = Elector("b", *other_api);
  runner_.Spawn(a->Run());
  Until([&] { return a->leading(); }, "the first leader");
  runner_.Spawn(b->Run());
  Until([&] { return b->holder() == "a"; }, "the second to see it");
  EXPECT_FALSE(b->leading());
  EXPECT_EQ(Kubectl("jsonpath={.spec.holderIdentity} {.spec.leaseDurationSeconds}"), "a 3");
  a->Stop();
  Until([&] { return b->leading(); }, "the second leader", absl::Seconds(10));
  EXPECT_FALSE(a->leading());
  EXPECT_EQ(Kubectl("jsonpath={.spec.holderIdentity} {.spec.leaseTransitions}"), "b 1");
  b->Stop();
  Until([&] { return runner_.running() == 0; }, "the end");
  EXPECT_EQ(Kubectl("jsonpath={.spec.holderIdentity}"), "");
}

// Case B071.
TEST_F(LiveLeaseTest, DeletedLeaseIsMadeAgainByItsHolder) {
  const auto a = Elector("a", *api_);
  runner_.Spawn(a->Run());
  Until([&] { return a->leading(); }, "the leader");
  ASSERT_TRUE(Await(api_->Delete(Leases(), namespace_, "lease", {}, Soon())).ok());
  Until(
      [&] {
        EXPECT_TRUE(a->leading()) << "a deletion is no loss";
        return Await(api_->Get(Leases(), namespace_, "lease", "", Soon())).ok();
      },
      "the new lease");
  a->Stop();
  Until([&] { return runner_.running() == 0; }, "the end");
}

// A firewall that forgets a connection: the next request after one that timed out goes to a new
// one, long before TCP gives the old one up.
TEST_F(LiveTest, ConnectionThatCarriesNothingIsLeftAfterOneTimeout) {
  int port = 0;
  const std::string url = plane_->url();
  ASSERT_TRUE(absl::SimpleAtoi(url.substr(url.rfind(':') + 1), &port));
  tests::FreezingProxy proxy(static_cast<uint16_t>(port));
  ApiConfig config = Config();
  config.server = absl::StrCat("https://127.0.0.1:", proxy.port());
  const std::unique_ptr<HttpApi> api = Client({.config = config});
  const auto get = [&](const Resource& resource, absl::Duration timeout) {
    return Await(api->List(resource, namespace_, {}, host::Deadline::After(clock_, timeout)))
        .status();
  };
  ASSERT_TRUE(get(ConfigMaps(), absl::Seconds(20)).ok());
  ASSERT_TRUE(get(Leases(), absl::Seconds(20)).ok());
  ASSERT_TRUE(get(ConfigMaps(), absl::Seconds(20)).ok());
  EXPECT_EQ(proxy.connections(), 2) << "one for calls, one for leases";
  proxy.Freeze();
  for (const Resource& resource : {ConfigMaps(), Leases()}) {
    EXPECT_EQ(get(resource, absl::Milliseconds(300)).code(), absl::StatusCode::kDeadlineExceeded);
    const absl::Status next = get(resource, absl::Seconds(20));
    EXPECT_TRUE(next.ok()) << next;
  }
  EXPECT_EQ(proxy.connections(), 4);
}

}  // namespace
}  // namespace outrigger::controller::kube
