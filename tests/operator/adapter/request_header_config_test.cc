// SPDX-License-Identifier: Apache-2.0
#include "operator/adapter/request_header_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/object.hpp>

#include "host/base/fake_clock.h"
#include "tests/operator/adapter/review_api.h"
#include "tests/operator/kube/task_runner.h"

namespace outrigger::controller::adapter {
namespace {

namespace json = boost::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

json::value ConfigMap(json::object data) {
  return json::object{{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"data", std::move(data)}};
}

TEST(ParseRequestHeaderConfigTest, ReadsWhatTheApiServerWrites) {
  const absl::StatusOr<RequestHeaderConfig> config = ParseRequestHeaderConfig(
      ConfigMap({{"client-ca-file", "PEM 1"},
                 {"requestheader-client-ca-file", "PEM 2"},
                 {"requestheader-allowed-names", R"(["front-proxy-client","aggregator"])"},
                 {"requestheader-username-headers", R"(["X-Remote-User"])"},
                 {"requestheader-uid-headers", R"(["X-Remote-Uid"])"},
                 {"requestheader-group-headers", R"(["X-Remote-Group"])"},
                 {"requestheader-extra-headers-prefix", R"(["X-Remote-Extra-"])"}}));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->client_ca_pem, "PEM 1");
  EXPECT_EQ(config->proxy_ca_pem, "PEM 2");
  EXPECT_THAT(config->allowed_names, ElementsAre("front-proxy-client", "aggregator"));
  EXPECT_THAT(config->username_headers, ElementsAre("X-Remote-User"));
  EXPECT_THAT(config->uid_headers, ElementsAre("X-Remote-Uid"));
  EXPECT_THAT(config->group_headers, ElementsAre("X-Remote-Group"));
  EXPECT_THAT(config->extra_header_prefixes, ElementsAre("X-Remote-Extra-"));
}

TEST(ParseRequestHeaderConfigTest, WithoutAggregationThereIsNoProxy) {
  const absl::StatusOr<RequestHeaderConfig> config =
      ParseRequestHeaderConfig(ConfigMap({{"client-ca-file", "PEM"}}));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->proxy_ca_pem, "");
  EXPECT_THAT(config->username_headers, IsEmpty());
}

TEST(ParseRequestHeaderConfigTest, ABrokenListIsNamed) {
  for (const char* list : {"X-Remote-User", "{}", "[1]", "[\"a\""}) {
    const absl::Status status =
        ParseRequestHeaderConfig(ConfigMap({{"requestheader-allowed-names", list}})).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << list;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("data.requestheader-allowed-names: want a JSON list of strings, got"));
  }
}

class RequestHeaderConfigLoaderTest : public testing::Test {
 protected:
  void Start() {
    runner_.Spawn(loader_.Run());
    runner_.RunReady();
  }
  void Advance(absl::Duration d) {
    clock_.Advance(d);
    runner_.RunReady();
  }
  std::string ClientCa() {
    const std::shared_ptr<const RequestHeaderConfig> current = loader_.Current();
    return current == nullptr ? "(not read)" : current->client_ca_pem;
  }
  ~RequestHeaderConfigLoaderTest() override {
    loader_.Stop();
    runner_.RunReady();
    EXPECT_EQ(runner_.running(), 0);
  }

  host::FakeClock clock_;
  ReviewApi api_;
  tests::TaskRunner runner_;
  RequestHeaderConfigLoader loader_{clock_, api_, host::Logger(host::MakeNullSink())};
};

TEST_F(RequestHeaderConfigLoaderTest, IsReadAgainEveryTwoMinutes) {
  api_.SetConfigMap(ConfigMap({{"client-ca-file", "first"}}));
  EXPECT_EQ(ClientCa(), "(not read)");
  Start();
  EXPECT_EQ(ClientCa(), "first");
  api_.SetConfigMap(ConfigMap({{"client-ca-file", "second"}}));
  Advance(absl::Minutes(2) - absl::Milliseconds(1));
  EXPECT_EQ(ClientCa(), "first");
  Advance(absl::Milliseconds(1));
  EXPECT_EQ(ClientCa(), "second");
}

// Case B066: an empty cluster costs less than one call a minute.
TEST_F(RequestHeaderConfigLoaderTest, TenQuietMinutesAreFiveCalls) {
  api_.SetConfigMap(ConfigMap({{"client-ca-file", "first"}}));
  Start();
  const int before = api_.config_map_reads();
  for (int i = 0; i < 600; ++i) Advance(absl::Seconds(1));
  EXPECT_EQ(api_.config_map_reads() - before, 5);
}

TEST_F(RequestHeaderConfigLoaderTest, TheSameContentKeepsTheSameObject) {
  api_.SetConfigMap(ConfigMap({{"client-ca-file", "first"}}));
  Start();
  const std::shared_ptr<const RequestHeaderConfig> before = loader_.Current();
  Advance(absl::Minutes(2));
  EXPECT_EQ(api_.config_map_reads(), 2);
  EXPECT_EQ(loader_.Current(), before) << "what was judged by it would be judged again";
}

TEST_F(RequestHeaderConfigLoaderTest, AFailureIsTriedAgainSoonAndKeepsWhatWasRead) {
  Start();
  EXPECT_EQ(ClientCa(), "(not read)");
  api_.SetConfigMap(ConfigMap({{"client-ca-file", "first"}}));
  Advance(absl::Seconds(2));
  EXPECT_EQ(ClientCa(), "first");
  api_.SetConfigMap(absl::UnavailableError("no API server"));
  Advance(absl::Minutes(2));
  EXPECT_EQ(ClientCa(), "first");
  // No storm of calls while it fails.
  const int before = api_.config_map_reads();
  for (int i = 0; i < 60; ++i) Advance(absl::Seconds(1));
  EXPECT_LE(api_.config_map_reads() - before, 31);
}

}  // namespace
}  // namespace outrigger::controller::adapter
