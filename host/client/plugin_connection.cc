// SPDX-License-Identifier: Apache-2.0
#include "host/client/plugin_connection.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

#include "host/base/status.h"
#include "host/client/answer_check.h"

namespace outrigger::host {
namespace {

// A remote plugin whose health is not answered that often may have moved: it is dialled anew, and
// its name looked up again.
constexpr int kProbesBeforeRedial = 3;

absl::Status Unreachable(absl::string_view plugin, absl::string_view why) {
  absl::Status status = absl::UnavailableError(absl::StrCat("plugin ", plugin, ": ", why));
  MarkPluginUnreachable(status);
  return status;
}

std::string SinceText(absl::Time since) {
  return absl::StrCat("since ", absl::FormatTime(absl::RFC3339_sec, since, absl::UTCTimeZone()));
}

}  // namespace

PluginConnection::PluginConnection(PluginAddress address, Environment environment, Options options)
    : address_(std::move(address)),
      env_(std::move(environment)),
      options_(options),
      logger_(env_.logger.With({{"plugin", address_.name}, {"address", address_.target}})),
      backoff_(options.backoff, env_.seed),
      breaker_(env_.clock, options.breaker),
      since_(env_.clock.WallNow()) {}

// ---- connecting -----------------------------------------------------------------------------

Task<void> PluginConnection::Run(std::shared_ptr<PluginConnection> self) {
  while (!self->stopping_) {
    co_await self->Dial();
    if (self->ready()) co_await self->WatchConnection();
    if (!self->stopping_) co_await self->WaitToRedial();
  }
  self->channel_.reset();
}

void PluginConnection::Stop() {
  stopping_ = true;
  if (channel_ != nullptr) channel_->CancelAll();
  SetState(PluginState::kUnavailable, "stopped");
  WakeWaiters();
  wake_.Notify();
  probe_now_.Notify();
}

Task<void> PluginConnection::Dial() {
  if (address_.is_unix()) {
    dialled_socket_ = SocketIdentity(address_.socket_path);
    if (dialled_socket_.empty()) {
      OnDialFailed(PluginState::kUnavailable,
                   absl::NotFoundError(absl::StrCat("no socket at ", address_.socket_path)));
      co_return;
    }
  }
  auto channel = env_.connect(address_);
  if (!channel.ok()) {
    OnDialFailed(PluginState::kUnavailable, channel.status());
    co_return;
  }
  channel_ = *channel;  // so that Stop() finds it
  scaler::v1::DescribeRequest request;
  request.add_revisions(1);
  auto described = co_await (*channel)->Describe(
      std::move(request), Deadline::After(env_.clock, options_.dial_timeout));
  if (stopping_) co_return;
  if (!described.ok()) {
    const bool refused = absl::IsUnimplemented(described.status());
    OnDialFailed(refused ? PluginState::kRefused : PluginState::kUnavailable,
                 Annotate(described.status(), "Describe"));
  } else if (absl::Status check = CheckDescription(*described); !check.ok()) {
    OnDialFailed(PluginState::kRefused, check);
  } else {
    OnDescribed(*std::move(channel), *std::move(described));
  }
}

void PluginConnection::OnDescribed(std::shared_ptr<PluginChannel> channel,
                                   scaler::v1::DescribeResponse described) {
  channel_ = std::move(channel);
  connected_at_ = env_.clock.SteadyNow();
  redial_ = false;
  breaker_.Reset();
  const bool says_no_batch = described.has_capabilities() && !described.capabilities().batch();
  lacks_batch_ = says_no_batch;
  description_ = std::move(described);
  logger_.Info("plugin connected", {{"version", description_->version()}});
  SetState(PluginState::kReady, "");
  env_.on_change(*this, true);
}

void PluginConnection::OnDialFailed(PluginState state, const absl::Status& why) {
  channel_.reset();
  const std::string reason = host::Describe(why);
  // Said once per reason, not once per dial.
  if (state_ != state || reason_ != reason) {
    logger_.Warning("plugin cannot be reached", {{"reason", reason}});
  }
  SetState(state, reason);
}

Task<void> PluginConnection::WatchConnection() {
  while (!stopping_ && !redial_ && channel_->Ready()) {
    co_await wake_.WaitUntil(env_.clock, env_.clock.SteadyNow() + options_.look);
  }
  if (!stopping_) OnConnectionLost();
}

void PluginConnection::OnConnectionLost() {
  backoff_.ConnectionEnded(env_.clock.SteadyNow() - connected_at_);
  if (redial_) channel_->CancelAll();
  channel_.reset();  // calls under way keep it until they have ended
  logger_.Warning("connection to plugin lost");
  SetState(PluginState::kUnavailable, redial_ ? "no answer, dialling anew" : "connection lost");
  WakeWaiters();
  env_.on_change(*this, false);
}

Task<void> PluginConnection::WaitToRedial() {
  const SteadyTime at = env_.clock.SteadyNow() + backoff_.Next();
  while (!stopping_ && env_.clock.SteadyNow() < at) {
    const SteadyTime next = env_.clock.SteadyNow() + options_.look;
    co_await wake_.WaitUntil(env_.clock, std::min(next, at));
    if (!address_.is_unix()) continue;
    // A new socket is a new process: there is no reason to let it wait for the old one's backoff.
    const std::string socket = SocketIdentity(address_.socket_path);
    if (!socket.empty() && socket != dialled_socket_) {
      backoff_.Reset();
      co_return;
    }
  }
}

// ---- calls ----------------------------------------------------------------------------------

absl::Status PluginConnection::Usable() const {
  if (!ready()) {
    return Unreachable(name(), absl::StrCat("not connected ", SinceText(since_), ": ", reason_));
  }
  if (!channel_->Ready()) return Unreachable(name(), "connection lost");
  if (breaker_.open()) {
    return Unreachable(name(), absl::StrCat("no answer ", SinceText(breaker_.silent_since()),
                                            ", its health check included"));
  }
  return absl::OkStatus();
}

absl::Status PluginConnection::Reachable() const {
  RETURN_IF_ERROR(Usable());
  if (in_flight_ + waiters_.size() >= options_.max_waiting_calls) {
    return Unreachable(name(),
                       absl::StrCat(options_.max_waiting_calls, " calls wait for it already"));
  }
  return absl::OkStatus();
}

Task<absl::StatusOr<PluginConnection::Permit>> PluginConnection::Acquire(Deadline deadline) {
  const std::shared_ptr<PluginConnection> self = shared_from_this();
  const absl::Status reachable = Reachable();
  if (!reachable.ok()) wake_.Notify();  // a lost connection is looked at now
  CO_RETURN_IF_ERROR(reachable);
  const uint32_t limit = ConcurrentCalls();
  if (in_flight_ < limit) {
    ++in_flight_;
    co_return Permit(self, channel_);
  }
  auto waiter = std::make_shared<Waiter>();
  waiters_.push_back(waiter);
  co_await waiter->woken.WaitUntil(env_.clock, deadline.time());
  // Release() takes the waiter off the list and leaves its own place to it.
  const auto listed = std::find(waiters_.begin(), waiters_.end(), waiter);
  const bool has_place = listed == waiters_.end();
  if (!has_place) waiters_.erase(listed);
  Permit permit(has_place ? self : nullptr, channel_);
  CO_RETURN_IF_ERROR(Usable());
  if (!has_place) {
    co_return Unreachable(name(), absl::StrCat("no place among ", limit, " calls in time"));
  }
  co_return permit;
}

uint32_t PluginConnection::ConcurrentCalls() const {
  const uint32_t announced = description_->limits().max_concurrent_calls();
  return announced == 0 ? options_.max_concurrent_calls
                        : std::min(announced, options_.max_concurrent_calls);
}

void PluginConnection::Release() {
  if (waiters_.empty()) {
    --in_flight_;
    return;
  }
  waiters_.front()->woken.Notify();
  waiters_.pop_front();
}

void PluginConnection::WakeWaiters() {
  // They stay listed, so each leaves by itself and finds out why.
  for (const std::shared_ptr<Waiter>& waiter : waiters_) waiter->woken.Notify();
}

// ---- breaker --------------------------------------------------------------------------------

void PluginConnection::OnAnswer(const std::shared_ptr<PluginChannel>& channel) {
  if (IsCurrent(channel)) breaker_.OnAnswer();
}

void PluginConnection::OnSilence(const std::shared_ptr<PluginChannel>& channel) {
  if (stopping_ || !IsCurrent(channel)) return;
  if (breaker_.OnSilence()) env_.tasks.Spawn(MakeCheck(channel));
}

Task<void> PluginConnection::MakeCheck(std::shared_ptr<PluginChannel> channel) {
  const std::shared_ptr<PluginConnection> self = shared_from_this();
  const bool answered =
      co_await channel->AnswersCheck(Deadline::After(env_.clock, options_.check_timeout));
  if (stopping_ || !IsCurrent(channel) || !breaker_.OnCheck(answered)) co_return;
  logger_.Warning("plugin does not answer; its triggers fail at once until it does");
  if (env_.on_breaker) env_.on_breaker(name(), true);
  WakeWaiters();
  co_await Probe(std::move(channel));
}

Task<void> PluginConnection::Probe(std::shared_ptr<PluginChannel> channel) {
  for (int probes = 1;; ++probes) {
    co_await probe_now_.WaitUntil(env_.clock, env_.clock.SteadyNow() + breaker_.probe_delay());
    if (stopping_ || !IsCurrent(channel)) break;
    const bool answered =
        co_await channel->AnswersCheck(Deadline::After(env_.clock, options_.check_timeout));
    if (stopping_ || !IsCurrent(channel)) break;
    if (breaker_.OnProbe(answered)) {
      logger_.Info("plugin answers again");
      env_.on_change(*this, true);
      break;
    }
    if (probes >= kProbesBeforeRedial && !address_.is_unix()) {
      redial_ = true;
      wake_.Notify();
      break;
    }
  }
  if (env_.on_breaker) env_.on_breaker(name(), false);
}

// ---- state ----------------------------------------------------------------------------------

void PluginConnection::SetState(PluginState state, std::string reason) {
  if (state_ != state) since_ = env_.clock.WallNow();
  state_ = state;
  reason_ = std::move(reason);
}

PluginStatus PluginConnection::Status() const {
  PluginStatus status;
  status.name = name();
  status.address = address_.target;
  status.state = state_;
  status.reason = reason_;
  status.since = since_;
  if (ready() && breaker_.open()) {
    status.state = PluginState::kUnavailable;
    status.reason = "does not answer calls nor its health check";
    status.since = breaker_.silent_since();
  }
  if (description_) status.version = description_->version();
  status.waiting_calls = in_flight_ + static_cast<uint32_t>(waiters_.size());
  return status;
}

}  // namespace outrigger::host
