// SPDX-License-Identifier: Apache-2.0
#include "tests/operator/kube/freezing_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

namespace outrigger::tests {
namespace {

sockaddr_in Loopback(uint16_t port) {
  return {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
}

// Copies until one side closes, then closes both; swallows while frozen.
void Pump(int from, int to, const std::atomic<bool>& frozen) {
  char bytes[16384];
  while (true) {
    const ssize_t got = recv(from, bytes, sizeof bytes, 0);
    if (got <= 0) break;
    for (ssize_t done = 0; done < got && !frozen;) {
      const ssize_t sent = send(to, bytes + done, static_cast<size_t>(got - done), MSG_NOSIGNAL);
      if (sent <= 0) break;
      done += sent;
    }
  }
  if (frozen) return;
  shutdown(from, SHUT_RDWR);
  shutdown(to, SHUT_RDWR);
}

}  // namespace

FreezingProxy::FreezingProxy(uint16_t target_port) : target_port_(target_port) {
  listen_fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof address;
  if (bind(listen_fd_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(listen_fd_, 64) != 0 ||
      getsockname(listen_fd_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    std::abort();  // no test can go on
  }
  port_ = ntohs(address.sin_port);
  accepting_ = std::thread([this] { Accept(); });
}

FreezingProxy::~FreezingProxy() {
  shutdown(listen_fd_, SHUT_RDWR);
  accepting_.join();
  std::list<std::unique_ptr<Connection>> connections;
  {
    host::MutexLock lock(&mutex_);
    connections.swap(connections_);
  }
  for (const auto& connection : connections) {
    shutdown(connection->client, SHUT_RDWR);
    shutdown(connection->server, SHUT_RDWR);
    connection->up.join();
    connection->down.join();
    close(connection->client);
    close(connection->server);
  }
  close(listen_fd_);
}

void FreezingProxy::Freeze() {
  host::MutexLock lock(&mutex_);
  for (const auto& connection : connections_) connection->frozen = true;
}

int FreezingProxy::connections() const {
  host::MutexLock lock(&mutex_);
  return static_cast<int>(connections_.size());
}

void FreezingProxy::Accept() {
  while (true) {
    const int client = accept4(listen_fd_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) return;
    auto connection = std::make_unique<Connection>();
    connection->client = client;
    connection->server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in target = Loopback(target_port_);
    if (connect(connection->server, reinterpret_cast<const sockaddr*>(&target), sizeof target) !=
        0) {
      shutdown(client, SHUT_RDWR);
    }
    Connection& c = *connection;
    c.up = std::thread([&c] { Pump(c.client, c.server, c.frozen); });
    c.down = std::thread([&c] { Pump(c.server, c.client, c.frozen); });
    host::MutexLock lock(&mutex_);
    connections_.push_back(std::move(connection));
  }
}

}  // namespace outrigger::tests
