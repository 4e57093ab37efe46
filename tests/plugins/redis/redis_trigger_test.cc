// SPDX-License-Identifier: Apache-2.0
// The parameter rules of type redis, row by row. Source: spec/scaler-redis.md sections 2 and 3.
#include "plugins/redis/redis_trigger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/certificates.h"

namespace outrigger::plugins::redis {
namespace {

using Map = std::map<std::string, std::string>;

struct Parsed {
  std::shared_ptr<const RedisTrigger> trigger;
  std::string violations;
};

Parsed Parse(const Map& metadata, const Map& environment = {}, const Map& authentication = {}) {
  scaler::v1::Trigger trigger;
  trigger.set_type("redis");
  trigger.mutable_metadata()->insert(metadata.begin(), metadata.end());
  trigger.mutable_environment()->insert(environment.begin(), environment.end());
  trigger.mutable_authentication()->insert(authentication.begin(), authentication.end());
  host::kit::Violations violations;
  const auto parameters = host::kit::ParseParameters(RedisSchema(), trigger, violations);
  auto parsed = ParseRedisTrigger(parameters, violations);
  return {std::move(parsed), violations.ToString()};
}

struct Case {
  const char* name;
  Map metadata;
  Map environment;
  Map authentication;
  const char* address;     // of the server; "" when there are violations
  const char* violations;  // all of them
};

class RedisParametersTest : public testing::TestWithParam<Case> {};

TEST_P(RedisParametersTest, AddressAndViolations) {
  const Case& row = GetParam();
  Map metadata = row.metadata;
  metadata.insert({"listName", "orders"});
  const Parsed parsed = Parse(metadata, row.environment, row.authentication);
  EXPECT_EQ(parsed.violations, row.violations);
  if (parsed.violations.empty()) {
    EXPECT_EQ(parsed.trigger->server.address(), row.address);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Inputs, RedisParametersTest,
    testing::ValuesIn<Case>({
        {"Address", {{"address", "a:1"}}, {}, {}, "a:1", ""},
        {"AddressAlias", {{"addresses", "a:1"}}, {}, {}, "a:1", ""},
        {"FirstOfSeveral", {{"address", "a:1, b:2"}}, {}, {}, "a:1", ""},
        {"Trimmed", {{"address", "  a:1 "}}, {}, {}, "a:1", ""},
        {"HostAndPort", {{"host", "a"}, {"port", "1"}}, {}, {}, "a:1", ""},
        {"HostsAndPorts", {{"hosts", "a,b"}, {"ports", "1,2"}}, {}, {}, "a:1", ""},
        {"AddressBeforeHost",
         {{"address", "x:1"}, {"host", "::1"}, {"port", "2"}},
         {},
         {},
         "x:1",
         ""},
        {"Ipv6HostGetsBrackets", {{"host", "::1"}, {"port", "2"}}, {}, {}, "[::1]:2", ""},
        {"Ipv6Address", {{"address", "[::1]:2"}}, {}, {}, "[::1]:2", ""},
        {"HostWithoutPortNextToAddress", {{"address", "x:1"}, {"host", "h"}}, {}, {}, "x:1", ""},
        {"HostWithoutPort",
         {{"host", "h"}},
         {},
         {},
         "",
         "address: want host:port here, or in host and port, got nothing"},
        {"Nothing",
         {},
         {},
         {},
         "",
         "address: want host:port here, or in host and port, got nothing"},
        {"EmptyVariable",
         {{"addressFromEnv", "REDIS"}},
         {},
         {},
         "",
         "address: want host:port here, or in host and port, got nothing (addressFromEnv: "
         "\"REDIS\" is missing or empty in the target's container)"},
        {"FirstIsEmpty",
         {{"address", ",x:1"}},
         {},
         {},
         "",
         "address: want host:port here, or in host and port, got nothing"},
        {"OtherCounts",
         {{"host", "a,b"}, {"port", "1"}},
         {},
         {},
         "",
         "host: want as many hosts as ports, got 2 and 1"},
        {"NoPort",
         {{"address", "localhost"}},
         {},
         {},
         "",
         "address: want host:port, got \"localhost\""},
        {"PortOutOfRange",
         {{"address", "a:65536"}},
         {},
         {},
         "",
         "address: want host:port, got \"a:65536\""},
        {"Ipv6WithoutBrackets",
         {{"address", "::1:2"}},
         {},
         {},
         "",
         "address: want host:port, got \"::1:2\""},
        {"AddressFromAuthenticationBeforeEnvironment",
         {},
         {{"address", "e:1"}},
         {{"addresses", "a:1"}},
         "a:1",
         ""},
        {"AddressFromEnvironment", {}, {{"address", "e:1"}}, {}, "e:1", ""},
        {"HostFromEnvironmentBeforeAuthentication",
         {{"port", "1"}},
         {{"host", "e"}},
         {{"host", "a"}},
         "e:1",
         ""},
        {"EmptyMetadataFallsThrough", {{"address", " "}}, {{"address", "e:1"}}, {}, "e:1", ""},
        {"EnableTlsNotBoolean",
         {{"address", "a:1"}, {"enableTLS", "yes"}},
         {},
         {},
         "",
         "enableTLS: want true or false, got \"yes\""},
        {"TlsUnknownWord",
         {{"address", "a:1"}},
         {},
         {{"tls", "Enable"}},
         "",
         "tls: want one of enable, disable, got \"Enable\""},
        {"TlsTwoWords",
         {{"address", "a:1"}},
         {},
         {{"tls", "enable,disable"}},
         "",
         "tls: want one of enable, disable, got \"enable,disable\""},
        {"TlsTwice",
         {{"address", "a:1"}, {"enableTLS", "false"}},
         {},
         {{"tls", "disable"}},
         "",
         "tls: want only one of enableTLS (metadata) and tls (authentication), got both"},
        {"ListLengthZero",
         {{"address", "a:1"}, {"listLength", "0"}},
         {},
         {},
         "",
         "listLength: want an integer > 0, got \"0\""},
        {"ListLengthNegative",
         {{"address", "a:1"}, {"listLength", "-5"}},
         {},
         {},
         "",
         "listLength: want an integer > 0, got \"-5\""},
        {"ListLengthFraction",
         {{"address", "a:1"}, {"listLength", "5.0"}},
         {},
         {},
         "",
         "listLength: want an integer, got \"5.0\""},
        {"ActivationNegative",
         {{"address", "a:1"}, {"activationListLength", "-1"}},
         {},
         {},
         "a:1",
         ""},
        {"DatabaseNotANumber",
         {{"address", "a:1"}, {"databaseIndex", "x"}},
         {},
         {},
         "",
         "databaseIndex: want an integer, got \"x\""},
        {"CertificatesWithoutTlsAreNotLookedAt",
         {{"address", "a:1"}},
         {},
         {{"ca", "junk"}},
         "a:1",
         ""},
        {"CaIsNoCertificate",
         {{"address", "a:1"}, {"enableTLS", "T"}},
         {},
         {{"ca", "junk"}},
         "",
         "ca: want a certificate in PEM, got a value that is not shown"},
    }),
    [](const testing::TestParamInfo<Case>& info) { return std::string(info.param.name); });

TEST(RedisTriggerTest, DefaultsOfTheSheet) {
  const Parsed parsed = Parse({{"address", "a:1"}, {"listName", "a/b.c:d%e(f)"}});
  ASSERT_EQ(parsed.violations, "");
  EXPECT_EQ(parsed.trigger->target, 5);
  EXPECT_EQ(parsed.trigger->activation, 0);
  EXPECT_EQ(parsed.trigger->server.database, 0);
  EXPECT_FALSE(parsed.trigger->server.tls.has_value());
  EXPECT_EQ(parsed.trigger->metric_name, "redis-a-b-c-d-e-f-");
}

TEST(RedisTriggerTest, PasswordComesFromMetadataThenEnvironmentThenAuthentication) {
  const Map base = {{"address", "a:1"}, {"listName", "orders"}};
  Map metadata = base;
  metadata["password"] = "m";
  const Map env = {{"password", "e"}};
  const Map auth = {{"password", "a"}};
  EXPECT_EQ(Parse(metadata, env, auth).trigger->server.password.Reveal(), "m");
  EXPECT_EQ(Parse(base, env, auth).trigger->server.password.Reveal(), "e");
  EXPECT_EQ(Parse(base, {}, auth).trigger->server.password.Reveal(), "a");
}

TEST(RedisTriggerTest, AConnectionIsSharedByEndpointAndIdentityOnly) {
  const auto key = [](const Map& metadata, const Map& authentication) {
    Map all = metadata;
    all.insert({"listName", "x"});
    return Parse(all, {}, authentication).trigger->connection_key;
  };
  const std::string base = key({{"address", "a:1"}}, {{"password", "p"}});
  EXPECT_EQ(key({{"host", "a"}, {"port", "1"}, {"listName", "y"}, {"listLength", "9"}},
                {{"password", "p"}}),
            base);
  EXPECT_NE(key({{"address", "a:2"}}, {{"password", "p"}}), base);
  EXPECT_NE(key({{"address", "a:1"}}, {{"password", "q"}}), base);
  EXPECT_NE(key({{"address", "a:1"}, {"username", "u"}}, {{"password", "p"}}), base);
  EXPECT_NE(key({{"address", "a:1"}, {"databaseIndex", "1"}}, {{"password", "p"}}), base);
  EXPECT_NE(key({{"address", "a:1"}, {"enableTLS", "true"}}, {{"password", "p"}}), base);
}

TEST(RedisTriggerTest, AKeyMustFitItsCertificate) {
  const auto ca = *tests::CertificateAuthority::Create("CA");
  const tests::KeyPair one = *ca->Issue({.common_name = "one"});
  const tests::KeyPair two = *ca->Issue({.common_name = "two"});
  const Map metadata = {{"address", "a:1"}, {"listName", "x"}, {"enableTLS", "true"}};
  EXPECT_EQ(Parse(metadata, {}, {{"cert", one.certificate}, {"key", one.key}}).violations, "");
  EXPECT_EQ(Parse(metadata, {}, {{"Cert", one.certificate}, {"key", one.key}}).violations, "");
  EXPECT_EQ(Parse(metadata, {}, {{"cert", one.certificate}, {"key", two.key}}).violations,
            "key: want the private key of cert, got a value that is not shown");
  EXPECT_EQ(Parse(metadata, {}, {{"cert", one.certificate}, {"key", "junk"}}).violations,
            "key: want a private key in PEM that keyPassword opens, got a value that is not shown");
}

}  // namespace
}  // namespace outrigger::plugins::redis
