// SPDX-License-Identifier: Apache-2.0
// The only file of this room that includes Asio's sockets and TLS.
#include "plugins/redis/transport.h"

#include <absl/strings/str_cat.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <resolv.h>

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <tuple>
#include <utility>

#include "host/base/event.h"
#include "host/base/status.h"

namespace outrigger::plugins::redis {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr auto kAsTuple = asio::as_tuple(asio::use_awaitable);
constexpr int kResolverThreads = 4;
constexpr size_t kReadBytes = 16 << 10;

struct BioFree {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
struct X509Free {
  void operator()(X509* certificate) const { X509_free(certificate); }
};
struct KeyFree {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using BioPtr = std::unique_ptr<BIO, BioFree>;
using X509Ptr = std::unique_ptr<X509, X509Free>;
using KeyPtr = std::unique_ptr<EVP_PKEY, KeyFree>;

BioPtr MemoryBio(const std::string& text) {
  return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

X509Ptr ReadCertificate(const std::string& pem) {
  return X509Ptr(PEM_read_bio_X509(MemoryBio(pem).get(), nullptr, nullptr, nullptr));
}

// Without a password OpenSSL would ask the terminal; an empty one is given instead.
KeyPtr ReadKey(const host::Secret& pem, const host::Secret& password) {
  auto* text = const_cast<char*>(password.Reveal().c_str());
  return KeyPtr(PEM_read_bio_PrivateKey(MemoryBio(pem.Reveal()).get(), nullptr, nullptr, text));
}

absl::Status FromTls(const error_code& error) {
  return absl::UnavailableError(absl::StrCat("TLS setup: ", error.message()));
}

absl::Status LoadClientCertificate(const TlsConfig& config, asio::ssl::context& context) {
  error_code error;
  context.use_certificate_chain(asio::buffer(config.certificate), error);
  if (error) return FromTls(error);
  const KeyPtr key = ReadKey(config.key, config.key_password);
  if (key == nullptr || SSL_CTX_use_PrivateKey(context.native_handle(), key.get()) != 1) {
    return absl::UnavailableError("TLS setup: the key does not fit the certificate");
  }
  return absl::OkStatus();
}

absl::Status Fill(const TlsConfig& config, asio::ssl::context& context) {
  error_code error;
  SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
  context.set_verify_mode(config.verify ? asio::ssl::verify_peer : asio::ssl::verify_none);
  if (config.verify) {
    context.set_default_verify_paths(error);
    if (!error && !config.ca.empty()) {
      context.add_certificate_authority(asio::buffer(config.ca), error);
    }
    if (error) return FromTls(error);
  }
  if (config.certificate.empty() || config.key.empty()) return absl::OkStatus();
  return LoadClientCertificate(config, context);
}

bool IsNumeric(const std::string& host) {
  error_code error;
  asio::ip::make_address(host, error);
  return !error;
}

// What a failed handshake is about; Asio only says "certificate verify failed".
std::string WhyUntrusted(SSL* ssl) {
  const long result = SSL_get_verify_result(ssl);  // NOLINT(google-runtime-int): OpenSSL's type
  if (result == X509_V_OK) return "";
  return absl::StrCat(" (", X509_verify_cert_error_string(result), ")");
}

}  // namespace

std::optional<TlsProblem> CheckTls(const TlsConfig& config) {
  if (!config.ca.empty() && ReadCertificate(config.ca) == nullptr) {
    return TlsProblem{"ca", "a certificate in PEM"};
  }
  if (config.certificate.empty() || config.key.empty()) return std::nullopt;
  const X509Ptr certificate = ReadCertificate(config.certificate);
  if (certificate == nullptr) return TlsProblem{"cert", "a certificate in PEM"};
  const KeyPtr key = ReadKey(config.key, config.key_password);
  if (key == nullptr) return TlsProblem{"key", "a private key in PEM that keyPassword opens"};
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    return TlsProblem{"key", "the private key of cert"};
  }
  return std::nullopt;
}

namespace {

// What the system's resolver waits for is bounded here, so that a dead name server holds up neither
// the other names for long nor the end of the process.
void BoundNameServerWaits() {
  if (res_init() != 0) return;
  _res.retrans = 2;  // seconds
  _res.retry = 1;
}

std::vector<std::string> LookUpAddresses(const std::string& name, error_code& error) {
  BoundNameServerWaits();
  asio::io_context unused;
  std::vector<std::string> addresses;
  const auto results = tcp::resolver(unused).resolve(name, "", error);
  if (error) return addresses;
  for (const auto& entry : results) addresses.push_back(entry.endpoint().address().to_string());
  return addresses;
}

}  // namespace

struct Resolver::Threads {
  asio::thread_pool pool{kResolverThreads};
};

Resolver::Resolver(host::Clock& clock, host::Executor executor)
    : clock_(clock), executor_(std::move(executor)), threads_(std::make_unique<Threads>()) {}

Resolver::~Resolver() {
  threads_->pool.stop();
  threads_->pool.join();
}

host::Task<absl::StatusOr<std::vector<std::string>>> Resolver::Resolve(std::string name,
                                                                       host::Deadline deadline) {
  if (IsNumeric(name)) co_return std::vector<std::string>{name};
  struct Lookup {
    host::Event done;
    bool answered = false;
    error_code error;
    std::vector<std::string> addresses;
  };
  auto lookup = std::make_shared<Lookup>();
  asio::post(threads_->pool, [lookup, name, executor = executor_] {
    error_code error;
    std::vector<std::string> addresses = LookUpAddresses(name, error);
    asio::post(executor, [lookup, error, addresses = std::move(addresses)]() mutable {
      lookup->answered = true;
      lookup->error = error;
      lookup->addresses = std::move(addresses);
      lookup->done.Notify();
    });
  });
  co_await lookup->done.WaitUntil(clock_, deadline.time());
  if (!lookup->answered) co_return absl::UnavailableError("the name was not resolved in time");
  if (lookup->error || lookup->addresses.empty()) {
    co_return absl::UnavailableError(
        absl::StrCat("the name does not resolve: ", lookup->error.message()));
  }
  co_return std::move(lookup->addresses);
}

// Shared with running operations, so that it outlives them.
struct Transport::Sockets {
  Sockets(const host::Executor& executor, std::string host_name,
          std::optional<TlsConfig> tls_config)
      : host(std::move(host_name)), tls(std::move(tls_config)), socket(executor) {}

