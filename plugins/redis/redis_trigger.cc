// SPDX-License-Identifier: Apache-2.0
#include "plugins/redis/redis_trigger.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "host/kit/connection_pool.h"
#include "host/kit/value_syntax.h"

namespace outrigger::plugins::redis {
namespace {

using host::Secret;
using host::kit::Parameters;
using host::kit::ParameterSpec;
using host::kit::ParameterType;
using host::kit::Quoted;
using host::kit::Source;
using host::kit::TriggerSchema;
using host::kit::Violations;

constexpr Source kM = Source::kMetadata;
constexpr Source kE = Source::kEnvironment;
constexpr Source kA = Source::kAuthentication;

std::vector<ParameterSpec> ConnectionParameters() {
  return {
      {.name = "address",
       .aliases = {"addresses"},
       .type = ParameterType::kStringList,
       .connection = true,
       .sources = {kM, kA, kE},
       .description = "The server as host:port; of several the first is used."},
      {.name = "host",
       .aliases = {"hosts"},
       .type = ParameterType::kStringList,
       .connection = true,
       .sources = {kM, kE, kA},
       .description = "With port, another way to give the address."},
      {.name = "port",
       .aliases = {"ports"},
       .type = ParameterType::kStringList,
       .connection = true,
       .sources = {kM, kE, kA},
       .description = "As many as hosts."},
      {.name = "username",
       .connection = true,
       .sources = {kM, kE, kA},
       .description = "ACL user; without it the default user."},
      {.name = "password",
       .secret = true,
       .connection = true,
       .sources = {kM, kE, kA},
       .description = "Password of the user."},
      {.name = "databaseIndex",
       .type = ParameterType::kInteger,
       .default_value = "0",
       .connection = true,
       .description = "Number of the database."},
      {.name = "enableTLS",
       .type = ParameterType::kBoolean,
       .default_value = "false",
       .connection = true,
       .description = "Whether to use TLS."},
      {.name = "tls",
       .enum_values = {"enable", "disable"},
       .connection = true,
       .sources = {kA},
       .description = "The same from the authentication; not both."},
      {.name = "unsafeSsl",
       .type = ParameterType::kBoolean,
       .default_value = "false",
       .connection = true,
       .description = "Do not check the server's certificate."},
      {.name = "ca",
       .connection = true,
       .sources = {kA},
       .description = "CA certificate (PEM), trusted beside the system's."},
      {.name = "cert",
       .aliases = {"Cert"},
       .connection = true,
       .sources = {kA},
       .description = "Client certificate (PEM)."},
      {.name = "key",
       .secret = true,
       .connection = true,
       .sources = {kA},
       .description = "Its private key (PEM)."},
      {.name = "keyPassword",
       .secret = true,
       .connection = true,
       .sources = {kA},
       .description = "Password of the private key."},
  };
}

std::vector<ParameterSpec> ListParameters() {
  return {
      {.name = "listName",
       .required = true,
       .description = "The key whose size is measured: a list, set, sorted set or hash."},
      {.name = "listLength",
       .type = ParameterType::kInteger,
       .default_value = "5",
       .description = "Target: items per replica, above 0."},
      {.name = "activationListLength",
       .type = ParameterType::kInteger,
       .default_value = "0",
       .description = "The workload runs while there are more items than this."},
  };
}

TriggerSchema MakeSchema() {
  TriggerSchema schema;
  schema.type = "redis";
  schema.description = "Number of items in a key of one Redis server.";
  schema.parameters = ConnectionParameters();
  for (ParameterSpec& parameter : ListParameters()) {
    schema.parameters.push_back(std::move(parameter));
  }
  return schema;
}

std::string JoinHostPort(const std::string& host, const std::string& port) {
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return is_ipv6 ? absl::StrCat("[", host, "]:", port) : absl::StrCat(host, ":", port);
}

// address entries first, then host and port joined; host without port counts for nothing.
std::vector<std::string> Addresses(const Parameters& parameters, Violations& violations) {
  std::vector<std::string> addresses = parameters.List("address");
  const std::vector<std::string>& hosts = parameters.List("host");
  const std::vector<std::string>& ports = parameters.List("port");
  if (hosts.empty() || ports.empty()) return addresses;
  if (hosts.size() != ports.size()) {
    violations.Add("host", "as many hosts as ports",
                   absl::StrCat(hosts.size(), " and ", ports.size()));
    return addresses;
  }
  for (size_t i = 0; i < hosts.size(); ++i) {
    addresses.push_back(JoinHostPort(hosts[i], ports[i]));
  }
  return addresses;
}

bool SplitAddress(const std::string& address, ServerIdentity& server) {
  const size_t colon = address.rfind(':');
  uint32_t port = 0;
  if (colon == std::string::npos || !absl::SimpleAtoi(address.substr(colon + 1), &port)) {
    return false;
  }
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string::npos) {
    return false;
  }
  server.host = std::move(host);
  server.port = static_cast<uint16_t>(port);
  return !server.host.empty() && port > 0 && port <= 65535;
}

void ReadServer(const Parameters& parameters, Violations& violations, ServerIdentity& server) {
  const size_t before = violations.list().size();
  const std::vector<std::string> addresses = Addresses(parameters, violations);
  if (violations.list().size() > before) return;
  if (addresses.empty() || addresses[0].empty()) {
    violations.Add("address", "host:port here, or in host and port",
                   parameters.Nothing({"address", "host", "port"}));
  } else if (!SplitAddress(addresses[0], server)) {
    violations.Add("address", "host:port", Quoted(addresses[0]));
  }
}

bool WantsTls(const Parameters& parameters, Violations& violations) {
  if (parameters.SourceOf("enableTLS") && parameters.SourceOf("tls")) {
    violations.Add("tls", "only one of enableTLS (metadata) and tls (authentication)", "both");
    return false;
  }
  const std::string& tls = parameters.String("tls");
  // The items of a list were checked one by one: two legal words came through.
  if (tls.find(',') != std::string::npos) {
    violations.Add("tls", "one of enable, disable", Quoted(tls));
  }
  return parameters.Boolean("enableTLS") || tls == "enable";
}

void ReadTls(const Parameters& parameters, Violations& violations, ServerIdentity& server) {
  if (!WantsTls(parameters, violations)) return;
  TlsConfig tls;
  tls.ca = parameters.String("ca");
  tls.certificate = parameters.String("cert");
  tls.key = Secret(parameters.String("key"));
  tls.key_password = Secret(parameters.String("keyPassword"));
  tls.verify = !parameters.Boolean("unsafeSsl");
  if (const std::optional<TlsProblem> problem = CheckTls(tls)) {
    violations.Add(problem->field, problem->wanted, "a value that is not shown");
  }
  server.tls = std::move(tls);
}

}  // namespace

