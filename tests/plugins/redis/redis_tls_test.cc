// SPDX-License-Identifier: Apache-2.0
// TLS on both ends of the plugin: to Redis, and of its own TCP port.
#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/certificates.h"
#include "tests/support/plugin/plugin_client.h"
#include "tests/support/plugin/plugin_process.h"
#include "tests/support/redis_server.h"

namespace outrigger::tests {
namespace {

using testing::HasSubstr;

class RedisTlsTest : public testing::Test {
 protected:
  void SetUp() override {
    auto plugin = PluginProcess::Start({.binary = "outrigger-scaler-redis", .tcp = false});
    ASSERT_TRUE(plugin.ok()) << plugin.status();
    plugin_ = *std::move(plugin);
    client_ = std::make_unique<PluginClient>(plugin_->socket_address());
  }

  void StartRedis(bool require_client_certificate) {
    auto redis =
        RedisServer::Start({.tls = true, .require_client_certificate = require_client_certificate});
    ASSERT_TRUE(redis.ok()) << redis.status();
    redis_ = *std::move(redis);
  }

  std::string Ask(std::map<std::string, std::string> metadata,
                  const std::map<std::string, std::string>& secrets) {
    metadata.insert({"address", absl::StrCat("localhost:", redis_->port())});
    metadata.insert({"listName", "orders"});
    const auto answer = client_->Metrics(MakeTrigger("redis", metadata, secrets));
    return answer.ok() ? absl::StrCat(answer->values(0).value()) : answer.status().ToString();
  }

  std::unique_ptr<PluginProcess> plugin_;
  std::unique_ptr<PluginClient> client_;
  std::unique_ptr<RedisServer> redis_;
};

TEST_F(RedisTlsTest, TrustsTheGivenCaAndTheNameOfTheServer) {
  StartRedis(false);
  EXPECT_EQ(Ask({{"enableTLS", "true"}}, {{"ca", redis_->ca()}}), "0");
  EXPECT_EQ(Ask({}, {{"tls", "enable"}, {"ca", redis_->ca()}}), "0");
  EXPECT_EQ(Ask({{"address", redis_->address()}, {"enableTLS", "1"}}, {{"ca", redis_->ca()}}), "0")
      << "by IP address";
}

TEST_F(RedisTlsTest, RefusesAStrangersCertificateUnlessToldNotTo) {
  StartRedis(false);
  EXPECT_THAT(Ask({{"enableTLS", "true"}}, {}), HasSubstr("UNAVAILABLE: redis localhost:"));
  EXPECT_THAT(Ask({{"enableTLS", "true"}}, {}),
              HasSubstr("TLS handshake: certificate verify failed"));
  EXPECT_EQ(Ask({{"enableTLS", "true"}, {"unsafeSsl", "true"}}, {}), "0");
  EXPECT_THAT(Ask({}, {}), HasSubstr("UNAVAILABLE")) << "plain text to a TLS port";
}

TEST_F(RedisTlsTest, ShowsAClientCertificate) {
  StartRedis(true);
  EXPECT_EQ(Ask({{"enableTLS", "true"}}, {{"ca", redis_->ca()},
                                          {"cert", redis_->client_certificate().certificate},
                                          {"key", redis_->client_certificate().key}}),
            "0");
  EXPECT_THAT(Ask({{"enableTLS", "true"}}, {{"ca", redis_->ca()}}), HasSubstr("UNAVAILABLE"));
}

TEST_F(RedisTlsTest, BadCertificatesAreViolationsThatShowNothing) {
  StartRedis(false);
  EXPECT_THAT(Ask({{"enableTLS", "true"}}, {{"ca", "canary"}}),
              HasSubstr("ca: want a certificate in PEM, got a value that is not shown"));
  EXPECT_THAT(Ask({{"enableTLS", "true"}},
                  {{"cert", redis_->ca()}, {"key", redis_->client_certificate().key}}),
              HasSubstr("key: want the private key of cert, got a value that is not shown"));
}

TEST(PluginTcpTest, WithMutualTlsOnlyAKnownClientGetsIn) {
  const auto ca = *CertificateAuthority::Create("test CA");
  const auto other_ca = *CertificateAuthority::Create("other CA");
  const KeyPair server = *ca->Issue({.common_name = "plugin", .dns_names = {"localhost"}});
  const TempDir dir;
  const std::string cert = dir.Write("tls.crt", server.certificate);
  const std::string key = dir.Write("tls.key", server.key);
  const std::string client_ca = dir.Write("ca.crt", ca->certificate());
  auto plugin = PluginProcess::Start({.binary = "outrigger-scaler-redis",
                                      .flags = {"--tls-cert-file", cert, "--tls-key-file", key,
                                                "--tls-client-ca-file", client_ca}});
  ASSERT_TRUE(plugin.ok()) << plugin.status();
  const std::string address = (*plugin)->tcp_address();
  PluginClient known(address, ca->certificate(), *ca->Issue({.common_name = "operator"}));
  EXPECT_TRUE(known.Describe().ok()) << known.Describe().status();
  PluginClient stranger(address, ca->certificate(), *other_ca->Issue({.common_name = "stranger"}));
  EXPECT_FALSE(stranger.Describe().ok());
  PluginClient nobody(address, ca->certificate(), KeyPair());
  EXPECT_FALSE(nobody.Describe().ok());
  PluginClient plain(address);
  EXPECT_FALSE(plain.Describe().ok());
}

}  // namespace
}  // namespace outrigger::tests
