// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/base/deadline.h"
#include "host/base/secret.h"
#include "host/base/task.h"

namespace outrigger::plugins::redis {

// What a TLS connection trusts and shows. PEM texts.
struct TlsConfig {
  std::string ca;  // trusted beside the system's roots
  std::string certificate;
  host::Secret key;  // shown only if both are given
  host::Secret key_password;
  bool verify = true;
};

// What is wrong with the texts of a TlsConfig, without a word of them.
struct TlsProblem {
  std::string field;   // "ca", "cert" or "key"
  std::string wanted;  // e.g. "a certificate in PEM"
};
std::optional<TlsProblem> CheckTls(const TlsConfig& config);

// Names to addresses, on threads of its own, since the system's resolver blocks. Numbers resolve at
// once. A name that hangs delays at most its own caller and three others.
//
// Lives on one executor: call it there, results come there.
class Resolver {
 public:
  Resolver(host::Clock& clock, host::Executor executor);
  ~Resolver();

  // At least one numeric address. UNAVAILABLE: the name is not known, or nobody answered in time.
  host::Task<absl::StatusOr<std::vector<std::string>>> Resolve(std::string name,
                                                               host::Deadline deadline);

 private:
  struct Threads;
  host::Clock& clock_;
  const host::Executor executor_;
  const std::unique_ptr<Threads> threads_;
};

// A TCP connection, with TLS or without. All calls from one executor (a single thread or a strand);
// a read and a write may run at once, two of a kind may not. No call has a deadline of its own: the
// owner calls Close(), after which all of them end with an error.
class Transport {
 public:
  // `tls` is empty for plain TCP. `host` is what a certificate must be made out to.
  Transport(const host::Executor& executor, std::string host, std::optional<TlsConfig> tls);
  ~Transport();

  // Tries the addresses in order, each for its share of what is left until `deadline`, then shakes
  // hands. UNAVAILABLE says which step failed and why. The deadline ends nothing but a try that
  // others wait behind.
  host::Task<absl::Status> Connect(host::Clock& clock, host::Deadline deadline,
                                   std::vector<std::string> addresses, uint16_t port);
  // At least one byte. UNAVAILABLE: the peer closed, or the connection broke.
  host::Task<absl::StatusOr<std::string>> Read();
  host::Task<absl::Status> Write(std::string bytes);
  void Close();

 private:
  struct Sockets;
  class TryTimer;
  const std::shared_ptr<Sockets> sockets_;
};

}  // namespace outrigger::plugins::redis
