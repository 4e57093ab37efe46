// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/strings/string_view.h>

#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <thread>
#include <vector>

#include "host/base/mutex.h"

namespace outrigger::tests {

// Plain HTTP/1.1 on a free port of 127.0.0.1, whose answers, down to their bytes, a test decides:
// for what a real API server does not do when asked. A thread per connection; all are joined at
// destruction. Thread-safe.
class ScriptedHttpServer {
 public:
  class Connection {
   public:
    void Write(absl::string_view bytes);
    // A whole answer with Content-Length. `headers`: lines that end in \r\n.
    void Answer(int code, absl::string_view body, absl::string_view headers = "");
    void StartChunked();
    void WriteChunk(absl::string_view bytes);
    void EndChunked() { Write("0\r\n\r\n"); }
    // Says no more until the other side closes, or the server ends.
    void StaySilent();
    void Close();

   private:
    friend class ScriptedHttpServer;
    explicit Connection(int fd) : fd_(fd) {}
    // Head and body of the next request; "" at the end.
    std::string ReadRequest();

    const int fd_;
    std::string buffer_;
  };
  // On the connection's thread, for each request: its head and body as they came. When it returns,
  // the next request of the connection is read.
  using Handler = std::function<void(const std::string& request, Connection& connection)>;

  explicit ScriptedHttpServer(Handler handler);
  ~ScriptedHttpServer();

  std::string url() const;  // "http://127.0.0.1:<port>"
  std::vector<std::string> requests() const;
  int connections() const;

 private:
  void Accept();
  void Serve(int fd);

  const Handler handler_;
  int listen_fd_ = -1;
  uint16_t port_ = 0;
  mutable host::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::string> requests_ ABSL_GUARDED_BY(mutex_);
  std::vector<int> fds_ ABSL_GUARDED_BY(mutex_);
  std::list<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
  std::thread accepting_;
};

}  // namespace outrigger::tests
