// SPDX-License-Identifier: Apache-2.0
#include "tests/support/plugin/plugin_client.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include "grpc/health/v1/health.grpc.pb.h"
#include "host/base/grpc_status.h"
#include "outrigger/scaler/v1/scaler.grpc.pb.h"

namespace outrigger::tests {
namespace {

namespace pb = ::outrigger::scaler::v1;

std::shared_ptr<grpc::Channel> OpenChannel(
    const std::string& address, const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments;
  // Tests restart servers: no long pauses, no channel shared with another client.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 200);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(-1);
  if (credentials != nullptr) arguments.SetSslTargetNameOverride("localhost");
  return grpc::CreateCustomChannel(
      address, credentials ? credentials : grpc::InsecureChannelCredentials(), arguments);
}

void SetDeadline(grpc::ClientContext& context, absl::Duration timeout) {
  context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoNanoseconds(timeout));
  context.set_wait_for_ready(false);
}

}  // namespace

struct PluginClient::Stubs {
  explicit Stubs(const std::shared_ptr<grpc::Channel>& channel)
      : scaler(pb::Scaler::NewStub(channel)), health(grpc::health::v1::Health::NewStub(channel)) {}
  std::unique_ptr<pb::Scaler::Stub> scaler;
  std::unique_ptr<grpc::health::v1::Health::Stub> health;

  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(grpc::Status (pb::Scaler::Stub::*method)(grpc::ClientContext*,
                                                                         const Request&, Response*),
                                const Request& request, absl::Duration timeout) {
    grpc::ClientContext context;
    SetDeadline(context, timeout);
    Response response;
    const grpc::Status status = (scaler.get()->*method)(&context, request, &response);
    if (!status.ok()) return host::FromGrpc(status);
    return response;
  }
};

PluginClient::PluginClient(const std::string& address)
    : stubs_(std::make_unique<Stubs>(OpenChannel(address, nullptr))) {}

PluginClient::PluginClient(const std::string& address, const std::string& ca, const KeyPair& client)
    : stubs_(std::make_unique<Stubs>(
          OpenChannel(address, grpc::SslCredentials({ca, client.key, client.certificate})))) {}

PluginClient::~PluginClient() = default;

absl::StatusOr<pb::DescribeResponse> PluginClient::Describe() {
  return stubs_->Call(&pb::Scaler::Stub::Describe, pb::DescribeRequest(), absl::Seconds(5));
}

absl::StatusOr<pb::ValidateTriggerResponse> PluginClient::Validate(const pb::Trigger& trigger) {
  pb::ValidateTriggerRequest request;
  *request.mutable_trigger() = trigger;
  return stubs_->Call(&pb::Scaler::Stub::ValidateTrigger, request, absl::Seconds(5));
}

absl::StatusOr<pb::GetMetricSpecForScalingResponse> PluginClient::Specs(
    const pb::Trigger& trigger) {
  pb::GetMetricSpecForScalingRequest request;
  *request.mutable_trigger() = trigger;
  return stubs_->Call(&pb::Scaler::Stub::GetMetricSpecForScaling, request, absl::Seconds(5));
}

absl::StatusOr<pb::GetMetricsResponse> PluginClient::Metrics(const pb::GetMetricsRequest& request,
                                                             absl::Duration timeout) {
  return stubs_->Call(&pb::Scaler::Stub::GetMetrics, request, timeout);
}

absl::StatusOr<pb::GetMetricsResponse> PluginClient::Metrics(const pb::Trigger& trigger,
                                                             absl::Duration timeout) {
  pb::GetMetricsRequest request;
  *request.mutable_trigger() = trigger;
  return Metrics(request, timeout);
}

absl::Status PluginClient::Batch(
    const pb::BatchGetMetricsRequest& request, absl::Duration timeout,
    const std::function<void(const pb::BatchGetMetricsResponse&)>& each) {
  grpc::ClientContext context;
  SetDeadline(context, timeout);
  const auto reader = stubs_->scaler->BatchGetMetrics(&context, request);
  pb::BatchGetMetricsResponse response;
  while (reader->Read(&response)) each(response);
  return host::FromGrpc(reader->Finish());
}

absl::StatusOr<std::string> PluginClient::Health(const std::string& service) {
  grpc::ClientContext context;
  SetDeadline(context, absl::Seconds(5));
  grpc::health::v1::HealthCheckRequest request;
  request.set_service(service);
  grpc::health::v1::HealthCheckResponse response;
  const grpc::Status status = stubs_->health->Check(&context, request, &response);
  if (!status.ok()) return host::FromGrpc(status);
  return grpc::health::v1::HealthCheckResponse::ServingStatus_Name(response.status());
}

absl::Status PluginClient::Watch() {
  grpc::ClientContext context;
  SetDeadline(context, absl::Seconds(5));
  const auto stream = stubs_->scaler->WatchMetrics(&context);
  pb::WatchMetricsResponse response;
  while (stream->Read(&response)) {
  }
  return host::FromGrpc(stream->Finish());
}

pb::Trigger MakeTrigger(absl::string_view type, const std::map<std::string, std::string>& metadata,
                        const std::map<std::string, std::string>& authentication) {
  pb::Trigger trigger;
  trigger.set_type(std::string(type));
  trigger.mutable_metadata()->insert(metadata.begin(), metadata.end());
  trigger.mutable_authentication()->insert(authentication.begin(), authentication.end());
  return trigger;
}

}  // namespace outrigger::tests
