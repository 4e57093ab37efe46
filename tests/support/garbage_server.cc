// SPDX-License-Identifier: Apache-2.0
#include "tests/support/garbage_server.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace outrigger::tests {
namespace {

constexpr int kBacklog = 16;

int Listen(const std::string& path) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address = {.sun_family = AF_UNIX};
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(fd, kBacklog) != 0) {
    std::fprintf(stderr, "%s: %s\n", path.c_str(), std::strerror(errno));
    std::abort();
  }
  return fd;
}

}  // namespace

GarbageServer::GarbageServer(const std::string& socket_path)
    : fd_(Listen(socket_path)), thread_([this] { Serve(); }) {}

GarbageServer::~GarbageServer() {
  shutdown(fd_, SHUT_RDWR);  // accept() returns
  thread_.join();
  close(fd_);
}

void GarbageServer::Serve() {
  const std::string garbage(4096, '\xA5');
  for (int client = accept(fd_, nullptr, nullptr); client >= 0;
       client = accept(fd_, nullptr, nullptr)) {
    (void)send(client, garbage.data(), garbage.size(), MSG_NOSIGNAL);
    close(client);
    ++connections_;
  }
}

}  // namespace outrigger::tests
