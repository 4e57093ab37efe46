// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <string>
#include <thread>

namespace outrigger::tests {

// Listens on a Unix socket and answers every connection with bytes that are no HTTP/2. Aborts when
// it cannot listen: no test can go on then.
class GarbageServer {
 public:
  explicit GarbageServer(const std::string& socket_path);
  ~GarbageServer();
  GarbageServer(const GarbageServer&) = delete;
  GarbageServer& operator=(const GarbageServer&) = delete;

  int connections() const { return connections_; }

 private:
  void Serve();

  const int fd_;
  std::atomic<int> connections_ = 0;
  std::thread thread_;
};

}  // namespace outrigger::tests
