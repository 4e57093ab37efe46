// SPDX-License-Identifier: Apache-2.0
#include "tests/operator/adapter/http_client.h"

#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "host/base/status.h"

namespace outrigger::tests {
namespace {

constexpr int kTimeoutSeconds = 10;

std::string LastSslError() {
  char text[256];
  ERR_error_string_n(ERR_get_error(), text, sizeof(text));
  return text;
}

bool UseIdentity(SSL_CTX* context, const KeyPair& identity) {
  BIO* certificate_text = BIO_new_mem_buf(identity.certificate.data(), -1);
  X509* certificate = PEM_read_bio_X509(certificate_text, nullptr, nullptr, nullptr);
  BIO* key_text = BIO_new_mem_buf(identity.key.data(), -1);
  EVP_PKEY* key = PEM_read_bio_PrivateKey(key_text, nullptr, nullptr, nullptr);
  const bool used = certificate != nullptr && key != nullptr &&
                    SSL_CTX_use_certificate(context, certificate) == 1 &&
                    SSL_CTX_use_PrivateKey(context, key) == 1;
  EVP_PKEY_free(key);
  BIO_free(key_text);
  X509_free(certificate);
  BIO_free(certificate_text);
  return used;
}

std::string CommonNameOf(SSL* ssl) {
  X509* certificate = SSL_get1_peer_certificate(ssl);
  char name[256] = "";
  if (certificate != nullptr)
    X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name,
                              sizeof(name));
  X509_free(certificate);
  return name;
}

}  // namespace

struct HttpClient::Handles {
  int fd = -1;
  SSL_CTX* context = nullptr;
  SSL* ssl = nullptr;

  ~Handles() {
    SSL_free(ssl);
    SSL_CTX_free(context);
    if (fd >= 0) close(fd);
  }
};

HttpClient::HttpClient(std::unique_ptr<Handles> handles) : handles_(std::move(handles)) {}
HttpClient::~HttpClient() = default;

absl::StatusOr<std::unique_ptr<HttpClient>> HttpClient::Connect(uint16_t port) {
  auto handles = std::make_unique<Handles>();
  handles->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval timeout = {.tv_sec = kTimeoutSeconds, .tv_usec = 0};
  setsockopt(handles->fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
  setsockopt(handles->fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(handles->fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
    return absl::UnavailableError(absl::StrCat("connect to port ", port, ": errno ", errno));
  return std::unique_ptr<HttpClient>(new HttpClient(std::move(handles)));
}

absl::StatusOr<std::unique_ptr<HttpClient>> HttpClient::ConnectTls(uint16_t port,
                                                                   const KeyPair& identity) {
  ASSIGN_OR_RETURN(std::unique_ptr<HttpClient> client, Connect(port));
  Handles& handles = *client->handles_;
  handles.context = SSL_CTX_new(TLS_client_method());
  if (!identity.certificate.empty() && !UseIdentity(handles.context, identity))
    return absl::InvalidArgumentError(absl::StrCat("client certificate: ", LastSslError()));
  handles.ssl = SSL_new(handles.context);
  SSL_set_fd(handles.ssl, handles.fd);
  if (SSL_connect(handles.ssl) != 1)
    return absl::UnavailableError(absl::StrCat("TLS handshake: ", LastSslError()));
  client->server_name_ = CommonNameOf(handles.ssl);
  return client;
}

absl::Status HttpClient::Send(absl::string_view bytes) {
  while (!bytes.empty()) {
    const int sent =
        handles_->ssl != nullptr
            ? SSL_write(handles_->ssl, bytes.data(), static_cast<int>(bytes.size()))
            : static_cast<int>(send(handles_->fd, bytes.data(), bytes.size(), MSG_NOSIGNAL));
    if (sent <= 0) return absl::UnavailableError(absl::StrCat("send: errno ", errno));
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return absl::OkStatus();
}

absl::Status HttpClient::ReadMore() {
  char bytes[4096];
  errno = 0;
  const int got = handles_->ssl != nullptr
                      ? SSL_read(handles_->ssl, bytes, sizeof(bytes))
                      : static_cast<int>(recv(handles_->fd, bytes, sizeof(bytes), 0));
  if (got > 0) {
    buffer_.append(bytes, static_cast<size_t>(got));
    return absl::OkStatus();
  }
  if (errno == EAGAIN || errno == EWOULDBLOCK)
    return absl::DeadlineExceededError(absl::StrCat("no answer in ", kTimeoutSeconds, " s"));
  return absl::UnavailableError(absl::StrCat("the connection ended after \"", buffer_, "\""));
}

absl::StatusOr<HttpAnswer> HttpClient::Receive(bool head) {
  size_t end = 0;
  while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) RETURN_IF_ERROR(ReadMore());
  const std::vector<std::string> lines = absl::StrSplit(buffer_.substr(0, end), "\r\n");
  buffer_.erase(0, end + 4);
  HttpAnswer answer;
  if (!absl::SimpleAtoi(lines[0].substr(lines[0].find(' ') + 1, 3), &answer.code))
    return absl::InternalError(absl::StrCat("no status line: ", lines[0]));
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::pair<std::string, std::string> header =
        absl::StrSplit(lines[i], absl::MaxSplits(": ", 1));
    answer.headers[absl::AsciiStrToLower(header.first)] = header.second;
  }
  size_t length = 0;
  if (!absl::SimpleAtoi(answer.headers["content-length"], &length))
    return absl::InternalError("no Content-Length");
  if (head) return answer;
  while (buffer_.size() < length) RETURN_IF_ERROR(ReadMore());
  answer.body = buffer_.substr(0, length);
  buffer_.erase(0, length);
  return answer;
}

absl::StatusOr<HttpAnswer> HttpClient::Get(absl::string_view target, absl::string_view headers) {
  RETURN_IF_ERROR(
      Send(absl::StrCat("GET ", target, " HTTP/1.1\r\nHost: test\r\n", headers, "\r\n")));
  return Receive();
}

bool HttpClient::ServerCloses() {
  return buffer_.empty() && absl::IsUnavailable(ReadMore()) && buffer_.empty();
}

}  // namespace outrigger::tests
