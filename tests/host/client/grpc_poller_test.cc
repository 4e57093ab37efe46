// SPDX-License-Identifier: Apache-2.0
#include "host/client/grpc_poller.h"

#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>

namespace outrigger::host {
namespace {

TEST(GrpcPollerTest, TheTagOfACancelledCallComesAndThePollerEnds) {
  GrpcPoller poller;
  grpc::GenericStub stub(
      grpc::CreateChannel("unix:/nobody/listens.sock", grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  const auto call =
      stub.PrepareUnaryCall(&context, "/a.Service/Call", grpc::ByteBuffer(), poller.queue());
  call->StartCall();
  grpc::ByteBuffer response;
  grpc::Status status;
  std::promise<void> ended;
  call->Finish(&response, &status, GrpcPoller::Tag([&ended](bool) { ended.set_value(); }));
  std::future<void> end = ended.get_future();
  EXPECT_EQ(end.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  context.TryCancel();
  ASSERT_EQ(end.wait_for(std::chrono::seconds(30)), std::future_status::ready);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED);
}

}  // namespace
}  // namespace outrigger::host
