// SPDX-License-Identifier: Apache-2.0
#include "operator/adapter/http_server.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <sys/stat.h>

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
#include <set>

#include "host/base/event.h"
#include "host/base/mutex.h"

namespace outrigger::controller::adapter {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;

constexpr auto kUseTuple = asio::as_tuple(asio::use_awaitable);
constexpr uint32_t kLongestHeader = 32 * 1024;
constexpr absl::Duration kCertificateCheck = absl::Seconds(2);

// Changes when a file is replaced, also through the symbolic links of a mounted Secret.
std::string FileStamp(const std::string& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) return "absent";
  return absl::StrCat(info.st_ino, "/", info.st_size, "/", info.st_mtim.tv_sec, ".",
                      info.st_mtim.tv_nsec);
}

absl::StatusOr<std::shared_ptr<asio::ssl::context>> LoadTls(const HttpServer::Options& options) {
  auto context = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_server);
  boost::system::error_code error;
  context->set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_tlsv1 |
                       asio::ssl::context::no_tlsv1_1);
  context->use_certificate_chain_file(options.cert_file, error);
  if (error)
    return absl::InvalidArgumentError(
        absl::StrCat("--tls-cert-file ", options.cert_file, ": ", error.message()));
  context->use_private_key_file(options.key_file, asio::ssl::context::pem, error);
  if (error)
    return absl::InvalidArgumentError(
        absl::StrCat("--tls-key-file ", options.key_file, ": ", error.message()));
  if (SSL_CTX_check_private_key(context->native_handle()) != 1) {
    return absl::InvalidArgumentError(absl::StrCat("--tls-key-file ", options.key_file,
                                                   ": is not the key of ", options.cert_file));
  }
  // Asks for a certificate and takes any: who it is, is decided for each request by the CAs of that
  // moment.
  context->set_verify_mode(asio::ssl::verify_peer, error);
  context->set_verify_callback([](bool, asio::ssl::verify_context&) { return true; }, error);
  // Resumed sessions would come without the certificate.
  SSL_CTX_set_session_cache_mode(context->native_handle(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(context->native_handle(), SSL_OP_NO_TICKET);
  return context;
}

}  // namespace

std::vector<std::string> HttpRequest::Header(absl::string_view name) const {
  std::vector<std::string> values;
  for (const auto& [key, value] : headers) {
    if (absl::EqualsIgnoreCase(key, name)) values.push_back(value);
  }
  return values;
}

struct HttpServer::State : std::enable_shared_from_this<HttpServer::State> {
  State(host::Executor executor, host::Clock& clock, host::Logger log, HttpHandler handler,
        Options options)
      : executor(std::move(executor)),
        clock(clock),
        log(std::move(log)),
        handler(std::move(handler)),
        options(std::move(options)),
        acceptor(asio::make_strand(this->executor)) {}

  const host::Executor executor;
  host::Clock& clock;
  const host::Logger log;
  const HttpHandler handler;
  const Options options;

  tcp::acceptor acceptor;
  uint16_t port = 0;
  std::atomic<bool> draining = false;
  std::atomic<bool> stopping = false;
  host::Event changed;

  host::Mutex mutex;
  size_t running ABSL_GUARDED_BY(mutex) = 0;  // coroutines: the accept loop and connections
  std::set<beast::tcp_stream*> open ABSL_GUARDED_BY(mutex);
  std::shared_ptr<asio::ssl::context> tls ABSL_GUARDED_BY(mutex);
  std::string tls_stamp ABSL_GUARDED_BY(mutex);
  host::SteadyTime tls_checked ABSL_GUARDED_BY(mutex);

  bool with_tls() const { return !options.cert_file.empty(); }

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

  std::shared_ptr<asio::ssl::context> CurrentTls() {
    host::MutexLock lock(&mutex);
    const host::SteadyTime now = clock.SteadyNow();
    if (now - tls_checked < kCertificateCheck) return tls;
    tls_checked = now;
    const std::string stamp = FileStamp(options.cert_file) + FileStamp(options.key_file);
    if (stamp == tls_stamp) return tls;
    tls_stamp = stamp;
    absl::StatusOr<std::shared_ptr<asio::ssl::context>> loaded = LoadTls(options);
    if (loaded.ok()) {
      tls = *std::move(loaded);
      log.Info("serving certificate was read again", {{"server", options.name}});
    } else {
      log.Error("the new serving certificate is not usable; the old one stays in use",
                {{"server", options.name}, {"error", loaded.status().message()}});
    }
    return tls;
  }

  void CloseAll() {
    host::MutexLock lock(&mutex);
    for (beast::tcp_stream* stream : open) {
      asio::post(stream->get_executor(), [self = shared_from_this(), stream] {
        host::MutexLock again(&self->mutex);
        if (self->open.contains(stream)) stream->cancel();
      });
    }
  }

  host::Task<void> Accept();
  host::Task<void> Connection(tcp::socket socket);
  template <typename Stream>
  host::Task<void> Serve(Stream& stream, beast::tcp_stream& lowest, PeerCertificate peer);
  host::Task<HttpResponse> Answer(const http::request<http::empty_body>& message,
                                  const PeerCertificate& peer);
};

