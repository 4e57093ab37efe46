// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "host/base/clock.h"
#include "host/base/logging.h"
#include "host/base/task.h"
#include "operator/adapter/authenticator.h"

namespace outrigger::controller::adapter {

struct HttpRequest {
  std::string method;
  std::string target;                                        // path and query, as sent
  std::vector<std::pair<std::string, std::string>> headers;  // as sent
  std::shared_ptr<const PeerCertificate> peer;               // never nullptr

  std::vector<std::string> Header(absl::string_view name) const;
};

struct HttpResponse {
  int code = 200;
  std::string body;
  std::string content_type = "application/json";
  bool close = false;  // say `Connection: close` and do so
};

using HttpHandler = std::function<host::Task<HttpResponse>(std::shared_ptr<const HttpRequest>)>;

// A small HTTP/1.1 server with keep-alive, over TLS or plain, on the executor that it is given
// (several threads may run it; each connection has a strand). It asks for a client certificate and
// leaves judging it to the handler. The serving certificate is read again when its files change;
// connections that are open keep the one that they began with (see ServingCertificate).
//
// What is no HTTP is answered with 400, more than 32 KiB of headers with 431. Bodies are not read:
// the handler answers by method, target and headers, and the connection ends after it. HTTP/2 is
// not offered: the aggregator keeps its idle HTTP/1.1 connections.
class HttpServer {
 public:
  struct Options {
    std::string name;  // for logs: "metrics API"
    std::string address = "0.0.0.0";
    uint16_t port = 0;      // 0: any that is free
    std::string cert_file;  // PEM chain; "" = no TLS
    std::string key_file;
    size_t most_connections = 2048;
    // Longer than the 90 s of Go's clients, so that they close an idle connection and not we, just
    // when a request comes.
    absl::Duration idle_timeout = absl::Seconds(120);
    absl::Duration stop_grace = absl::Seconds(3);  // see EndConnections()
    HttpResponse unanswered = {.code = 503,        // what those get who then still wait
                               .body = "the server is stopping\n",
                               .content_type = "text/plain",
                               .close = true};
  };
  HttpServer(host::Executor executor, host::Clock& clock, const host::Logger& log,
             HttpHandler handler, Options options);
  ~HttpServer();

  // Binds and serves. INVALID_ARGUMENT: address or certificate; UNAVAILABLE: the port is taken.
  absl::Status Start();
  uint16_t port() const;
  // Serves on, but every answer closes its connection: so that clients go elsewhere before we end.
  void Drain();
  // Accepts nothing more and ends idle connections at once; those whose request is being answered
  // after their answer or, after `stop_grace`, with `unanswered`. Returns when none is left, soon
  // after that at the latest; handlers whose answer nobody waits for may still run.
  host::Task<void> EndConnections();
  // The same, and returns when no handler runs: whoever wants that soon ends what they wait for
  // first. Must have returned before the server goes.
  host::Task<void> Stop();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace outrigger::controller::adapter
