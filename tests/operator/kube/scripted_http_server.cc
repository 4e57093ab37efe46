// SPDX-License-Identifier: Apache-2.0
#include "tests/operator/kube/scripted_http_server.h"

#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>

namespace outrigger::tests {
namespace {

size_t ContentLength(const std::string& head) {
  const std::string lower = absl::AsciiStrToLower(head);
  const size_t at = lower.find("content-length:");
  if (at == std::string::npos) return 0;
  const size_t begin = at + sizeof("content-length:") - 1;
  size_t length = 0;
  (void)absl::SimpleAtoi(
      absl::StripAsciiWhitespace(lower.substr(begin, lower.find("\r\n", begin) - begin)), &length);
  return length;
}

}  // namespace

void ScriptedHttpServer::Connection::Write(absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;  // the other side is gone: it has said so itself
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
}

void ScriptedHttpServer::Connection::Answer(int code, absl::string_view body,
                                            absl::string_view headers) {
  Write(absl::StrFormat("HTTP/1.1 %d Scripted\r\nContent-Length: %d\r\n%s\r\n%s", code, body.size(),
                        headers, body));
}

void ScriptedHttpServer::Connection::StartChunked() {
  Write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
}

void ScriptedHttpServer::Connection::WriteChunk(absl::string_view bytes) {
  Write(absl::StrFormat("%x\r\n%s\r\n", bytes.size(), bytes));
}

void ScriptedHttpServer::Connection::StaySilent() {
  char byte = 0;
  while (recv(fd_, &byte, 1, 0) > 0) {
  }
}

void ScriptedHttpServer::Connection::Close() { shutdown(fd_, SHUT_RDWR); }

std::string ScriptedHttpServer::Connection::ReadRequest() {
  while (true) {
    const size_t end = buffer_.find("\r\n\r\n");
    if (end != std::string::npos) {
      const size_t size = end + 4 + ContentLength(buffer_.substr(0, end + 2));
      if (buffer_.size() >= size) {
        std::string request = buffer_.substr(0, size);
        buffer_.erase(0, size);
        return request;
      }
    }
    char bytes[4096];
    const ssize_t got = recv(fd_, bytes, sizeof bytes, 0);
    if (got <= 0) return "";
    buffer_.append(bytes, static_cast<size_t>(got));
  }
}

ScriptedHttpServer::ScriptedHttpServer(Handler handler) : handler_(std::move(handler)) {
  listen_fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof address;
  if (bind(listen_fd_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(listen_fd_, 64) != 0 ||
      getsockname(listen_fd_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    std::abort();  // no test can go on
  }
  port_ = ntohs(address.sin_port);
  accepting_ = std::thread([this] { Accept(); });
}

ScriptedHttpServer::~ScriptedHttpServer() {
  std::list<std::thread> threads;
  {
    host::MutexLock lock(&mutex_);
    stopping_ = true;
    for (const int fd : fds_) shutdown(fd, SHUT_RDWR);
  }
  shutdown(listen_fd_, SHUT_RDWR);
  accepting_.join();
  {
    host::MutexLock lock(&mutex_);
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
  host::MutexLock lock(&mutex_);
  for (const int fd : fds_) close(fd);
  close(listen_fd_);
}

std::string ScriptedHttpServer::url() const { return absl::StrCat("http://127.0.0.1:", port_); }

std::vector<std::string> ScriptedHttpServer::requests() const {
  host::MutexLock lock(&mutex_);
  return requests_;
}

int ScriptedHttpServer::connections() const {
  host::MutexLock lock(&mutex_);
  return static_cast<int>(fds_.size());
}

void ScriptedHttpServer::Accept() {
  while (true) {
    const int fd = accept4(listen_fd_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    host::MutexLock lock(&mutex_);
    fds_.push_back(fd);
    if (stopping_) return;
    threads_.emplace_back([this, fd] { Serve(fd); });
  }
}

void ScriptedHttpServer::Serve(int fd) {
  Connection connection(fd);
  while (true) {
    const std::string request = connection.ReadRequest();
    if (request.empty()) break;
    {
      host::MutexLock lock(&mutex_);
      requests_.push_back(request);
    }
    handler_(request, connection);
  }
  shutdown(fd, SHUT_RDWR);
}

}  // namespace outrigger::tests
