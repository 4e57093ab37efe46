// SPDX-License-Identifier: Apache-2.0
#include "host/base/grpc_status.h"

#include <gmock/gmock.h>
#include <grpcpp/support/status.h>
#include <gtest/gtest.h>

#include <string>

namespace outrigger::host {
namespace {

TEST(GrpcStatusTest, EveryCanonicalCodeTravelsThereAndBack) {
  for (int code = 1; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), "why");
    const grpc::Status wire = ToGrpc(status);
    EXPECT_EQ(static_cast<int>(wire.error_code()), code);
    EXPECT_EQ(FromGrpc(wire), status);
  }
  EXPECT_TRUE(ToGrpc(absl::OkStatus()).ok());
  EXPECT_TRUE(FromGrpc(grpc::Status::OK).ok());
}

TEST(GrpcStatusTest, ACodeThatNobodyKnowsIsUnknown) {
  for (const int code : {-1, 17, 1000}) {
    EXPECT_EQ(FromGrpcCode(code, "odd"), absl::UnknownError("odd")) << code;
  }
}

TEST(GrpcStatusTest, ALongMessageIsCutAtACharactersEdge) {
  // "é" is two bytes; with one byte before it the limit falls into its middle.
  std::string message = "x";
  while (message.size() < 2 * kMaxErrorMessageBytes) message += "é";
  const std::string cut(FromGrpcCode(13, message).message());
  const std::string kept = cut.substr(0, cut.find("…"));
  EXPECT_EQ(kept.size(), kMaxErrorMessageBytes - 1);
  EXPECT_EQ(message.compare(0, kept.size(), kept), 0);
  EXPECT_THAT(cut, testing::EndsWith("(8193 bytes)"));
}

TEST(GrpcStatusTest, AMessageOfTheLimitIsWhole) {
  const std::string message(kMaxErrorMessageBytes, 'x');
  EXPECT_EQ(FromGrpcCode(14, message).message(), message);
}

}  // namespace
}  // namespace outrigger::host
