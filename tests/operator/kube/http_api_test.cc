// SPDX-License-Identifier: Apache-2.0
// HttpApi against a real kube-apiserver: calls.
#include "operator/kube/http_api.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>
#include <set>

#include "host/base/mutex.h"
#include "operator/kube/rest_mapper.h"
#include "tests/cluster/control_plane.h"
#include "tests/operator/kube/http_fixture.h"

namespace outrigger::controller::kube {
namespace {

using testing::HasSubstr;
using tests::ControlPlane;
using tests::SharedControlPlane;

class HttpApiTest : public testing::Test, protected HttpFixture {
 protected:
  void SetUp() override {
    namespace_ =
        absl::AsciiStrToLower(testing::UnitTest::GetInstance()->current_test_info()->name());
    ASSERT_TRUE(SharedControlPlane().CreateNamespace(namespace_).ok());
    api_ = Client(AdminOptions());
  }

  HttpApi::Options AdminOptions() {
    absl::StatusOr<ApiConfig> config = LoadKubeconfig(SharedControlPlane().admin_kubeconfig(), "");
    EXPECT_TRUE(config.ok()) << config.status();
    return {.config = *config};
  }

  absl::StatusOr<boost::json::value> Create(const std::string& name, const std::string& value) {
    return Await(api_->Create(ConfigMaps(), namespace_, ConfigMap(name, value), {}, Soon()));
  }
  absl::StatusOr<boost::json::value> Read(const std::string& name) {
    return Await(api_->Get(ConfigMaps(), namespace_, name, "", Soon()));
  }
  static std::string Value(const absl::StatusOr<boost::json::value>& object) {
    return object.ok() ? std::string(object->at("data").at("key").as_string())
                       : object.status().ToString();
  }

