// SPDX-License-Identifier: Apache-2.0
#include "plugins/redis/redis_scaler.h"

#include <absl/strings/str_cat.h>

#include <boost/asio/post.hpp>
#include <utility>

#include "host/base/status.h"
#include "host/kit/connection_pool.h"
#include "plugins/redis/client.h"
#include "plugins/redis/redis_trigger.h"

namespace outrigger::plugins::redis {
namespace {

using host::kit::Reading;
using host::kit::ReadRequest;

constexpr absl::Duration kIdleTime = absl::Seconds(60);
constexpr absl::Duration kSweepInterval = absl::Seconds(30);

// Answers an integer, or the name of a type that has no size. One script, so that a key that
// changes its type between two commands gives no false error.
constexpr absl::string_view kSizeScript = R"(local kind = redis.call('TYPE', KEYS[1]).ok
if kind == 'none' then return 0 end
if kind == 'list' then return redis.call('LLEN', KEYS[1]) end
if kind == 'set' then return redis.call('SCARD', KEYS[1]) end
if kind == 'zset' then return redis.call('ZCARD', KEYS[1]) end
if kind == 'hash' then return redis.call('HLEN', KEYS[1]) end
return kind)";

std::string SizeCommand(const std::string& key) {
  return FormatCommand({"EVAL", kSizeScript, "1", key});
}

absl::StatusOr<int64_t> SizeFrom(const RedisTrigger& trigger, const Reply& reply) {
  const std::string address = absl::StrCat("redis ", trigger.server.address());
  switch (reply.type) {
    case Reply::Type::kInteger:
      return reply.integer;
    case Reply::Type::kError:
      return host::Annotate(FromRedisError(reply.text), address);
    case Reply::Type::kString:
      return absl::FailedPreconditionError(
          absl::StrCat(address, ": key ", host::kit::Quoted(trigger.key),
                       ": want a list, set, zset or hash, got a ", host::kit::Quoted(reply.text)));
    default:
      return absl::InternalError(
          absl::StrCat(address, ": want an integer, got ", TypeName(reply.type)));
  }
}

absl::StatusOr<Reading> ReadingFrom(const RedisTrigger& trigger, const Reply& reply) {
  ASSIGN_OR_RETURN(const int64_t size, SizeFrom(trigger, reply));
  Reading reading;
  reading.active = size > trigger.activation;
  scaler::v1::MetricValue& value = reading.values.emplace_back();
  value.set_name(trigger.metric_name);
  value.set_value(static_cast<double>(size));
  return reading;
}

}  // namespace

// Everything that lives on the executor. Kept by the scaler and by posted work.
class RedisScaler::Connections : public std::enable_shared_from_this<Connections> {
 public:
  explicit Connections(const host::kit::PluginContext& context)
      : clock_(context.clock),
        executor_(context.executor),
        logger_(context.logger),
        resolver_(clock_, executor_) {}

  ~Connections() {
    if (sweep_timer_) clock_.CancelTimer(*sweep_timer_);
    for (const auto& client : pool_.TakeIdle(host::SteadyTime::InfiniteFuture())) client->Close();
  }

  void Read(std::vector<ReadRequest> requests) {
    boost::asio::post(executor_,
                      [self = shared_from_this(), moved = std::move(requests)]() mutable {
                        for (ReadRequest& request : moved) self->Ask(std::move(request));
                        self->ScheduleSweep();
                      });
  }

 private:
  void Ask(ReadRequest request) {
    const auto trigger = std::static_pointer_cast<const RedisTrigger>(request.trigger);
    const std::shared_ptr<Client> client = pool_.Get(
        trigger->connection_key, clock_.SteadyNow(),
        [&] { return Client::Make({clock_, executor_, resolver_, logger_}, trigger->server); });
    client->Ask(SizeCommand(trigger->key), request.deadline,
                [trigger, done = std::move(request.done)](absl::StatusOr<ReplyPtr> reply) {
                  if (!reply.ok()) return done(reply.status());
                  done(ReadingFrom(*trigger, **reply));
                });
  }

  void ScheduleSweep() {
    if (sweep_timer_) return;
    std::weak_ptr<Connections> weak = weak_from_this();
    sweep_timer_ =
        clock_.AddTimer(clock_.SteadyNow() + kSweepInterval, [weak, executor = executor_] {
          boost::asio::post(executor, [weak] {
            if (const auto self = weak.lock()) self->Sweep();
          });
        });
  }

  void Sweep() {
    sweep_timer_.reset();
    for (const auto& client : pool_.TakeIdle(clock_.SteadyNow() - kIdleTime)) client->Close();
    if (pool_.size() > 0) ScheduleSweep();
  }

  host::Clock& clock_;
  const host::Executor executor_;
  const host::Logger logger_;
  Resolver resolver_;
  host::kit::ConnectionPool<Client> pool_;
  std::optional<host::Clock::TimerId> sweep_timer_;
};

RedisScaler::RedisScaler(const host::kit::PluginContext& context)
    : connections_(std::make_shared<Connections>(context)) {}
RedisScaler::~RedisScaler() = default;

const host::kit::TriggerSchema& RedisScaler::schema() const { return RedisSchema(); }

std::shared_ptr<const host::kit::ParsedTrigger> RedisScaler::Parse(
    const host::kit::Parameters& parameters, const scaler::v1::Trigger&,
    host::kit::Violations& violations) const {
  return ParseRedisTrigger(parameters, violations);
}

std::vector<scaler::v1::MetricSpec> RedisScaler::Specs(
    const host::kit::ParsedTrigger& trigger) const {
  const auto& redis = static_cast<const RedisTrigger&>(trigger);
  scaler::v1::MetricSpec spec;
  spec.set_name(redis.metric_name);
  spec.set_target(static_cast<double>(redis.target));
  return {spec};
}

void RedisScaler::Read(std::vector<ReadRequest> requests) {
  connections_->Read(std::move(requests));
}

}  // namespace outrigger::plugins::redis
