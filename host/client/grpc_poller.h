// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <thread>

namespace grpc {
class CompletionQueue;
}  // namespace grpc

namespace outrigger::host {

// Waits for what gRPC completes, on one thread of its own. gRPC's callback API would do it on its
// threads, which sleep for 100 ms when nothing came for a second (docs/adr/0014).
//
// Shared by the channels that use it: whoever starts an operation holds a reference until its
// `done` has run, and drops it on another thread. Ends with the last of them, after all operations.
class GrpcPoller {
 public:
  GrpcPoller();
  ~GrpcPoller();
  GrpcPoller(const GrpcPoller&) = delete;
  GrpcPoller& operator=(const GrpcPoller&) = delete;

  // What calls complete on.
  grpc::CompletionQueue* queue() { return queue_.get(); }
  // The tag of one operation. `done` runs once, on the poller's thread, and must not block.
  static void* Tag(std::function<void(bool ok)> done);

 private:
  void Run();

  const std::unique_ptr<grpc::CompletionQueue> queue_;
  const std::jthread thread_;  // last: it uses the queue
};

}  // namespace outrigger::host
