// SPDX-License-Identifier: Apache-2.0
#include "tests/support/black_hole.h"

#include <absl/strings/str_cat.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace outrigger::tests {
namespace {

// A connection over loopback that is going to be there is there at once.
constexpr int kConnectMilliseconds = 200;
constexpr int kMostConnections = 16;

void Must(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "black hole: %s: %s\n", what, std::strerror(errno));
  std::abort();
}

sockaddr_in Loopback(uint16_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

int NewSocket() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  Must(fd >= 0, "socket");
  return fd;
}

bool Connects(int fd, uint16_t port) {
  const sockaddr_in address = Loopback(port);
  const int connected = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  Must(connected == 0 || errno == EINPROGRESS, "connect");
  pollfd wait = {.fd = fd, .events = POLLOUT, .revents = 0};
  return poll(&wait, 1, kConnectMilliseconds) == 1;
}

}  // namespace

BlackHole::BlackHole() {
  sockets_.push_back(NewSocket());
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  Must(bind(sockets_.front(), any, size) == 0, "bind");
  Must(listen(sockets_.front(), 0) == 0, "listen");
  Must(getsockname(sockets_.front(), any, &size) == 0, "getsockname");
  port_ = ntohs(address.sin_port);
  bool connected = true;
  while (connected) {
    sockets_.push_back(NewSocket());
    connected = Connects(sockets_.back(), port_);
    Must(sockets_.size() < kMostConnections, "its queue does not fill");
  }
}

BlackHole::~BlackHole() {
  for (const int fd : sockets_) close(fd);
}

std::string BlackHole::address() const { return absl::StrCat("127.0.0.1:", port_); }

}  // namespace outrigger::tests