std::string ServerIdentity::address() const { return JoinHostPort(host, absl::StrCat(port)); }

std::string ServerIdentity::fingerprint() const {
  const TlsConfig t = tls.value_or(TlsConfig{});
  return host::kit::ConnectionFingerprint({host, absl::StrCat(port), username, password.Reveal(),
                                           absl::StrCat(database), tls ? "tls" : "", t.ca,
                                           t.certificate, t.key.Reveal(), t.key_password.Reveal(),
                                           t.verify ? "verify" : ""});
}

const TriggerSchema& RedisSchema() {
  static const TriggerSchema& schema = *new TriggerSchema(MakeSchema());
  return schema;
}

std::shared_ptr<const RedisTrigger> ParseRedisTrigger(const Parameters& parameters,
                                                      Violations& violations) {
  auto trigger = std::make_shared<RedisTrigger>();
  ReadServer(parameters, violations, trigger->server);
  ReadTls(parameters, violations, trigger->server);
  trigger->server.username = parameters.String("username");
  trigger->server.password = Secret(parameters.String("password"));
  trigger->server.database = std::max<int64_t>(0, parameters.Integer("databaseIndex"));
  trigger->key = parameters.String("listName");
  trigger->target = parameters.Integer("listLength");
  trigger->activation = parameters.Integer("activationListLength");
  // KEDA takes it, and then the API server refuses the HPA.
  if (parameters.Has("listLength") && trigger->target <= 0) {
    violations.Add("listLength", "an integer > 0", Quoted(parameters.Text("listLength")));
  }
  trigger->metric_name = host::kit::NormaliseMetricName(absl::StrCat("redis-", trigger->key));
  trigger->connection_key = trigger->server.fingerprint();
  return trigger;
}

}  // namespace outrigger::plugins::redis