  std::string namespace_;
  std::unique_ptr<HttpApi> api_;
};

TEST_F(HttpApiTest, CreatesReadsUpdatesPatchesAndDeletes) {
  absl::StatusOr<boost::json::value> made = Create("a", "1");
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(Value(Read("a")), "1");

  made->at("data").at("key") = "2";
  const auto updated = Await(api_->Update(ConfigMaps(), namespace_, "a", *made, {}, Soon()));
  EXPECT_EQ(Value(updated), "2");
  EXPECT_NE(Meta(*updated, "resourceVersion"), Meta(*made, "resourceVersion"));

  const auto patched =
      Await(api_->Patch(ConfigMaps(), namespace_, "a", PatchType::kMerge,
                        Json(R"({"data":{"key":"3"}})"), {.field_manager = "me"}, Soon()));
  EXPECT_EQ(Value(patched), "3");
  EXPECT_THAT(boost::json::serialize(patched->at("metadata").at("managedFields")),
              HasSubstr("\"manager\":\"me\""));

  const auto by_operations =
      Await(api_->Patch(ConfigMaps(), namespace_, "a", PatchType::kJson,
                        Json(R"([{"op":"replace","path":"/data/key","value":"4"}])"), {}, Soon()));
  EXPECT_EQ(Value(by_operations), "4");

  EXPECT_TRUE(Await(api_->Delete(ConfigMaps(), namespace_, "a", {}, Soon())).ok());
  EXPECT_EQ(Read("a").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(HttpApiTest, AppliesServerSide) {
  const auto applied = Await(api_->Patch(ConfigMaps(), namespace_, "a", PatchType::kApply,
                                         ConfigMap("a", "1"), {}, Soon()));
  EXPECT_EQ(Value(applied), "1");
  EXPECT_THAT(boost::json::serialize(applied->at("metadata").at("managedFields")),
              HasSubstr("\"operation\":\"Apply\""));
}

TEST_F(HttpApiTest, DryRunWritesNothing) {
  EXPECT_TRUE(
      Await(api_->Create(ConfigMaps(), namespace_, ConfigMap("a", "1"), {.dry_run = true}, Soon()))
          .ok());
  EXPECT_EQ(Read("a").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(HttpApiTest, ErrorsKeepTheServersCodeReasonAndMessage) {
  const absl::Status missing = Read("absent").status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(missing.message(), "configmaps \"absent\" not found");
  const std::optional<ApiError> error = GetApiError(missing);
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->http_code, 404);
  EXPECT_EQ(error->reason, "NotFound");

  ASSERT_TRUE(Create("a", "1").ok());
  EXPECT_EQ(Create("a", "1").status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(Create("Not A Name", "1").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      Await(api_->Create(ConfigMaps(), namespace_, {{"kind", "Pod"}}, {}, Soon())).status().code(),
      absl::StatusCode::kInvalidArgument);
  const Resource unknown = {"example.org", "v1", "nothings", true};
  EXPECT_EQ(Await(api_->Get(unknown, namespace_, "a", "", Soon())).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(HttpApiTest, StaleUpdateIsAborted) {
  const absl::StatusOr<boost::json::value> old = Create("a", "1");
  ASSERT_TRUE(old.ok()) << old.status();
  ASSERT_TRUE(
      Await(api_->Update(ConfigMaps(), namespace_, "a", ConfigMap("a", "2"), {}, Soon())).ok());
  const absl::Status status =
      Await(api_->Update(ConfigMaps(), namespace_, "a", *old, {}, Soon())).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
  EXPECT_EQ(Value(Read("a")), "2");
}

TEST_F(HttpApiTest, PatchHoldsUidAndResourceVersionAsPreconditions) {
  const absl::StatusOr<boost::json::value> made = Create("a", "1");
  ASSERT_TRUE(made.ok()) << made.status();
  const auto patch = [&](const std::string& uid, const std::string& version) {
    const boost::json::value body = {{"metadata", {{"uid", uid}, {"resourceVersion", version}}},
                                     {"data", {{"key", "2"}}}};
    return Await(api_->Patch(ConfigMaps(), namespace_, "a", PatchType::kMerge, body, {}, Soon()));
  };
  const std::string uid = Meta(*made, "uid");
  const std::string version = Meta(*made, "resourceVersion");
  EXPECT_EQ(patch(uid, "1").status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(patch("9e3a2f6c-0000-0000-0000-000000000000", version).status().code(),
            absl::StatusCode::kAborted);
  EXPECT_EQ(Value(Read("a")), "1");
  EXPECT_EQ(Value(patch(uid, version)), "2");
}

TEST_F(HttpApiTest, DeleteHoldsItsPreconditions) {
  const absl::StatusOr<boost::json::value> made = Create("a", "1");
  ASSERT_TRUE(made.ok()) << made.status();
  const auto erase = [&](const DeleteOptions& options) {
    return Await(api_->Delete(ConfigMaps(), namespace_, "a", options, Soon()));
  };
  EXPECT_EQ(erase({.uid = "9e3a2f6c-0000-0000-0000-000000000000"}).code(),
            absl::StatusCode::kAborted);
  EXPECT_EQ(erase({.resource_version = "1"}).code(), absl::StatusCode::kAborted);
  EXPECT_TRUE(Read("a").ok());
  EXPECT_TRUE(erase({.uid = Meta(*made, "uid")}).ok());
}

// A real ResourceQuota: the code tells a quota from missing rights.
TEST_F(HttpApiTest, DiscoversTheKindsOfAGroup) {
  RestMapper mapper(clock_, *api_);
  const auto deployment = Await(mapper.Find("apps", "v1", "Deployment", Soon()));
  ASSERT_TRUE(deployment.ok()) << deployment.status();
  EXPECT_EQ(deployment->resource, Deployments());
  EXPECT_TRUE(deployment->has_scale);
  const auto daemon_set = Await(mapper.Find("apps", "v1", "DaemonSet", Soon()));
  ASSERT_TRUE(daemon_set.ok()) << daemon_set.status();
  EXPECT_FALSE(daemon_set->has_scale);
  const auto nothing = Await(mapper.Find("example.com", "v1", "Gadget", Soon()));
  EXPECT_EQ(nothing.status().code(), absl::StatusCode::kNotFound) << nothing.status();
}

TEST_F(HttpApiTest, RefusedQuotaIsResourceExhausted) {
  ASSERT_TRUE(
      SharedControlPlane()
          .MustKubectl({"create", "quota", "none", "--hard=count/configmaps=1", "-n", namespace_})
          .ok());
  absl::Status status;
  for (int i = 0; i < 50 && status.ok(); ++i) status = Create(absl::StrCat("c", i), "1").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("exceeded quota: none"));
}

// Shows R21.
TEST_F(HttpApiTest, ListsInPagesOfOneVersion) {
  for (int i = 0; i < 7; ++i) ASSERT_TRUE(Create(absl::StrCat("c", i), "1").ok());
  std::set<std::string> names;
  std::set<std::string> versions;
  ListOptions options = {.field_selector = "metadata.name!=kube-root-ca.crt", .limit = 3};
  int pages = 0;
  do {
    const absl::StatusOr<ObjectList> page =
        Await(api_->List(ConfigMaps(), namespace_, options, Soon()));
    ASSERT_TRUE(page.ok()) << page.status();
    EXPECT_LE(page->items.size(), 3U);
    for (const boost::json::value& item : page->items) names.insert(Meta(item, "name"));
    versions.insert(page->resource_version);
    options.continue_token = page->continue_token;
    ++pages;
  } while (!options.continue_token.empty());
  EXPECT_EQ(names.size(), 7U);
  EXPECT_EQ(pages, 3);
  EXPECT_EQ(versions.size(), 1U);
}

TEST_F(HttpApiTest, ListsOfAnEmptyNamespaceByLabelAreEmpty) {
  const absl::StatusOr<ObjectList> page =
      Await(api_->List(ConfigMaps(), namespace_, {.label_selector = "a in (b,c)"}, Soon()));
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_TRUE(page->items.empty());
  EXPECT_FALSE(page->resource_version.empty());
}

TEST_F(HttpApiTest, MetadataOnlyHoldsNoSecret) {
  const boost::json::value secret = {{"metadata", {{"name", "s"}}},
                                     {"stringData", {{"password", "hunter2"}}}};
  ASSERT_TRUE(Await(api_->Create(Secrets(), namespace_, secret, {}, Soon())).ok());
  const auto one = Await(api_->GetMetadata(Secrets(), namespace_, "s", Soon()));
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(Meta(*one, "name"), "s");
  EXPECT_EQ(one->get_object().if_contains("data"), nullptr);
  const auto list = Await(api_->List(Secrets(), namespace_, {.metadata_only = true}, Soon()));
  ASSERT_TRUE(list.ok()) << list.status();
  ASSERT_FALSE(list->items.empty());
  for (const boost::json::value& item : list->items) {
    EXPECT_EQ(item.get_object().if_contains("data"), nullptr);
    EXPECT_FALSE(Meta(item, "resourceVersion").empty());
  }
}

TEST_F(HttpApiTest, ServiceAccountTokenHasOnlyItsRights) {
  ControlPlane& plane = SharedControlPlane();
  ASSERT_TRUE(plane.MustKubectl({"create", "serviceaccount", "sa", "-n", namespace_}).ok());
  const absl::StatusOr<std::string> path = plane.ServiceAccountKubeconfig(namespace_, "sa");
  ASSERT_TRUE(path.ok()) << path.status();
  const absl::StatusOr<ApiConfig> config = LoadKubeconfig(*path, "");
  ASSERT_TRUE(config.ok()) << config.status();
  const std::unique_ptr<HttpApi> api = Client({.config = *config});
  const absl::Status status = Await(api->Get(Secrets(), namespace_, "s", "", Soon())).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("cannot get resource \"secrets\""));
}

// A projected token is replaced before it expires; no request may need a restart.
TEST_F(HttpApiTest, RotatedTokenIsUsedWithoutARestart) {
  ControlPlane& plane = SharedControlPlane();
  const auto token_of = [&](const std::string& name) {
    EXPECT_TRUE(plane.MustKubectl({"create", "serviceaccount", name, "-n", namespace_}).ok());
    const auto token = plane.MustKubectl({"create", "token", name, "-n", namespace_});
    EXPECT_TRUE(token.ok()) << token.status();
    return token.value_or("");
  };
  const tests::TempDir dir;
  HttpApi::Options options = AdminOptions();
  options.config.client_certificate = {};
  options.config.client_key = {};
  options.config.token.file = dir.Write("token", token_of("before"));
  const std::unique_ptr<HttpApi> api = Client(std::move(options));
  const auto whoami = [&] {
    const Resource reviews = {"authentication.k8s.io", "v1", "selfsubjectreviews", false};
    const auto answer = Await(api->Create(reviews, "", boost::json::object(), {}, Soon()));
    return answer.ok() ? boost::json::serialize(answer->at("status")) : answer.status().ToString();
  };
  EXPECT_THAT(whoami(), HasSubstr(absl::StrCat(namespace_, ":before")));
  dir.Write("token", token_of("after"));
  EXPECT_THAT(whoami(), HasSubstr(absl::StrCat(namespace_, ":after")));
  dir.Write("token", "garbage");
  EXPECT_THAT(whoami(), HasSubstr("UNAUTHENTICATED"));
  EXPECT_THAT(whoami(), HasSubstr("create selfsubjectreviews.authentication.k8s.io"));
}

TEST_F(HttpApiTest, ServerOfAnotherAuthorityIsRefused) {
  const auto other = tests::CertificateAuthority::Create("somebody else");
  ASSERT_TRUE(other.ok()) << other.status();
  HttpApi::Options options = AdminOptions();
  options.config.certificate_authority = {.text = host::Secret((*other)->certificate())};
  const std::unique_ptr<HttpApi> api = Client(std::move(options));
  const absl::Status status = Await(api->Get(ConfigMaps(), namespace_, "a", "", Soon())).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("certificate"));
}

// Shows R26: each request is told to the metrics once, by verb, resource and code.
TEST_F(HttpApiTest, RecordsEachRequest) {
  host::Mutex mutex;
  std::vector<std::string> records;
  int writes = 0;
  HttpApi::Options options = AdminOptions();
  options.on_request = [&](const RequestRecord& record) {
    host::MutexLock lock(&mutex);
    records.push_back(absl::StrCat(record.verb, " ", record.resource, " ", record.code));
    EXPECT_GT(record.duration, absl::ZeroDuration());
  };
  options.after_write = [&] {
    host::MutexLock lock(&mutex);
    ++writes;
  };
  const std::unique_ptr<HttpApi> api = Client(std::move(options));
  const boost::json::value lease = {{"metadata", {{"name", "l"}}}, {"spec", boost::json::object()}};
  const boost::json::value review = {
      {"spec", {{"user", "u"}, {"nonResourceAttributes", {{"path", "/"}, {"verb", "get"}}}}}};
  (void)Await(api->Create(ConfigMaps(), namespace_, ConfigMap("a", "1"), {}, Soon()));
  (void)Await(api->Create(ConfigMaps(), namespace_, ConfigMap("a", "1"), {}, Soon()));
  (void)Await(api->Create(Leases(), namespace_, lease, {}, Soon()));
  (void)Await(api->Create(SubjectAccessReviews(), "", review, {}, Soon()));
  (void)Await(api->List(Deployments(), namespace_, {}, Soon()));
  (void)Await(api->Delete(ConfigMaps(), namespace_, "a", {}, Soon()));
  host::MutexLock lock(&mutex);
  EXPECT_THAT(records, testing::ElementsAre("create configmaps 201", "create configmaps 409",
                                            "create leases.coordination.k8s.io 201",
                                            "create subjectaccessreviews.authorization.k8s.io 201",
                                            "list deployments.apps 200", "delete configmaps 200"));
  EXPECT_EQ(writes, 2) << "refused writes, Leases and reviews do not count";
}

TEST_F(HttpApiTest, NameThatIsNoPathSegmentIsNotSent) {
  for (const char* name : {"", "../secrets/s", "a/b"}) {
    EXPECT_EQ(Read(name).status().code(), absl::StatusCode::kInvalidArgument) << name;
  }
  EXPECT_EQ(Await(api_->Delete(ConfigMaps(), namespace_, "", {}, Soon())).code(),
            absl::StatusCode::kInvalidArgument)
      << "would delete the whole collection";
}

}  // namespace
}  // namespace outrigger::controller::kube
