// SPDX-License-Identifier: Apache-2.0
#include "operator/ctl/remote.h"

#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/security/credentials.h>

#include <future>
#include <memory>

#include "host/base/grpc_status.h"
#include "host/base/status.h"

namespace outrigger::controller::ctl {
namespace {

namespace pb = ::outrigger::introspection::v1;

constexpr absl::Duration kTimeout = absl::Seconds(5);
constexpr char kService[] = "/outrigger.introspection.v1.Introspection/";

absl::Status CheckAddress(const std::string& address) {
  const size_t colon = address.rfind(':');
  int port = 0;
  const bool is_unix = absl::StartsWith(address, "unix:") && address.size() > 5;
  const bool is_tcp = colon != std::string::npos && colon > 0 &&
                      absl::SimpleAtoi(address.substr(colon + 1), &port) && port > 0 &&
                      port < 65536;
  if (is_unix || is_tcp) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--address: want HOST:PORT or unix:PATH, got \"", address, "\""));
}

// gRPC says what failed last behind "last error: ".
std::string LastError(absl::string_view message) {
  constexpr absl::string_view kMark = "last error: ";
  const size_t found = message.find(kMark);
  return std::string(found == absl::string_view::npos ? message
                                                      : message.substr(found + kMark.size()));
}

absl::Status Explain(const absl::Status& status, const std::string& address) {
  const std::string who = absl::StrCat("operator at ", address);
  switch (status.code()) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kNotFound:
      return status;
    case absl::StatusCode::kUnavailable:
      return absl::UnavailableError(absl::StrCat(
          who, ": nobody answers there (", LastError(status.message()),
          "); does it run, and is its gRPC port forwarded? For help: outriggerctl explain --help"));
    case absl::StatusCode::kDeadlineExceeded:
      return absl::DeadlineExceededError(
          absl::StrCat(who, ": no answer within ", absl::FormatDuration(kTimeout)));
    case absl::StatusCode::kUnimplemented:
      return absl::UnimplementedError(absl::StrCat(
          who, ": a gRPC server answers there, but it is no operator's (a plugin's?)"));
    default:
      return host::Annotate(status, who);
  }
}

// One call on a channel of its own. The generic stub: generated stubs cost each file that includes
// them half a minute.
template <typename Request, typename Response>
absl::StatusOr<Response> Ask(const host::Clock& clock, const std::string& address,
                             const char* method, const Request& request) {
  RETURN_IF_ERROR(CheckAddress(address));
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  if (absl::StartsWith(address, "unix:"))
    arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  grpc::TemplatedGenericStub<Request, Response> stub(
      grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(clock.WallNow() + kTimeout));
  Response response;
  std::promise<grpc::Status> ended;
  stub.UnaryCall(&context, absl::StrCat(kService, method), grpc::StubOptions(), &request, &response,
                 [&ended](grpc::Status status) { ended.set_value(std::move(status)); });
  RETURN_IF_ERROR(Explain(host::FromGrpc(ended.get_future().get()), address));
  return response;
}

}  // namespace

absl::StatusOr<pb::ListObjectsResponse> ListObjects(const host::Clock& clock,
                                                    const std::string& address,
                                                    const std::string& namespace_name,
                                                    const std::string& name) {
  pb::ListObjectsRequest request;
  request.set_namespace_(namespace_name);
  request.set_name(name);
  return Ask<pb::ListObjectsRequest, pb::ListObjectsResponse>(clock, address, "ListObjects",
                                                              request);
}

absl::StatusOr<pb::ListPluginsResponse> ListPlugins(const host::Clock& clock,
                                                    const std::string& address) {
  return Ask<pb::ListPluginsRequest, pb::ListPluginsResponse>(clock, address, "ListPlugins", {});
}

}  // namespace outrigger::controller::ctl
