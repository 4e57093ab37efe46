// SPDX-License-Identifier: Apache-2.0
#include "operator/adapter/http_server.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>

#include <array>
#include <atomic>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <chrono>
#include <optional>
#include <set>

#include "host/base/event.h"
#include "host/base/mutex.h"
#include "operator/adapter/serving_certificate.h"

namespace outrigger::controller::adapter {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using TlsStream = beast::ssl_stream<beast::tcp_stream>;
using RequestParser = http::request_parser<http::empty_body>;

constexpr auto kUseTuple = asio::as_tuple(asio::use_awaitable);
constexpr uint32_t kLongestHeader = 32 * 1024;
constexpr std::chrono::seconds kHandshakeTimeout(10);
constexpr std::chrono::seconds kWriteTimeout(30);
constexpr std::chrono::seconds kCloseTimeout(1);
constexpr size_t kMostDiscarded = size_t{256} * 1024;

// The answer to what is no HTTP request that we take; nullopt: the client just went away.
std::optional<HttpResponse> Refusal(const boost::system::error_code& error) {
  const bool of_http = error.category() == make_error_code(http::error::bad_method).category();
  if (!of_http || error == http::error::end_of_stream || error == http::error::partial_message)
    return std::nullopt;
  HttpResponse refusal{.code = 400, .content_type = "text/plain", .close = true};
  refusal.body = absl::StrCat("bad request: ", error.message(), "\n");
  if (error == http::error::header_limit) {
    refusal.code = 431;
    refusal.body =
        absl::StrCat("want headers of at most ", kLongestHeader, " bytes in all, got more\n");
  }
  return refusal;
}

std::shared_ptr<const HttpRequest> ToRequest(const http::request<http::empty_body>& message,
                                             std::shared_ptr<const PeerCertificate> peer) {
  auto request = std::make_shared<HttpRequest>();
  request->method = std::string(message.method_string());
  request->target = std::string(message.target());
  for (const auto& field : message) {
    request->headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
  }
  request->peer = std::move(peer);
  return request;
}

http::response<http::string_body> ToMessage(HttpResponse answer, bool head, bool keep_alive) {
  http::response<http::string_body> message;
  message.result(static_cast<unsigned>(answer.code));
  message.version(11);
  message.set(http::field::content_type, answer.content_type);
  message.set(http::field::cache_control, "no-cache, private");
  message.keep_alive(keep_alive);
  message.content_length(answer.body.size());
  if (!head) message.body() = std::move(answer.body);
  return message;
}

// Says goodbye in TLS; there is nothing to say in plain TCP.
host::Task<void> CloseTls(TlsStream& stream) { co_await stream.async_shutdown(kUseTuple); }
host::Task<void> CloseTls(beast::tcp_stream&) { co_return; }

}  // namespace

std::vector<std::string> HttpRequest::Header(absl::string_view name) const {
  std::vector<std::string> values;
  for (const auto& [key, value] : headers) {
    if (absl::EqualsIgnoreCase(key, name)) values.push_back(value);
  }
  return values;
}

// Kept by the server and by each of its coroutines.
struct HttpServer::State : std::enable_shared_from_this<HttpServer::State> {
  // A request whose handler runs. Used on the strand of its connection.
  struct Pending {
    std::optional<HttpResponse> answer;
    bool given_up = false;  // the connection is about to end: waits no longer
    host::Event changed;
  };
  // A connection that is open. `idle`: nobody waits for an answer on it, so it may be cut.
  struct Link {
    beast::tcp_stream& stream;
    bool idle = true;
    std::shared_ptr<Pending> pending;  // nullptr: no handler runs for it
  };
  class OpenLink;

  State(host::Executor executor, host::Clock& clock, const host::Logger& log, HttpHandler handler,
        Options options)
      : executor(std::move(executor)),
        clock(clock),
        log(log.With({{"server", options.name}})),
        handler(std::move(handler)),
        options(std::move(options)),
        certificate(this->options.cert_file, this->options.key_file, clock, this->log),
        acceptor(asio::make_strand(this->executor)) {}

  bool WithTls() const { return !options.cert_file.empty(); }

  void Enter() {
    host::MutexLock lock(&mutex);
    ++running;
  }
  void Leave() {
    host::MutexLock lock(&mutex);
    --running;
    changed.NotifyAll();
  }
  size_t Running() {
    host::MutexLock lock(&mutex);
    return running;
  }
  void CountHandler(int change) {
    host::MutexLock lock(&mutex);
    handlers += change;
    if (handlers == 0) changed.NotifyAll();
  }
  int Handlers() {
    host::MutexLock lock(&mutex);
    return handlers;
  }

  void SetIdle(Link& link, bool idle) {
    host::MutexLock lock(&mutex);
    link.idle = idle;
  }
  void SetPending(Link& link, std::shared_ptr<Pending> pending) {
    host::MutexLock lock(&mutex);
    link.pending = std::move(pending);
  }
  void Cut(bool busy_ones_too);
  static void GiveUp(Link& link);

