// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/time/time.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/certificates.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace outrigger::tests {

// A real redis-server on a free port of 127.0.0.1, without persistence, in a temp folder of its
// own.
//
// One thread at a time. Start it from the test's main thread (see Process). Its port stays the same
// over Stop() and Restart(); its data does not.
class RedisServer {
 public:
  struct Options {
    std::string password;                     // of the default user; "": none
    std::vector<std::string> users;           // ACL rules: "reader on >secret ~* +@read"
    bool tls = false;                         // the port then speaks TLS only
    bool require_client_certificate = false;  // with tls
    bool unix_socket = false;
    uint16_t port = 0;  // one that FreePort() gave, for who must know it before; 0: a new one
    std::vector<std::string> configuration;  // more lines of redis.conf
  };

  // Returns when it answers PING. NOT_FOUND: no redis-server in PATH; FAILED_PRECONDITION: it
  // ended at once, DEADLINE_EXCEEDED: it does not answer; both with its
  // log.
  static absl::StatusOr<std::unique_ptr<RedisServer>> Start(Options options);
  static absl::StatusOr<std::unique_ptr<RedisServer>> Start();

  uint16_t port() const { return port_; }
  std::string address() const;      // "127.0.0.1:<port>"
  std::string unix_socket() const;  // path; exists when asked for

  // With tls: the CA (PEM) that signed the server's certificate for localhost and 127.0.0.1, and a
  // client certificate that it accepts.
  const std::string& ca() const { return ca_->certificate(); }
  const KeyPair& client_certificate() const { return client_; }

  // Runs one command as the default user through redis-cli, and returns its raw reply without the
  // last newline. An error reply of Redis is FAILED_PRECONDITION with its text.
  absl::StatusOr<std::string> Command(std::vector<std::string> arguments);

  // Kill(SIGSTOP) makes it a host that accepts connections and never answers; SIGCONT heals it.
  Process& process() { return *process_; }
  absl::Status Stop();
  // Starts it on the same port, empty. Stops it first if it runs.
  absl::Status Restart();

 private:
  explicit RedisServer(Options options);
  absl::Status MakeCertificates();
  absl::Status Launch();
  std::string Configuration() const;
  std::vector<std::string> ClientArguments() const;

  const Options options_;
  const uint16_t port_;
  const TempDir dir_;
  std::unique_ptr<CertificateAuthority> ca_;
  KeyPair client_;
  std::unique_ptr<Process> process_;
};

}  // namespace outrigger::tests
