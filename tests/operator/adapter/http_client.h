// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "tests/support/certificates.h"

namespace outrigger::tests {

struct HttpAnswer {
  int code = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

// One blocking HTTP/1.1 connection to 127.0.0.1, over TLS or plain, that sends exactly the bytes
// that a test wants. Every wait ends after 10 s with DEADLINE_EXCEEDED. One thread.
class HttpClient {
 public:
  // Plain TCP.
  static absl::StatusOr<std::unique_ptr<HttpClient>> Connect(uint16_t port);
  // TLS 1.3, with a client certificate (PEM) or, when it is empty, none. The server's certificate
  // is taken unseen: server_name() tells whose it is.
  static absl::StatusOr<std::unique_ptr<HttpClient>> ConnectTls(uint16_t port,
                                                                const KeyPair& identity);
  ~HttpClient();

  const std::string& server_name() const { return server_name_; }  // CN

  absl::Status Send(absl::string_view bytes);
  // The next answer. UNAVAILABLE: the connection ended before it was whole.
  absl::StatusOr<HttpAnswer> Receive(bool head = false);
  // "GET <target> HTTP/1.1" with more header lines ("Name: value\r\n"), and its answer.
  absl::StatusOr<HttpAnswer> Get(absl::string_view target, absl::string_view headers = "");
  // Whether the server closes the connection (within 10 s) without another byte.
  bool ServerCloses();

 private:
  struct Handles;
  explicit HttpClient(std::unique_ptr<Handles> handles);
  absl::Status ReadMore();

  const std::unique_ptr<Handles> handles_;
  std::string server_name_;
  std::string buffer_;
};

}  // namespace outrigger::tests
