// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/status/status.h>
#include <absl/strings/string_view.h>
#include <absl/time/time.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "host/base/clock.h"
#include "host/base/deadline.h"
#include "host/base/mutex.h"
#include "operator/kube/api_config.h"
#include "operator/kube/credentials.h"

namespace outrigger::controller::kube {

struct HttpRequest {
  std::string method;
  std::string path;                  // with query; goes behind the server's URL
  std::vector<std::string> headers;  // "Name: value"
  std::string body;
  host::Deadline deadline = host::Deadline::Never();
  absl::Duration longest_silence = absl::InfiniteDuration();  // ends UNAVAILABLE without a byte
};

struct HttpAnswer {
  // OK: an answer came, of whatever code; whole, unless its code is an error. DEADLINE_EXCEEDED,
  // UNAVAILABLE (connection, TLS, silence, stopped), NOT_FOUND (a credential's file), CANCELLED
  // (its owner wanted no more).
  absl::Status transport;
  int code = 0;         // of the answer, as far as it came
  bool silent = false;  // `transport` is UNAVAILABLE for HttpRequest::longest_silence
  std::string body;
  std::string retry_after;
  std::string location;
};

// Requests to one API server over libcurl's multi interface, on one thread of its own.
//
// Start(), Cancel() and Stop() are thread-safe and never block (Stop() joins the thread). Callbacks
// run on the loop's thread, must not block, and must not own the loop; OnDone is called exactly
// once for each Start(), for a Start() after Stop() on the calling thread.
//
// Deadlines are checked against Clock::SteadyNow() right before a request is handed to curl and
// before each round of sending, so that a process that was stopped (SIGSTOP) past a deadline sends
// nothing when it wakes. Redirects are not followed. Server certificates are always verified.
//
// A silent HTTP/2 peer is not noticed by libcurl 7.88: sockets have keep-alive and TCP_USER_TIMEOUT
// 30 s, and after a request that ended without a byte from the server new ones go to a new
// connection.
class CurlLoop {
 public:
  struct Options {
    ApiConfig config;
    std::string user_agent;
    // False: HTTP/1.1, one request per connection at a time, so that a request that times out takes
    // its dead connection with it. For the lease, which has no time to wait for TCP.
    bool multiplex = true;
    size_t max_body_bytes = 256 << 20;
  };
  // Bytes of an answer with code 200, in place of HttpAnswer::body; false: no more is wanted.
  using OnBytes = std::function<bool(absl::string_view bytes)>;
  using OnDone = std::function<void(HttpAnswer answer)>;

  CurlLoop(host::Clock& clock, Options options);
  ~CurlLoop();
  CurlLoop(const CurlLoop&) = delete;
  CurlLoop& operator=(const CurlLoop&) = delete;

  // `on_bytes` may be null. The id is for Cancel().
  uint64_t Start(HttpRequest request, OnBytes on_bytes, OnDone on_done);
  // Ends it with CANCELLED, soon; nothing when it has ended already.
  void Cancel(uint64_t id);
  // Ends all with UNAVAILABLE and joins. Not from a callback. Twice is once.
  void Stop();

 private:
  struct Transfer;
  struct MultiDeleter {
    void operator()(void* multi) const;
  };
  struct Pending {
    std::vector<std::unique_ptr<Transfer>> starts;
    std::vector<uint64_t> cancels;
    bool stopping = false;
  };

  void Run();
  Pending TakePending();
  void Begin(std::unique_ptr<Transfer> transfer);
  absl::Status Prepare(Transfer& transfer);
  absl::Status RefreshCredentials();
  void SetConnectionOptions(void* easy);
  void SetTlsOptions(void* easy);
  void SetBody(Transfer& transfer);
  void ExpireDue();
  void ReadMessages();
  void WaitForWork();
  // Takes it off the multi handle and tells its owner.
  void Finish(uint64_t id, absl::Status transport);
  absl::Status TransportStatus(const Transfer& transfer, int curl_code) const;
  void NoteSilentPeer(const Transfer& transfer);

  // Constant after construction.
  host::Clock& clock_;
  const Options options_;
  // A CURLM. Its thread's own thread's, but curl_multi_wakeup() may come from any.
  const std::unique_ptr<void, MultiDeleter> multi_;

  // The loop thread's own.
  Credential certificate_authority_;
  Credential client_certificate_;
  Credential client_key_;
  Credential token_;
  std::string certificate_authority_pem_;  // with the generation, see SetTlsOptions()
  absl::flat_hash_map<uint64_t, std::unique_ptr<Transfer>> transfers_;
  host::SteadyTime next_expiry_ = host::SteadyTime::InfiniteFuture();
  host::SteadyTime last_byte_ = host::SteadyTime::InfinitePast();  // of any transfer
  uint64_t generation_ = 0;  // of connections: requests of a new one do not use those of an old one

  host::Mutex mutex_;
  Pending pending_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;
};

}  // namespace outrigger::controller::kube
