// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "host/base/clock.h"
#include "host/kit/dispatcher.h"
#include "host/kit/listen_address.h"

namespace grpc {
class Service;
}

namespace outrigger::host::kit {

struct PluginServerOptions {
  std::string socket_path;                     // empty: no Unix socket
  std::string listen_address;                  // host:port, port 0 = any free one; empty: no TCP
  TlsFiles tls;                                // for TCP
  uint32_t max_message_bytes = 1 << 20;        // of a request
  std::vector<grpc::Service*> extra_services;  // for tests; must outlive the server
};

// The gRPC server of a plugin: outrigger.scaler.v1.Scaler over a Dispatcher, health under "", the
// service's name and each trigger type, and reflection. Clock and Dispatcher must outlive it.
class PluginServer {
 public:
  // Listens when it returns. The socket is 0660. INVALID_ARGUMENT, FAILED_PRECONDITION: see
  // listen_address.h; UNAVAILABLE: an address could not be bound.
  static absl::StatusOr<std::unique_ptr<PluginServer>> Start(const PluginServerOptions& options,
                                                             Dispatcher& dispatcher, Clock& clock);
  ~PluginServer();

  // What it listens on, with real ports: "unix:/run/…/scaler.sock", "127.0.0.1:40123".
  const std::vector<std::string>& addresses() const;

  // Health becomes NOT_SERVING, no new calls are taken, running ones may finish within `grace` and
  // are cancelled then. Blocks until all have ended; removes the socket. Once.
  void Drain(absl::Duration grace);

 private:
  class Implementation;
  explicit PluginServer(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace outrigger::host::kit
