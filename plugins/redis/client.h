// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "host/base/clock.h"
#include "host/base/deadline.h"
#include "host/base/event.h"
#include "host/base/logging.h"
#include "host/base/random.h"
#include "host/base/task.h"
#include "host/base/task_group.h"
#include "plugins/redis/redis_trigger.h"
#include "plugins/redis/reply.h"
#include "plugins/redis/transport.h"

namespace outrigger::plugins::redis {

// What the clients of one process share. All of it outlives them.
struct ClientContext {
  host::Clock& clock;
  host::Executor executor;
  Resolver& resolver;
  host::Logger logger;
};

// One connection to one server as one user, shared by all triggers that look there. Commands are
// pipelined: all that are asked in one turn of the executor leave in one write.
//
// Dials when asked, never on its own: an idle source costs nothing. Asks that find no connection
// wait for the attempt in progress, or start one; after a failed attempt the next comes at the
// earliest 0.1 s doubling to 1 s later (the cap is below the usual time of an ask, so every poll
// sees an attempt of its own, never an old error, and many polls cause at most one dial a second).
// A command whose connection breaks is sent once more on a new one, since all commands only read. A
// connection that lets an ask run into its deadline without a byte is given up.
//
// Lives on one executor; call everything there.
class Client : public std::enable_shared_from_this<Client> {
 public:
  using Done = std::function<void(absl::StatusOr<ReplyPtr>)>;

  static std::shared_ptr<Client> Make(const ClientContext& context, ServerIdentity server);
  ~Client();

  // `command` from FormatCommand(). `done` runs once, by the deadline at the latest, never inside
  // Ask(). Error replies of the server are replies; errors are: UNAVAILABLE (cannot connect, or the
  // connection broke twice), UNAUTHENTICATED, PERMISSION_DENIED, FAILED_PRECONDITION (log-in or
  // database refused), DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED (too many commands wait), INTERNAL
  // (the peer is no Redis). They name the address, never a secret.
  void Ask(std::string command, host::Deadline deadline, Done done);

  // Ends the connection and fails what waits with UNAVAILABLE. No more asks after it.
  void Close();

 private:
  struct Pending {
    std::string command;
    host::Deadline deadline = host::Deadline::Never();
    Done done;  // null once answered
    host::SteadyTime sent_at;
    int sent = 0;  // how often
  };
  using PendingPtr = std::shared_ptr<Pending>;
  struct Connection;
  using ConnectionPtr = std::shared_ptr<Connection>;

  Client(const ClientContext& context, ServerIdentity server);

  void Answer(const PendingPtr& pending, absl::StatusOr<ReplyPtr> reply);
  void EnsureSession();
  // `self` keeps the client until the coroutine ends, also before it has started.
  host::Task<void> Session(std::shared_ptr<Client> self);
  host::Task<absl::Status> Connect(ConnectionPtr connection);
  host::Task<absl::Status> LogIn(ConnectionPtr connection);
  host::Task<absl::StatusOr<ReplyPtr>> ReadReply(ConnectionPtr connection);
  host::Task<absl::Status> ServeReplies(ConnectionPtr connection);
  absl::Status FromLogInReply(absl::string_view command, const Reply& reply) const;
  void Use(const ConnectionPtr& connection);
  void Send(const ConnectionPtr& connection, PendingPtr pending);
  host::Task<void> WriteOut(std::shared_ptr<Client> self, ConnectionPtr connection);
  void OnAttemptFailed(const absl::Status& status);
  void OnConnectionLost(const ConnectionPtr& connection, const absl::Status& status);
  void ArmTimer();
  void OnTimer();
  absl::Status LateError(const Pending& pending) const;
  absl::Status WithAddress(const absl::Status& status) const;

  ClientContext context_;
  const ServerIdentity server_;
  const std::string address_;
  host::TaskGroup tasks_;
  host::Random random_;
  host::Event closing_event_;

  ConnectionPtr connection_;  // logged in; null while there is none
  ConnectionPtr attempt_;     // being connected
  bool in_session_ = false;   // Session() runs
  bool closed_ = false;
  std::deque<PendingPtr> waiting_;  // for a connection
  absl::Duration backoff_ = absl::ZeroDuration();
  host::SteadyTime next_attempt_ = host::SteadyTime::InfinitePast();
  absl::Status last_error_;  // of the last attempt; OK after a success
  std::optional<host::Clock::TimerId> timer_;
  host::SteadyTime timer_at_ = host::SteadyTime::InfiniteFuture();
};

}  // namespace outrigger::plugins::redis
