// SPDX-License-Identifier: Apache-2.0
// outrigger-scaler-redis: answers for triggers of type redis.
#include "host/base/real_clock.h"
#include "host/kit/serve.h"
#include "plugins/redis/redis_scaler.h"

int main(int argc, char** argv) {
  using outrigger::host::kit::PluginContext;
  using outrigger::host::kit::TriggerScaler;
  outrigger::host::RealClock clock;
  outrigger::host::kit::PluginOptions options;
  options.name = "outrigger-scaler-redis";
  options.description = "Scales by what waits in Redis.";
  options.make_scalers = [](const PluginContext& context) {
    std::vector<std::unique_ptr<TriggerScaler>> scalers;
    scalers.push_back(std::make_unique<outrigger::plugins::redis::RedisScaler>(context));
    return scalers;
  };
  return outrigger::host::kit::ServePlugin(std::move(options), argc, argv, clock);
}
