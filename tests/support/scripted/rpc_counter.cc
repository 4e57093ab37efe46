// SPDX-License-Identifier: Apache-2.0
#include "tests/support/scripted/rpc_counter.h"

#include <grpcpp/impl/server_builder_plugin.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/server_interceptor.h>

#include <memory>
#include <utility>
#include <vector>

#include "host/base/mutex.h"

namespace outrigger::tests {
namespace {

struct Counts {
  host::Mutex mutex;
  std::map<std::string, int64_t> by_method ABSL_GUARDED_BY(mutex);
};

// Of the process, since gRPC makes the plugins below by a function that knows nothing.
Counts& ProcessCounts() {
  static Counts& counts = *new Counts;
  return counts;
}

// Asked once for each RPC; there is nothing to intercept.
class CountEach : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* info) override {
    Counts& counts = ProcessCounts();
    host::MutexLock lock(&counts.mutex);
    ++counts.by_method[info->method()];
    return nullptr;
  }
};

// How a server is reached that others build: as gRPC's own reflection does it.
class CounterPlugin : public grpc::ServerBuilderPlugin {
 public:
  static std::unique_ptr<grpc::ServerBuilderPlugin> Make() {
    return std::make_unique<CounterPlugin>();
  }
  std::string name() override { return "rpc_counter"; }
  void UpdateServerBuilder(grpc::ServerBuilder* builder) override {
    std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> creators;
    creators.push_back(std::make_unique<CountEach>());
    builder->experimental().SetInterceptorCreators(std::move(creators));
  }
  void InitServer(grpc::ServerInitializer*) override {}
  void Finish(grpc::ServerInitializer*) override {}
  void ChangeArguments(const std::string&, void*) override {}
};

}  // namespace

void CountRpcs() { grpc::ServerBuilder::InternalAddPluginFactory(&CounterPlugin::Make); }

std::map<std::string, int64_t> RpcCounts() {
  Counts& counts = ProcessCounts();
  host::MutexLock lock(&counts.mutex);
  return counts.by_method;
}

}  // namespace outrigger::tests
