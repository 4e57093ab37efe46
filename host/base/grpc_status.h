// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>

namespace grpc {
class Status;
}

namespace outrigger::host {

// gRPC 1.51 does not convert between its Status and Abseil's; the numbers of the codes are the
// same. An unknown number becomes UNKNOWN. Messages are cut at kMaxErrorMessageBytes at a
// character's edge.
inline constexpr size_t kMaxErrorMessageBytes = 4096;

absl::Status FromGrpc(const grpc::Status& status);
grpc::Status ToGrpc(const absl::Status& status);
absl::Status FromGrpcCode(int code, absl::string_view message);

}  // namespace outrigger::host