  host::Task<void> Accept();
  host::Task<void> Connection(tcp::socket socket);
  template <typename Stream>
  host::Task<void> Serve(Stream& stream, Link& link, std::shared_ptr<const PeerCertificate> peer);
  template <typename Stream>
  host::Task<bool> ServeOne(Stream& stream, Link& link, beast::flat_buffer& buffer,
                            std::shared_ptr<const PeerCertificate> peer);
  host::Task<HttpResponse> Ask(Link& link, std::shared_ptr<const HttpRequest> request);
  host::Task<void> RunHandler(std::shared_ptr<const HttpRequest> request,
                              std::shared_ptr<Pending> pending);
  template <typename Stream>
  host::Task<void> Close(Stream& stream, Link& link);

  const host::Executor executor;
  host::Clock& clock;
  const host::Logger log;
  const HttpHandler handler;
  const Options options;

  ServingCertificate certificate;
  tcp::acceptor acceptor;
  uint16_t port = 0;
  std::atomic<bool> draining = false;
  std::atomic<bool> stopping = false;
  host::Event changed;

  host::Mutex mutex;
  size_t running ABSL_GUARDED_BY(mutex) = 0;  // coroutines: the accept loop and connections
  int handlers ABSL_GUARDED_BY(mutex) = 0;    // coroutines that answer a request
  std::set<Link*> open ABSL_GUARDED_BY(mutex);
};

// A Link for as long as its connection is open, so that Stop() finds it.
class HttpServer::State::OpenLink {
 public:
  OpenLink(State& state, beast::tcp_stream& stream) : state_(state), link_{stream} {
    host::MutexLock lock(&state_.mutex);
    state_.open.insert(&link_);
  }
  ~OpenLink() {
    host::MutexLock lock(&state_.mutex);
    state_.open.erase(&link_);
  }
  OpenLink(const OpenLink&) = delete;
  OpenLink& operator=(const OpenLink&) = delete;
  Link& link() { return link_; }

 private:
  State& state_;
  Link link_;
};

void HttpServer::State::Cut(bool busy_ones_too) {
  host::MutexLock lock(&mutex);
  for (Link* link : open) {
    asio::post(link->stream.get_executor(), [self = shared_from_this(), link, busy_ones_too] {
      host::MutexLock again(&self->mutex);
      if (self->open.contains(link) && (link->idle || busy_ones_too)) GiveUp(*link);
    });
  }
}

// On the strand of the connection. One that waits for its handler says so before it ends; others
// read or write, and just end.
void HttpServer::State::GiveUp(Link& link) {
  if (link.pending == nullptr) {
    link.stream.cancel();
  } else {
    link.pending->given_up = true;
    link.pending->changed.NotifyAll();
  }
}

host::Task<void> HttpServer::State::Accept() {
  std::shared_ptr<State> self = shared_from_this();
  while (!stopping) {
    auto [error, socket] = co_await acceptor.async_accept(asio::make_strand(executor), kUseTuple);
    if (stopping) break;
    if (error) {
      // Out of descriptors, most likely: a short pause instead of a busy loop.
      log.Warning("accept failed", {{"error", error.message()}});
      co_await clock.Sleep(absl::Milliseconds(100));
      continue;
    }
    if (Running() > options.most_connections) continue;  // closed as it goes
    Enter();
    const auto connection_executor = socket.get_executor();
    asio::co_spawn(connection_executor, Connection(std::move(socket)),
                   asio::detached);  // counted: Stop() waits
  }
  Leave();
}

host::Task<void> HttpServer::State::Connection(tcp::socket socket) {
  std::shared_ptr<State> self = shared_from_this();
  boost::system::error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  if (WithTls()) {
    const std::shared_ptr<asio::ssl::context> context = certificate.Current();
    TlsStream stream(beast::tcp_stream(std::move(socket)), *context);
    OpenLink open_link(*this, stream.next_layer());
    stream.next_layer().expires_after(kHandshakeTimeout);
    auto [error] = co_await stream.async_handshake(asio::ssl::stream_base::server, kUseTuple);
    if (!error)
      co_await Serve(stream, open_link.link(), ReadPeerCertificate(stream.native_handle()));
  } else {
    beast::tcp_stream stream(std::move(socket));
    OpenLink open_link(*this, stream);
    co_await Serve(stream, open_link.link(), std::make_shared<const PeerCertificate>());
  }
  Leave();
}

template <typename Stream>
host::Task<void> HttpServer::State::Serve(Stream& stream, Link& link,
                                          std::shared_ptr<const PeerCertificate> peer) {
  beast::flat_buffer buffer;
  bool more = true;
  while (more && !stopping) more = co_await ServeOne(stream, link, buffer, peer);
  co_await Close(stream, link);
}

