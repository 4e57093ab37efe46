// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <memory>
#include <string>

#include "host/base/clock.h"
#include "host/base/task.h"
#include "host/kit/listen_address.h"
#include "outrigger/introspection/v1/introspection.pb.h"

namespace outrigger::controller::introspection {

// The gRPC server of the operator's own port: outrigger.introspection.v1.Introspection,
// grpc.health.v1.Health ("" and the service's name) and reflection.
//
// Questions are answered on the core strand, where the state lives: gRPC's threads only post.
// Without TLS it listens on a loopback address only (a port-forward reaches it); any other needs
// mutual TLS. Source: design.md section 2.
class IntrospectionServer {
 public:
  struct Options {
    std::string listen_address = "127.0.0.1:9666";  // host:port; port 0: any that is free
    host::kit::TlsFiles tls;
  };
  // Both run on the core strand and must not wait.
  using ListPlugins = std::function<outrigger::introspection::v1::ListPluginsResponse()>;
  using ListObjects = std::function<outrigger::introspection::v1::ListObjectsResponse(
      const std::string& namespace_name, const std::string& name)>;

  // Listens when it returns. INVALID_ARGUMENT: the address, or the TLS files, see above;
  // UNAVAILABLE: it could not be bound. `core` is the core strand; it and `clock` must outlive the
  // server.
  static absl::StatusOr<std::unique_ptr<IntrospectionServer>> Start(const Options& options,
                                                                    host::Executor core,
                                                                    host::Clock& clock,
                                                                    ListPlugins list_plugins,
                                                                    ListObjects list_objects);
  // Stops, if that was not done.
  ~IntrospectionServer();

  // What it listens on, with the real port.
  const std::string& address() const;

  // Health becomes NOT_SERVING; questions that wait for the core strand end with UNAVAILABLE; no
  // callback runs any more once this returns. Blocks for at most a second: call it from main, never
  // from the core strand.
  void Stop();

 private:
  class Implementation;
  explicit IntrospectionServer(std::unique_ptr<Implementation> implementation);
  const std::unique_ptr<Implementation> implementation_;
};

}  // namespace outrigger::controller::introspection
