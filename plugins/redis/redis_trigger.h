// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "host/base/secret.h"
#include "host/kit/parameter.h"
#include "host/kit/trigger_scaler.h"
#include "plugins/redis/transport.h"

namespace outrigger::plugins::redis {

// A server and who we are there: what a connection is shared by.
struct ServerIdentity {
  std::string host;
  uint16_t port = 0;
  std::string username;
  host::Secret password;
  int64_t database = 0;  // 0 and below: the one that a connection starts with
  std::optional<TlsConfig> tls;

  std::string address() const;      // "host:port", for messages
  std::string fingerprint() const;  // of everything above, secrets unreadable
};

// A trigger of type redis: the size of one key.
class RedisTrigger : public host::kit::ParsedTrigger {
 public:
  ServerIdentity server;
  std::string connection_key;  // server.fingerprint(), computed once
  std::string key;             // listName
  int64_t target = 0;          // listLength, items per replica
  int64_t activation = 0;      // active above this many items
  std::string metric_name;     // "redis-" and the key, normalised
};

// Parameters of type redis. Source: spec/scaler-redis.md sections 2 and 3.
const host::kit::TriggerSchema& RedisSchema();

// Null or ignored when there are violations. Pure.
std::shared_ptr<const RedisTrigger> ParseRedisTrigger(const host::kit::Parameters& parameters,
                                                      host::kit::Violations& violations);

}  // namespace outrigger::plugins::redis
