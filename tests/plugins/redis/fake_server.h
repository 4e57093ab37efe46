// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace outrigger::tests {

// Whatever a user may point a Redis trigger at: answers each chunk that it reads with what
// `respond` makes of it, one thread per connection. Listens on a free port of 127.0.0.1 until it
// goes.
class FakeServer {
 public:
  using Respond = std::function<std::string(const std::string& received)>;

  explicit FakeServer(Respond respond) : respond_(std::move(respond)) {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const bool listens =
        bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0 &&
        listen(listener_, 64) == 0;
    EXPECT_TRUE(listens) << "errno " << errno;
    socklen_t size = sizeof(address);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { Accept(); });
  }

  ~FakeServer() {
    shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    for (const int fd : connections_) shutdown(fd, SHUT_RDWR);
    for (std::thread& thread : threads_) thread.join();
    for (const int fd : connections_) close(fd);
    close(listener_);
  }

  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }
  int accepted() const { return accepted_; }

 private:
  void Accept() {
    while (true) {
      const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) return;
      ++accepted_;
      connections_.push_back(fd);
      threads_.emplace_back([this, fd] { Serve(fd); });
    }
  }

  void Serve(int fd) {
    char buffer[65536];
    while (true) {
      const ssize_t size = read(fd, buffer, sizeof(buffer));
      if (size <= 0) return;
      const std::string answer = respond_(std::string(buffer, static_cast<size_t>(size)));
      if (answer.empty()) {  // hangs up
        shutdown(fd, SHUT_RDWR);
        return;
      }
      send(fd, answer.data(), answer.size(), MSG_NOSIGNAL);
    }
  }

  const Respond respond_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<int> accepted_ = 0;
  std::vector<int> connections_;  // of the acceptor, and of the destructor once it has ended
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

}  // namespace outrigger::tests
