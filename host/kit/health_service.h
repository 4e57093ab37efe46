// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/strings/string_view.h>

#include <memory>
#include <string>
#include <vector>

namespace grpc {
class Service;
}

namespace outrigger::host::kit {

// grpc.health.v1.Health (Check, Watch) as a service of ours, for plugins and for the operator's own
// port. Not gRPC's built-in one: that has no descriptor, so grpcurl can list it but not call it.
//
// Thread-safe, never blocks. Register service() with the server before it starts; the server must
// be shut down before this goes. Check of an unknown name is NOT_FOUND; Watch of it sends
// SERVICE_UNKNOWN and goes on.
class HealthService {
 public:
  // All names start as SERVING. Give "" for the server as a whole.
  explicit HealthService(const std::vector<std::string>& names);
  ~HealthService();

  grpc::Service& service();
  void Set(const std::string& name, bool serving);
  // Everything becomes NOT_SERVING for good; each Watch is told and then ends with UNAVAILABLE, so
  // that it does not hold up the server's shutdown.
  void Drain();

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace outrigger::host::kit
