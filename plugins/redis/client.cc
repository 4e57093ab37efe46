// SPDX-License-Identifier: Apache-2.0
#include "plugins/redis/client.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_replace.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "host/base/status.h"

namespace outrigger::plugins::redis {
namespace {

constexpr absl::Duration kAttemptTime = absl::Seconds(5);
constexpr absl::Duration kFirstBackoff = absl::Milliseconds(100);
constexpr absl::Duration kLongestBackoff = absl::Seconds(1);
constexpr size_t kMaxWaiting = 10'000;
constexpr int kMaxSends = 2;

// Closes a transport at a moment, unless it goes first.
class Closer {
 public:
  Closer(host::Clock& clock, const host::Executor& executor, host::Deadline at,
         const std::shared_ptr<Transport>& transport)
      : clock_(clock) {
    std::weak_ptr<Transport> weak = transport;
    timer_ = clock_.AddTimer(at.time(), [executor, weak] {
      boost::asio::post(executor, [weak] {
        if (const std::shared_ptr<Transport> open = weak.lock()) open->Close();
      });
    });
  }
  ~Closer() { clock_.CancelTimer(timer_); }
  Closer(const Closer&) = delete;
  Closer& operator=(const Closer&) = delete;

 private:
  host::Clock& clock_;
  host::Clock::TimerId timer_;
};

}  // namespace

struct Client::Connection {
  std::shared_ptr<Transport> transport;
  ReplyReader reader;
  std::deque<PendingPtr> in_flight;  // in the order sent; an answered one still gets its reply
  std::string outgoing;              // not yet written
  bool writing = false;
  bool replied = false;  // at least once
  host::SteadyTime last_read = host::SteadyTime::InfinitePast();
};

Client::Client(const ClientContext& context, ServerIdentity server)
    : context_(context),
      server_(std::move(server)),
      address_(server_.address()),
      tasks_(context_.clock, context_.executor),
      random_(std::hash<std::string>()(address_)) {}

std::shared_ptr<Client> Client::Make(const ClientContext& context, ServerIdentity server) {
  return std::shared_ptr<Client>(new Client(context, std::move(server)));
}

Client::~Client() {
  if (timer_) context_.clock.CancelTimer(*timer_);
}

absl::Status Client::WithAddress(const absl::Status& status) const {
  if (status.ok()) return status;
  std::string message(status.message());
  // A peer may quote what it was sent.
  const std::string& password = server_.password.Reveal();
  if (!password.empty()) {
    message = absl::StrReplaceAll(message, {{password, "<redacted>"}});
  }
  return absl::Status(status.code(), absl::StrCat("redis ", address_, ": ", message));
}

void Client::Answer(const PendingPtr& pending, absl::StatusOr<ReplyPtr> reply) {
  if (pending->done == nullptr) return;
  Done done = std::exchange(pending->done, nullptr);
  if (!reply.ok()) return done(WithAddress(reply.status()));
  done(std::move(reply));
}

void Client::Ask(std::string command, host::Deadline deadline, Done done) {
  auto pending = std::make_shared<Pending>();
  pending->command = std::move(command);
  pending->deadline = deadline;
  pending->done = std::move(done);
  const size_t queued = connection_ ? connection_->in_flight.size() : waiting_.size();
  if (closed_ || queued >= kMaxWaiting) {
    const absl::Status refused = closed_ ? absl::UnavailableError("the connection was closed")
                                         : absl::ResourceExhaustedError(absl::StrCat(
                                               "want at most ", kMaxWaiting, " commands to wait"));
    boost::asio::post(context_.executor, [self = shared_from_this(), pending, refused] {
      self->Answer(pending, refused);
    });
    return;
  }
  if (connection_) {
    Send(connection_, std::move(pending));
  } else {
    waiting_.push_back(std::move(pending));
    EnsureSession();
  }
  if (deadline.time() < timer_at_) ArmTimer();
}

void Client::Close() {
  closed_ = true;
  closing_event_.NotifyAll();
  if (attempt_) attempt_->transport->Close();
  if (connection_) connection_->transport->Close();
  for (const PendingPtr& pending : std::exchange(waiting_, {})) {
    Answer(pending, absl::UnavailableError("the connection was closed"));
  }
}

// ---- one connection after another ----------------------------------------------------------

void Client::EnsureSession() {
  if (in_session_ || closed_) return;
  in_session_ = true;
  tasks_.Spawn(Session(shared_from_this()));
}

// The life of one connection: wait for the earliest moment, connect, answer until it breaks.
host::Task<void> Client::Session(std::shared_ptr<Client>) {
  if (context_.clock.SteadyNow() < next_attempt_) {
    co_await closing_event_.WaitUntil(context_.clock, next_attempt_);
  }
  if (closed_) co_return;
  auto connection = std::make_shared<Connection>();
  connection->transport = std::make_shared<Transport>(context_.executor, server_.host, server_.tls);
  attempt_ = connection;
  const absl::Status connected = co_await Connect(connection);
  attempt_ = nullptr;
  if (!connected.ok()) {
    in_session_ = false;
    OnAttemptFailed(connected);
    co_return;
  }
  Use(connection);
  const absl::Status ended = co_await ServeReplies(connection);
  in_session_ = false;
  OnConnectionLost(connection, ended);
}

host::Task<absl::Status> Client::Connect(ConnectionPtr connection) {
  const host::Deadline deadline = host::Deadline::After(context_.clock, kAttemptTime);
  CO_ASSIGN_OR_RETURN(std::vector<std::string> addresses,
                      co_await context_.resolver.Resolve(server_.host, deadline));
  const Closer closer(context_.clock, context_.executor, deadline, connection->transport);
  CO_RETURN_IF_ERROR(co_await connection->transport->Connect(context_.clock, deadline,
                                                             std::move(addresses), server_.port));
  const absl::Status logged_in = co_await LogIn(connection);
  co_return logged_in;
}

// AUTH and SELECT, where asked for.
host::Task<absl::Status> Client::LogIn(ConnectionPtr connection) {
  std::vector<absl::string_view> commands;
  std::string bytes;
  const std::string database = absl::StrCat(server_.database);
  const std::string& password = server_.password.Reveal();
  if (!server_.username.empty()) {
    bytes += FormatCommand({"AUTH", server_.username, password});
    commands.push_back("AUTH");
  } else if (!password.empty()) {
    bytes += FormatCommand({"AUTH", password});
    commands.push_back("AUTH");
  }
  if (server_.database > 0) {
    bytes += FormatCommand({"SELECT", database});
    commands.push_back("SELECT");
  }
  if (commands.empty()) co_return absl::OkStatus();
  CO_RETURN_IF_ERROR(co_await connection->transport->Write(std::move(bytes)));
  for (const absl::string_view command : commands) {
    CO_ASSIGN_OR_RETURN(const ReplyPtr reply, co_await ReadReply(connection));
    CO_RETURN_IF_ERROR(FromLogInReply(command, *reply));
  }
  co_return absl::OkStatus();
}

// The text of a refused AUTH is not passed on: a server that does not know the command quotes its
// arguments, which is the password.
absl::Status Client::FromLogInReply(absl::string_view command, const Reply& reply) const {
  if (reply.type != Reply::Type::kError) return absl::OkStatus();
  if (command != "AUTH") {
    return host::Annotate(FromRedisError(reply.text), command, " ", server_.database);
  }
  const absl::StatusCode code = FromRedisError(reply.text).code();
  const std::string who = server_.username.empty()
                              ? "the default user"
                              : absl::StrCat("user ", host::kit::Quoted(server_.username));
  const bool passing = code == absl::StatusCode::kUnavailable;
  return absl::Status(passing ? code : absl::StatusCode::kUnauthenticated,
                      absl::StrCat("AUTH of ", who, " refused (", ErrorCode(reply.text), ")"));
}

host::Task<absl::StatusOr<ReplyPtr>> Client::ReadReply(ConnectionPtr connection) {
  while (true) {
    CO_ASSIGN_OR_RETURN(ReplyPtr reply, connection->reader.Next());
    if (reply != nullptr) co_return std::move(reply);
    CO_ASSIGN_OR_RETURN(const std::string bytes, co_await connection->transport->Read());
    connection->last_read = context_.clock.SteadyNow();
    CO_RETURN_IF_ERROR(connection->reader.Feed(bytes));
  }
}

// Hands replies to their commands until the connection ends; always returns an error.
host::Task<absl::Status> Client::ServeReplies(ConnectionPtr connection) {
  while (true) {
    CO_ASSIGN_OR_RETURN(ReplyPtr reply, co_await ReadReply(connection));
    if (connection->in_flight.empty()) {
      co_return absl::InternalError("want one reply per command, got one too many");
    }
    connection->replied = true;
    backoff_ = absl::ZeroDuration();
    const PendingPtr pending = std::move(connection->in_flight.front());
    connection->in_flight.pop_front();
    Answer(pending, std::move(reply));
  }
}

void Client::Use(const ConnectionPtr& connection) {
  if (!last_error_.ok()) context_.logger.Info("connected again", {{"address", address_}});
  last_error_ = absl::OkStatus();
  connection_ = connection;
  for (PendingPtr& pending : std::exchange(waiting_, {})) Send(connection, std::move(pending));
}

void Client::OnAttemptFailed(const absl::Status& status) {
  if (last_error_.ok() && !closed_) {
    context_.logger.Warning(
        "cannot connect", {{"address", address_}, {"error", host::Describe(WithAddress(status))}});
  }
  last_error_ = status;
  backoff_ = std::clamp(backoff_ * 2, kFirstBackoff, kLongestBackoff);
  next_attempt_ = context_.clock.SteadyNow() + random_.Jitter(backoff_);
  for (const PendingPtr& pending : std::exchange(waiting_, {})) Answer(pending, status);
}

void Client::OnConnectionLost(const ConnectionPtr& connection, const absl::Status& status) {
  connection->transport->Close();
  if (connection_ == connection) connection_ = nullptr;
  if (!connection->replied) {
    // It took the connection and never served it: as good as a failed attempt.
    backoff_ = std::clamp(backoff_ * 2, kFirstBackoff, kLongestBackoff);
    next_attempt_ = context_.clock.SteadyNow() + random_.Jitter(backoff_);
  }
  for (const PendingPtr& pending : std::exchange(connection->in_flight, {})) {
    // A peer that is no Redis will be none the next time.
    const bool again = pending->sent < kMaxSends && !closed_ && !absl::IsInternal(status);
    if (!again) {
      Answer(pending, status);
    } else if (pending->done != nullptr) {
      waiting_.push_back(pending);
    }
  }
  if (!waiting_.empty()) EnsureSession();
}

// ---- writing -------------------------------------------------------------------------------

void Client::Send(const ConnectionPtr& connection, PendingPtr pending) {
  if (pending->done == nullptr) return;  // its deadline has passed
  pending->sent_at = context_.clock.SteadyNow();
  ++pending->sent;
  connection->outgoing += pending->command;
  connection->in_flight.push_back(std::move(pending));
  if (connection->writing) return;
  connection->writing = true;
  tasks_.Spawn(WriteOut(shared_from_this(),
                        connection));  // at the next turn: what is asked in this one goes along
}

host::Task<void> Client::WriteOut(std::shared_ptr<Client>, ConnectionPtr connection) {
  while (!connection->outgoing.empty()) {
    const absl::Status written =
        co_await connection->transport->Write(std::exchange(connection->outgoing, ""));
    if (written.ok()) continue;
    connection->transport->Close();  // the reader sees it and ends the session
    co_return;
  }
  connection->writing = false;
}

// ---- deadlines -----------------------------------------------------------------------------

// One timer for all: at the earliest deadline of what is not answered.
void Client::ArmTimer() {
  host::SteadyTime earliest = host::SteadyTime::InfiniteFuture();
  const auto consider = [&](const std::deque<PendingPtr>& queue) {
    for (const PendingPtr& pending : queue) {
      if (pending->done != nullptr) earliest = std::min(earliest, pending->deadline.time());
    }
  };
  consider(waiting_);
  if (connection_) consider(connection_->in_flight);
  if (timer_) context_.clock.CancelTimer(*std::exchange(timer_, std::nullopt));
  timer_at_ = earliest;
  if (earliest == host::SteadyTime::InfiniteFuture()) return;
  std::weak_ptr<Client> weak = weak_from_this();
  timer_ = context_.clock.AddTimer(earliest, [weak, executor = context_.executor] {
    boost::asio::post(executor, [weak] {
      if (const std::shared_ptr<Client> self = weak.lock()) self->OnTimer();
    });
  });
}

absl::Status Client::LateError(const Pending& pending) const {
  if (pending.sent > 0) return absl::DeadlineExceededError("no reply in time");
  if (!last_error_.ok()) return last_error_;
  return absl::DeadlineExceededError("no connection in time");
}

void Client::OnTimer() {
  const host::SteadyTime now = context_.clock.SteadyNow();
  const auto is_late = [&](const PendingPtr& pending) {
    return pending->done != nullptr && pending->deadline.time() <= now;
  };
  std::deque<PendingPtr> late;
  bool silent = false;
  for (const PendingPtr& pending : waiting_) {
    if (is_late(pending)) late.push_back(pending);
  }
  if (connection_) {
    for (const PendingPtr& pending : connection_->in_flight) {
      if (!is_late(pending)) continue;
      late.push_back(pending);
      silent = silent || connection_->last_read < pending->sent_at;
    }
  }
  for (const PendingPtr& pending : late) Answer(pending, LateError(*pending));
  const auto answered = [](const PendingPtr& pending) { return pending->done == nullptr; };
  waiting_.erase(std::remove_if(waiting_.begin(), waiting_.end(), answered), waiting_.end());
  // The answered ones in flight stay, for their replies may still come; unless nobody is there.
  if (silent) connection_->transport->Close();
  ArmTimer();
}

}  // namespace outrigger::plugins::redis
