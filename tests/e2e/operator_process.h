// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/cluster/control_plane.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace outrigger::tests {

// The path of a program of ours: OUTRIGGER_BIN_DIR of the environment.
std::string OurProgram(absl::string_view name);

// A folder of plugins as an operator outside Kubernetes wants it: ours and 0700.
class PluginDir {
 public:
  PluginDir();
  const std::string& path() const { return dir_.path(); }
  std::string Socket(absl::string_view plugin) const;  // its folder is made
  const TempDir& dir() const { return dir_; }

 private:
  const TempDir dir_;
};

// outrigger-scaler-redis (or another plugin) as a process on the socket of `plugin` in the folder.
absl::StatusOr<std::unique_ptr<Process>> StartPlugin(const PluginDir& dir,
                                                     const std::string& plugin,
                                                     const std::string& program,
                                                     std::vector<std::string> arguments = {});

// outrigger-operator as a real process, under the token of the shipped ServiceAccount, on free
// ports of 127.0.0.1 or of another address of this machine.
class OperatorProcess {
 public:
  struct Options {
    ControlPlane& plane;
    std::string plugin_dir;
    std::string name = "operator";       // of its files, and its identity in the Lease
    std::vector<std::string> arguments;  // more of its command line
    std::map<std::string, std::string> env;
    std::string address = "127.0.0.1";  // that its ports are bound to
    uint16_t metrics_api_port = 0;      // 0: a free one
    bool wait_until_ready = true;
  };
  static absl::StatusOr<std::unique_ptr<OperatorProcess>> Start(Options options);

  Process& process() { return *process_; }
  uint16_t metrics_api_port() const { return metrics_api_port_; }
  uint16_t metrics_port() const { return metrics_port_; }
  uint16_t health_port() const { return health_port_; }
  uint16_t grpc_port() const { return grpc_port_; }
  const std::string& address() const { return address_; }
  // Whether it says that it is the leader; false when it does not answer.
  bool Leads() const;
  // What it logged so far.
  std::string Log() const;
  // GET http://address:port/path; the body, or FAILED_PRECONDITION with the code.
  static absl::StatusOr<std::string> HttpGet(uint16_t port, const std::string& path,
                                             const std::string& address = "127.0.0.1");
  absl::Status WaitUntilReady(absl::Duration timeout = absl::Seconds(30));

 private:
  TempDir dir_;
  std::unique_ptr<Process> process_;
  std::string address_;
  uint16_t metrics_api_port_ = 0;
  uint16_t metrics_port_ = 0;
  uint16_t health_port_ = 0;
  uint16_t grpc_port_ = 0;
};

}  // namespace outrigger::tests
