// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "host/kit/serve.h"
#include "host/kit/trigger_scaler.h"

namespace outrigger::plugins::redis {

// The trigger type redis: how many items a list, set, sorted set or hash holds.
//
// Thread-safe. Reads hop to the plugin's executor, where all connections live: one per (address,
// identity), closed after 60 to 90 s without a read.
class RedisScaler : public host::kit::TriggerScaler {
 public:
  explicit RedisScaler(const host::kit::PluginContext& context);
  ~RedisScaler() override;

  const host::kit::TriggerSchema& schema() const override;
  std::shared_ptr<const host::kit::ParsedTrigger> Parse(
      const host::kit::Parameters& parameters, const scaler::v1::Trigger& trigger,
      host::kit::Violations& violations) const override;
  std::vector<scaler::v1::MetricSpec> Specs(const host::kit::ParsedTrigger& trigger) const override;
  void Read(std::vector<host::kit::ReadRequest> requests) override;

 private:
  class Connections;
  const std::shared_ptr<Connections> connections_;
};

}  // namespace outrigger::plugins::redis
