// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "host/base/clock.h"
#include "host/base/deadline.h"
#include "host/base/event.h"
#include "host/base/logging.h"
#include "host/base/task.h"
#include "host/base/task_group.h"
#include "host/client/backoff.h"
#include "host/client/breaker.h"
#include "host/client/plugin_channel.h"
#include "host/client/scaler_service.h"

namespace outrigger::host {

// Keeps the connection to one plugin: dials it, asks who it is, dials again when it is lost, stops
// asking it when it is silent, and bounds how many calls wait for it. So whatever a plugin does
// holds up its own triggers only.
//
// The directory makes one per plugin, runs Run() and hears of changes; ScalerClient gets its calls'
// permits here. Use from one strand; nothing blocks. Calls keep it alive, also after Stop().
// Source: design.md sections 1 (rule 6), 3 and 5 (bulkheads).
class PluginConnection : public std::enable_shared_from_this<PluginConnection> {
 public:
  struct Options {
    absl::Duration dial_timeout = absl::Seconds(5);  // to connect and to be told who it is
    absl::Duration check_timeout = absl::Seconds(1);
    absl::Duration look = absl::Milliseconds(100);  // at the connection's or the socket's state
    uint32_t max_waiting_calls = 256;               // beyond: refused at once
    uint32_t max_concurrent_calls = 64;             // unless the plugin announces fewer
    Backoff::Options backoff;
    Breaker::Options breaker;
  };
  struct Environment {
    Clock& clock;
    TaskGroup& tasks;  // for health checks
    Logger logger;
    PluginConnector connect;
    uint64_t seed = 0;
    // Connected, gone, described anew, breaker closed (`came_back`).
    std::function<void(PluginConnection& connection, bool came_back)> on_change;
    // For metrics; may be empty.
    std::function<void(const std::string& plugin, bool open)> on_breaker;
  };
  PluginConnection(PluginAddress address, Environment environment, Options options);

  // Ends some time after Stop().
  static Task<void> Run(std::shared_ptr<PluginConnection> self);
  // Ends all calls with CANCELLED.
  void Stop();

  // The right to make one call; given back when it goes.
  class Permit {
   public:
    Permit(std::shared_ptr<PluginConnection> owner, std::shared_ptr<PluginChannel> channel)
        : owner_(std::move(owner)), channel_(std::move(channel)) {}
    Permit(Permit&&) = default;
    Permit& operator=(Permit&&) = delete;
    ~Permit() {
      if (owner_ != nullptr) owner_->Release();
    }

    PluginChannel& channel() const { return *channel_; }
    const PluginConnection& connection() const { return *owner_; }
    // Tells the breaker how the call ended: with an answer of any kind, an error included, or at
    // its deadline with nothing. Say neither when it was cancelled.
    void Answered() const { owner_->OnAnswer(channel_); }
    void Silent() const { owner_->OnSilence(channel_); }

   private:
    std::shared_ptr<PluginConnection> owner_;
    std::shared_ptr<PluginChannel> channel_;
  };
  // UNAVAILABLE with IsPluginUnreachable(): not connected, breaker open, too many calls wait, or no
  // place became free until `deadline`; the message says which, and since when.
  Task<absl::StatusOr<Permit>> Acquire(Deadline deadline);
  // OK if a call could be made now; else what Acquire() would say.
  absl::Status Reachable() const;

  const PluginAddress& address() const { return address_; }
  const std::string& name() const { return address_.name; }
  bool ready() const { return state_ == PluginState::kReady; }
  // Secrets may be sent to it: a socket in its own folder, or mutual TLS.
  bool is_protected() const { return !address_.is_loopback(); }
  // The last good one; kept while the plugin is away. nullptr: never connected.
  const scaler::v1::DescribeResponse* description() const {
    return description_ ? &*description_ : nullptr;
  }
  // Without the types, which the directory knows.
  PluginStatus Status() const;

  // BatchGetMetrics is known not to work; until the next connection.
  bool lacks_batch() const { return lacks_batch_; }
  void SetLacksBatch() { lacks_batch_ = true; }

 private:
  struct Waiter {
    Event woken;
  };

  Task<void> Dial();
  Task<void> WatchConnection();
  Task<void> WaitToRedial();
  Task<void> MakeCheck(std::shared_ptr<PluginChannel> channel);
  Task<void> Probe(std::shared_ptr<PluginChannel> channel);

  absl::Status Usable() const;  // connected, breaker closed
  uint32_t ConcurrentCalls() const;
  void OnDescribed(std::shared_ptr<PluginChannel> channel, scaler::v1::DescribeResponse described);
  void OnDialFailed(PluginState state, const absl::Status& why);
  void OnConnectionLost();
  void OnAnswer(const std::shared_ptr<PluginChannel>& channel);
  void OnSilence(const std::shared_ptr<PluginChannel>& channel);
  void Release();
  void WakeWaiters();
  void SetState(PluginState state, std::string reason);
  bool IsCurrent(const std::shared_ptr<PluginChannel>& channel) const {
    return channel != nullptr && channel == channel_;
  }

  const PluginAddress address_;
  const Environment env_;
  const Options options_;
  const Logger logger_;

  bool stopping_ = false;
  Event wake_;                              // of Run(): stop, or the connection should be looked at
  std::shared_ptr<PluginChannel> channel_;  // while dialling and connected
  bool redial_ = false;                     // the connection is given up though it looks well
  std::string dialled_socket_;              // SocketIdentity() of the last dial
  SteadyTime connected_at_;
  Backoff backoff_;
  Breaker breaker_;
  Event probe_now_;  // ends the wait of Probe()

  PluginState state_ = PluginState::kConnecting;
  std::string reason_ = "not dialled yet";
  absl::Time since_;
  std::optional<scaler::v1::DescribeResponse> description_;
  bool lacks_batch_ = false;

  uint32_t in_flight_ = 0;
  std::deque<std::shared_ptr<Waiter>> waiters_;  // for a free place, oldest first
};

}  // namespace outrigger::host