// False: the connection is to be closed.
template <typename Stream>
host::Task<bool> HttpServer::State::ServeOne(Stream& stream, Link& link, beast::flat_buffer& buffer,
                                             std::shared_ptr<const PeerCertificate> peer) {
  RequestParser parser;
  parser.header_limit(kLongestHeader);
  link.stream.expires_after(absl::ToChronoSeconds(options.idle_timeout));
  auto [read_error, size_read] =
      co_await http::async_read_header(stream, buffer, parser, kUseTuple);
  std::optional<HttpResponse> answer;
  if (read_error) answer = Refusal(read_error);
  if (read_error && !answer) co_return false;
  SetIdle(link, false);
  link.stream.expires_never();  // the handler has its own deadline
  if (!answer) answer = co_await Ask(link, ToRequest(parser.get(), peer));
  // A body is not read: what follows on the connection would be taken for the next request.
  const bool keep_alive = !read_error && parser.is_done() && parser.get().keep_alive() &&
                          !answer->close && !draining && !stopping;
  const bool head = parser.get().method() == http::verb::head;
  http::response<http::string_body> message = ToMessage(*std::move(answer), head, keep_alive);
  link.stream.expires_after(kWriteTimeout);
  auto [write_error, size_written] = co_await http::async_write(stream, message, kUseTuple);
  SetIdle(link, true);
  co_return keep_alive && !write_error;
}

// The handler is a coroutine of its own, on the strand of the connection, so that a connection that
// ends need not wait for it.
host::Task<HttpResponse> HttpServer::State::Ask(Link& link,
                                                std::shared_ptr<const HttpRequest> request) {
  const auto pending = std::make_shared<Pending>();
  SetPending(link, pending);
  CountHandler(1);
  asio::co_spawn(link.stream.get_executor(), RunHandler(std::move(request), pending),
                 asio::detached);  // counted: Stop() waits
  while (!pending->answer && !pending->given_up) co_await pending->changed.Wait(clock);
  SetPending(link, nullptr);
  if (!pending->answer) co_return options.unanswered;
  co_return *std::move(pending->answer);
}

host::Task<void> HttpServer::State::RunHandler(std::shared_ptr<const HttpRequest> request,
                                               std::shared_ptr<Pending> pending) {
  std::shared_ptr<State> self = shared_from_this();
  pending->answer = co_await handler(std::move(request));
  pending->changed.NotifyAll();
  CountHandler(-1);
}

// Closes our direction first and reads what the client still sends: closed with unread bytes, the
// connection would be reset, and the client might never see the answer.
template <typename Stream>
host::Task<void> HttpServer::State::Close(Stream& stream, Link& link) {
  link.stream.expires_after(kCloseTimeout);
  co_await CloseTls(stream);
  boost::system::error_code error;
  link.stream.socket().shutdown(tcp::socket::shutdown_send, error);
  std::array<char, 4096> discarded;
  size_t total = 0;
  while (!error && !stopping && total < kMostDiscarded) {
    auto [read_error, size] =
        co_await link.stream.async_read_some(asio::buffer(discarded), kUseTuple);
    error = read_error;
    total += size;
  }
}

HttpServer::HttpServer(host::Executor executor, host::Clock& clock, const host::Logger& log,
                       HttpHandler handler, Options options)
    : state_(std::make_shared<State>(std::move(executor), clock, log, std::move(handler),
                                     std::move(options))) {}

HttpServer::~HttpServer() = default;

absl::Status HttpServer::Start() {
  State& state = *state_;
  const Options& options = state.options;
  if (state.WithTls()) {
    if (absl::Status loaded = state.certificate.Load(); !loaded.ok()) return loaded;
  }
  boost::system::error_code error;
  const asio::ip::address address = asio::ip::make_address(options.address, error);
  if (error) {
    return absl::InvalidArgumentError(absl::StrCat(
        options.name, ": want an IP address to listen on, got \"", options.address, "\""));
  }
  const tcp::endpoint endpoint(address, options.port);
  state.acceptor.open(endpoint.protocol(), error);
  if (!error) state.acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) state.acceptor.bind(endpoint, error);
  if (!error) state.acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    return absl::UnavailableError(absl::StrCat(options.name, ": listen on ", options.address, ":",
                                               options.port, ": ", error.message()));
  }
  state.port = state.acceptor.local_endpoint(error).port();
  state.Enter();
  asio::co_spawn(state.acceptor.get_executor(), state.Accept(), asio::detached);
  return absl::OkStatus();
}

uint16_t HttpServer::port() const { return state_->port; }

void HttpServer::Drain() { state_->draining = true; }

host::Task<void> HttpServer::Stop() {
  std::shared_ptr<State> state = state_;
  co_await EndConnections();
  while (state->Handlers() > 0) co_await state->changed.Wait(state->clock);
}

host::Task<void> HttpServer::EndConnections() {
  std::shared_ptr<State> state = state_;
  state->stopping = true;
  asio::post(state->acceptor.get_executor(), [state] {
    boost::system::error_code ignored;
    state->acceptor.close(ignored);
  });
  const host::SteadyTime patience = state->clock.SteadyNow() + state->options.stop_grace;
  while (state->Running() > 0) {
    state->Cut(/*busy_ones_too=*/state->clock.SteadyNow() >= patience);
    // Again now and then: a connection may have been between accept and its place in the list.
    co_await state->changed.WaitUntil(state->clock,
                                      state->clock.SteadyNow() + absl::Milliseconds(100));
  }
}

}  // namespace outrigger::controller::adapter