  const std::string host;
  const std::optional<TlsConfig> tls;
  tcp::socket socket;
  std::optional<asio::ssl::context> context;
  std::optional<asio::ssl::stream<tcp::socket&>> stream;  // after the handshake's start
  std::array<char, kReadBytes> buffer;
  bool closed = false;
  uint64_t tries = 0;  // counts up at the beginning and the end of each

  absl::Status PrepareStream() {
    context.emplace(asio::ssl::context::tls_client);
    RETURN_IF_ERROR(Fill(*tls, *context));
    stream.emplace(socket, *context);
    if (!IsNumeric(host)) SSL_set_tlsext_host_name(stream->native_handle(), host.c_str());
    if (tls->verify) {
      error_code error;
      stream->set_verify_callback(asio::ssl::host_name_verification(host), error);
    }
    return absl::OkStatus();
  }
};

Transport::Transport(const host::Executor& executor, std::string host, std::optional<TlsConfig> tls)
    : sockets_(std::make_shared<Sockets>(executor, std::move(host), std::move(tls))) {}

Transport::~Transport() { Close(); }

// One that answers nothing must not use up the time of those behind it.
class Transport::TryTimer {
 public:
  TryTimer(host::Clock& clock, absl::Duration share, const std::shared_ptr<Sockets>& sockets)
      : clock_(clock), sockets_(sockets), number_(++sockets->tries) {
    std::weak_ptr<Sockets> weak = sockets;
    timer_ = clock.AddTimer(clock.SteadyNow() + share, [weak, number = number_] {
      const std::shared_ptr<Sockets> open = weak.lock();
      if (open == nullptr) return;
      asio::post(open->socket.get_executor(), [weak, number] {
        const std::shared_ptr<Sockets> still_open = weak.lock();
        if (still_open == nullptr || still_open->tries != number) return;
        error_code ignored;
        still_open->socket.close(ignored);
      });
    });
  }
  ~TryTimer() {
    ++sockets_->tries;
    clock_.CancelTimer(timer_);
  }
  TryTimer(const TryTimer&) = delete;
  TryTimer& operator=(const TryTimer&) = delete;

