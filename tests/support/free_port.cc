// SPDX-License-Identifier: Apache-2.0
#include "tests/support/free_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

namespace outrigger::tests {
namespace {

constexpr int kFirst = 12000;
constexpr int kLast = 31999;  // ip_local_port_range begins at 32768
constexpr int kTries = 2000;

// An abstract Unix socket is the reservation: it needs no file and goes with the program, which is
// why its descriptor is never closed. False: somebody else has it.
bool Reserve(int port) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const int length = std::snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1,
                                   "outrigger-test-port-%d", port);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto size =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<size_t>(length));
  if (fd >= 0 && bind(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0) return true;
  if (fd >= 0) close(fd);
  return false;
}

bool CanListen(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  const bool bound = bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  close(fd);
  return bound;
}

}  // namespace

uint16_t FreePort() {
  std::random_device random;
  std::uniform_int_distribution<int> any(kFirst, kLast);
  for (int i = 0; i < kTries; ++i) {
    const int port = any(random);
    if (CanListen(port) && Reserve(port)) return static_cast<uint16_t>(port);
  }
  std::fprintf(stderr, "no free port between %d and %d\n", kFirst, kLast);
  std::abort();
}

}  // namespace outrigger::tests
