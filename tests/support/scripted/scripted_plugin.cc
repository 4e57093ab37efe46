// SPDX-License-Identifier: Apache-2.0
#include "tests/support/scripted/scripted_plugin.h"

#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>

#include <chrono>

#include "host/base/grpc_status.h"
#include "host/base/status.h"
#include "tests/support/scripted/script.grpc.pb.h"

namespace outrigger::tests {
namespace {

constexpr std::chrono::seconds kTimeout(5);

std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 200);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace

struct ScriptedPlugin::Stub {
  std::unique_ptr<test::v1::Script::Stub> script;
};

ScriptedPlugin::ScriptedPlugin(std::unique_ptr<PluginProcess> plugin)
    : plugin_(std::move(plugin)),
      stub_(new Stub{test::v1::Script::NewStub(OpenChannel(plugin_->socket_address()))}) {}

ScriptedPlugin::~ScriptedPlugin() = default;

absl::StatusOr<std::unique_ptr<ScriptedPlugin>> ScriptedPlugin::Start(Options options) {
  ASSIGN_OR_RETURN(std::unique_ptr<PluginProcess> plugin,
                   PluginProcess::Start({.binary = "outrigger-test-scripted",
                                         .name = options.name,
                                         .flags = {"--announce", options.announce},
                                         .folder = options.folder,
                                         .tcp = false}));
  return std::unique_ptr<ScriptedPlugin>(new ScriptedPlugin(std::move(plugin)));
}

absl::Status ScriptedPlugin::Set(const std::string& script, const test::v1::Behaviour& behaviour) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kTimeout);
  context.set_wait_for_ready(true);
  test::v1::SetRequest request;
  request.set_script(script);
  *request.mutable_behaviour() = behaviour;
  test::v1::SetResponse response;
  return host::FromGrpc(stub_->script->Set(&context, request, &response));
}

absl::Status ScriptedPlugin::SetValue(const std::string& script, double value) {
  test::v1::Behaviour behaviour;
  behaviour.add_values()->set_value(value);
  return Set(script, behaviour);
}

absl::Status ScriptedPlugin::SetError(const std::string& script, const absl::Status& error) {
  test::v1::Behaviour behaviour;
  behaviour.set_code(static_cast<int>(error.code()));
  behaviour.set_message(std::string(error.message()));
  return Set(script, behaviour);
}

absl::StatusOr<test::v1::CallsResponse> ScriptedPlugin::Calls(const std::string& script) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kTimeout);
  context.set_wait_for_ready(true);
  test::v1::CallsRequest request;
  request.set_script(script);
  test::v1::CallsResponse response;
  RETURN_IF_ERROR(host::FromGrpc(stub_->script->Calls(&context, request, &response)));
  return response;
}

}  // namespace outrigger::tests
