// SPDX-License-Identifier: Apache-2.0
#include "host/base/grpc_status.h"

#include <grpcpp/support/status.h>

#include <string>

namespace outrigger::host {
namespace {

std::string Cut(absl::string_view text) {
  if (text.size() <= kMaxErrorMessageBytes) return std::string(text);
  size_t end = kMaxErrorMessageBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return absl::StrCat(text.substr(0, end), "… (", text.size(), " bytes)");
}

}  // namespace

absl::Status FromGrpcCode(int code, absl::string_view message) {
  if (code == 0) return absl::OkStatus();
  const bool known = code > 0 && code <= static_cast<int>(absl::StatusCode::kUnauthenticated);
  return absl::Status(known ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kUnknown,
                      Cut(message));
}

absl::Status FromGrpc(const grpc::Status& status) {
  return FromGrpcCode(static_cast<int>(status.error_code()), status.error_message());
}

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), Cut(status.message()));
}

}  // namespace outrigger::host
