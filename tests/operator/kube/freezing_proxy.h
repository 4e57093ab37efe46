// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <thread>

#include "host/base/mutex.h"

namespace outrigger::tests {

// A TCP proxy on a free port of 127.0.0.1 in front of another port of it, whose connections can be
// frozen: they stay open and carry nothing more, as when a firewall forgets them. Two threads per
// connection; all are joined at destruction. Thread-safe.
class FreezingProxy {
 public:
  explicit FreezingProxy(uint16_t target_port);
  ~FreezingProxy();

  uint16_t port() const { return port_; }
  // Of all connections that are open now; later ones work.
  void Freeze();
  int connections() const;  // accepted so far

 private:
  struct Connection {
    int client = -1;
    int server = -1;
    std::atomic<bool> frozen = false;
    std::thread up;
    std::thread down;
  };
  void Accept();

  const uint16_t target_port_;
  int listen_fd_ = -1;
  uint16_t port_ = 0;
  mutable host::Mutex mutex_;
  std::list<std::unique_ptr<Connection>> connections_ ABSL_GUARDED_BY(mutex_);
  std::thread accepting_;
};

}  // namespace outrigger::tests
