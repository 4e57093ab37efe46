// SPDX-License-Identifier: Apache-2.0
#include "host/client/grpc_poller.h"

#include <grpcpp/completion_queue.h>

#include <utility>

namespace outrigger::host {

using Done = std::function<void(bool ok)>;

GrpcPoller::GrpcPoller()
    : queue_(std::make_unique<grpc::CompletionQueue>()), thread_([this] { Run(); }) {}

GrpcPoller::~GrpcPoller() { queue_->Shutdown(); }

void* GrpcPoller::Tag(Done done) { return new Done(std::move(done)); }

void GrpcPoller::Run() {
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) {
    const std::unique_ptr<Done> done(static_cast<Done*>(tag));
    (*done)(ok);
  }
}

}  // namespace outrigger::host