host::Task<void> HttpServer::State::Accept() {
  std::shared_ptr<State> self = shared_from_this();
  while (!stopping) {
    auto [error, socket] = co_await acceptor.async_accept(asio::make_strand(executor), kUseTuple);
    if (stopping) break;
    if (error) {
      // Out of descriptors, most likely: a short pause instead of a busy loop.
      log.Warning("accept failed", {{"server", options.name}, {"error", error.message()}});
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
  if (with_tls()) {
    const std::shared_ptr<asio::ssl::context> context = CurrentTls();
    beast::ssl_stream<beast::tcp_stream> stream(beast::tcp_stream(std::move(socket)), *context);
    beast::tcp_stream& lowest = beast::get_lowest_layer(stream);
    {
      host::MutexLock lock(&mutex);
      open.insert(&lowest);
    }
    lowest.expires_after(std::chrono::seconds(10));
    auto [error] = co_await stream.async_handshake(asio::ssl::stream_base::server, kUseTuple);
    if (!error) co_await Serve(stream, lowest, ReadPeerCertificate(stream.native_handle()));
    host::MutexLock lock(&mutex);
    open.erase(&lowest);
  } else {
    beast::tcp_stream stream(std::move(socket));
    {
      host::MutexLock lock(&mutex);
      open.insert(&stream);
    }
    co_await Serve(stream, stream, PeerCertificate());
    host::MutexLock lock(&mutex);
    open.erase(&stream);
  }
  Leave();
}

template <typename Stream>
host::Task<void> HttpServer::State::Serve(Stream& stream, beast::tcp_stream& lowest,
                                          PeerCertificate peer) {
  beast::flat_buffer buffer;
  while (!stopping) {
    http::request_parser<http::empty_body> parser;
    parser.header_limit(kLongestHeader);
    parser.body_limit(0);
    lowest.expires_after(absl::ToChronoSeconds(options.idle_timeout));
    auto [read_error, size_read] = co_await http::async_read(stream, buffer, parser, kUseTuple);
    const bool bad = read_error == http::error::body_limit ||
                     read_error == http::error::unexpected_body ||
                     read_error == http::error::header_limit;
    if (read_error && !bad) co_return;
    lowest.expires_never();  // the handler has its own deadline
    HttpResponse answer;
    if (bad) {
      answer = {.code = read_error == http::error::header_limit ? 431 : 413,
                .body = absl::StrCat(read_error.message(), "\n"),
                .content_type = "text/plain",
                .close = true};
    } else {
      answer = co_await Answer(parser.get(), peer);
    }
    http::response<http::string_body> response;
    response.result(static_cast<unsigned>(answer.code));
    response.version(11);
    response.set(http::field::content_type, answer.content_type);
    response.set(http::field::cache_control, "no-cache, private");
    response.keep_alive(!answer.close && !draining && parser.get().keep_alive());
    response.body() = std::move(answer.body);
    response.prepare_payload();
    lowest.expires_after(std::chrono::seconds(30));
    const bool keep_alive = response.keep_alive();
    auto [write_error, size_written] = co_await http::async_write(stream, response, kUseTuple);
    if (write_error || !keep_alive) co_return;
  }
}

host::Task<HttpResponse> HttpServer::State::Answer(const http::request<http::empty_body>& message,
                                                   const PeerCertificate& peer) {
  auto request = std::make_shared<HttpRequest>();
  request->method = std::string(message.method_string());
  request->target = std::string(message.target());
  for (const auto& field : message) {
    request->headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
  }
  request->peer = peer;
  co_return co_await handler(std::move(request));
}

HttpServer::HttpServer(host::Executor executor, host::Clock& clock, host::Logger log,
                       HttpHandler handler, Options options)
    : state_(std::make_shared<State>(std::move(executor), clock, std::move(log), std::move(handler),
                                     std::move(options))) {}

HttpServer::~HttpServer() = default;

absl::Status HttpServer::Start() {
  State& state = *state_;
  const Options& options = state.options;
  if (state.with_tls()) {
    absl::StatusOr<std::shared_ptr<asio::ssl::context>> tls = LoadTls(options);
    if (!tls.ok()) return tls.status();
    host::MutexLock lock(&state.mutex);
    state.tls = *std::move(tls);
    state.tls_stamp = FileStamp(options.cert_file) + FileStamp(options.key_file);
    state.tls_checked = state.clock.SteadyNow();
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
  state->stopping = true;
  asio::post(state->acceptor.get_executor(), [state] {
    boost::system::error_code ignored;
    state->acceptor.close(ignored);
  });
  while (state->Running() > 0) {
    state->CloseAll();
    // Again now and then: a connection may have been between accept and its place in the list.
    co_await state->changed.WaitUntil(state->clock,
                                      state->clock.SteadyNow() + absl::Milliseconds(100));
  }
}

}  // namespace outrigger::controller::adapter