 private:
  host::Clock& clock_;
  const std::shared_ptr<Sockets> sockets_;
  const uint64_t number_;
  host::Clock::TimerId timer_;
};

host::Task<absl::Status> Transport::Connect(host::Clock& clock, host::Deadline deadline,
                                            std::vector<std::string> addresses, uint16_t port) {
  const std::shared_ptr<Sockets> sockets = sockets_;
  error_code error = asio::error::host_not_found;
  for (size_t i = 0; i < addresses.size() && !sockets->closed; ++i) {
    error_code ignored;
    sockets->socket.close(ignored);
    const tcp::endpoint endpoint(asio::ip::make_address(addresses[i], ignored), port);
    const size_t left = addresses.size() - i;
    std::optional<TryTimer> timer;
    if (left > 1) {
      timer.emplace(clock, deadline.Remaining(clock) / static_cast<double>(left), sockets);
    }
    std::tie(error) = co_await sockets->socket.async_connect(endpoint, kAsTuple);
    if (!error) break;
  }
  if (sockets->closed) co_return absl::UnavailableError("no connection in time");
  if (error) co_return absl::UnavailableError(absl::StrCat("connect: ", error.message()));
  sockets->socket.set_option(tcp::no_delay(true), error);
  sockets->socket.set_option(asio::socket_base::keep_alive(true), error);
  if (!sockets->tls) co_return absl::OkStatus();
  CO_RETURN_IF_ERROR(sockets->PrepareStream());
  std::tie(error) =
      co_await sockets->stream->async_handshake(asio::ssl::stream_base::client, kAsTuple);
  if (sockets->closed) co_return absl::UnavailableError("no TLS handshake in time");
  if (!error) co_return absl::OkStatus();
  co_return absl::UnavailableError(absl::StrCat("TLS handshake: ", error.message(),
                                                WhyUntrusted(sockets->stream->native_handle())));
}

host::Task<absl::StatusOr<std::string>> Transport::Read() {
  const std::shared_ptr<Sockets> sockets = sockets_;
  error_code error;
  size_t size = 0;
  const auto buffer = asio::buffer(sockets->buffer);
  if (sockets->stream) {
    std::tie(error, size) = co_await sockets->stream->async_read_some(buffer, kAsTuple);
  } else {
    std::tie(error, size) = co_await sockets->socket.async_read_some(buffer, kAsTuple);
  }
  if (error == asio::error::eof || error == asio::ssl::error::stream_truncated) {
    co_return absl::UnavailableError("the server closed the connection");
  }
  if (error) co_return absl::UnavailableError(absl::StrCat("read: ", error.message()));
  co_return std::string(sockets->buffer.data(), size);
}

host::Task<absl::Status> Transport::Write(std::string bytes) {
  const std::shared_ptr<Sockets> sockets = sockets_;
  error_code error;
  size_t size = 0;
  const auto buffer = asio::buffer(bytes);
  if (sockets->stream) {
    std::tie(error, size) = co_await asio::async_write(*sockets->stream, buffer, kAsTuple);
  } else {
    std::tie(error, size) = co_await asio::async_write(sockets->socket, buffer, kAsTuple);
  }
  if (error) co_return absl::UnavailableError(absl::StrCat("write: ", error.message()));
  co_return absl::OkStatus();
}

void Transport::Close() {
  sockets_->closed = true;
  error_code ignored;
  sockets_->socket.close(ignored);
}

}  // namespace outrigger::plugins::redis
