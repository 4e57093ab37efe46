// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace outrigger::tests {

// An address of 127.0.0.1 that answers nothing, not even the attempt to connect, as a host behind a
// firewall that drops packets: a listening socket whose queue is full, and which nobody accepts.
// Aborts when the kernel refuses a socket.
class BlackHole {
 public:
  BlackHole();
  ~BlackHole();
  BlackHole(const BlackHole&) = delete;
  BlackHole& operator=(const BlackHole&) = delete;

  std::string address() const;  // "127.0.0.1:<port>"

 private:
  uint16_t port_ = 0;
  std::vector<int> sockets_;  // the listener, and those that fill its queue
};

}  // namespace outrigger::tests
