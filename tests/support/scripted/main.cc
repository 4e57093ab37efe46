// SPDX-License-Identifier: Apache-2.0
// outrigger-test-scripted: a plugin that answers what a test tells it to, bad values and all.
#include <absl/strings/match.h>
#include <absl/strings/str_split.h>
#include <grpcpp/support/server_callback.h>

#include <CLI/CLI.hpp>

#include "host/base/real_clock.h"
#include "host/kit/serve.h"
#include "tests/support/scripted/rpc_counter.h"
#include "tests/support/scripted/script.grpc.pb.h"
#include "tests/support/scripted/scripted_scaler.h"

namespace outrigger::tests {
namespace {

constexpr char kOwnMethods[] = "/outrigger.test.v1.Script/";

class ScriptService : public test::v1::Script::CallbackService {
 public:
  explicit ScriptService(ScriptBook& book) : book_(book) {}

  grpc::ServerUnaryReactor* Set(grpc::CallbackServerContext* context,
                                const test::v1::SetRequest* request,
                                test::v1::SetResponse*) override {
    book_.Set(request->script(), request->behaviour());
    return Done(context);
  }

  grpc::ServerUnaryReactor* Calls(grpc::CallbackServerContext* context,
                                  const test::v1::CallsRequest* request,
                                  test::v1::CallsResponse* response) override {
    *response = book_.Calls(request->script());
    for (const auto& [method, count] : RpcCounts()) {
      if (!absl::StartsWith(method, kOwnMethods)) (*response->mutable_rpcs())[method] = count;
    }
    return Done(context);
  }

 private:
  static grpc::ServerUnaryReactor* Done(grpc::CallbackServerContext* context) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  ScriptBook& book_;
};

int Main(int argc, char** argv) {
  CountRpcs();
  host::RealClock clock;
  ScriptBook book;
  ScriptService service(book);
  std::string announce = "scripted";
  host::kit::PluginOptions options;
  options.name = "outrigger-test-scripted";
  options.description = "Answers what a test sets.";
  options.check_answers = false;
  options.cached_triggers = 0;  // so that a changed script is seen at once
  options.extra_services = {&service};
  options.add_flags = [&announce](CLI::App& app) {
    app.add_option("--announce", announce, "trigger types to announce, comma separated");
  };
  options.make_scalers = [&](const host::kit::PluginContext& context) {
    std::vector<std::unique_ptr<host::kit::TriggerScaler>> scalers;
    for (const std::string& type : std::vector<std::string>(absl::StrSplit(announce, ','))) {
      scalers.push_back(std::make_unique<ScriptedScaler>(type, context.clock, book));
    }
    return scalers;
  };
  return host::kit::ServePlugin(std::move(options), argc, argv, clock);
}

}  // namespace
}  // namespace outrigger::tests

int main(int argc, char** argv) { return outrigger::tests::Main(argc, argv); }
