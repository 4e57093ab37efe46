// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/server.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "host/base/fake_clock.h"
#include "host/base/real_clock.h"
#include "operator/kube/http_api.h"
#include "operator/kube/memory_api.h"
#include "tests/cluster/control_plane.h"
#include "tests/operator/kube/task_runner.h"
#include "tests/simulation/seeded_executor.h"

namespace outrigger::conformance {
namespace {

namespace kube = controller::kube;

constexpr absl::Duration kPatience = absl::Seconds(20);

class MemoryServer : public Server {
 public:
  kube::Api& api() override { return api_; }
  host::Clock& clock() override { return clock_; }
  void Spawn(host::Task<void> task) override {
    boost::asio::co_spawn(executor_.executor(), std::move(task), boost::asio::detached);
  }
  bool Until(const std::function<bool()>& done) override {
    return executor_.RunUntil(done, kPatience);
  }
  absl::Status CreateNamespace(const std::string&) override { return absl::OkStatus(); }
  void ForgetHistory() override { api_.Compact(); }

 private:
  host::FakeClock clock_;
  // Versions far from other numbers in messages; garbage is collected as in a cluster, with a delay
  // that nobody can tell from the real one's.
  kube::MemoryApi api_{clock_, {.store = {.first_version = 1'000'000}}};
  simulation::SeededExecutor executor_{clock_, 1};
};

tests::ControlPlane& Cluster() {
  static const std::unique_ptr<tests::ControlPlane> kCluster = [] {
    tests::ControlPlane::Options options;
    // What else writes the kinds that are compared.
    options.controller_manager_arguments = {
        "--controllers=-deployment-controller,-statefulset-controller,"
        "-horizontal-pod-autoscaler-controller,-root-ca-certificate-publisher-controller"};
    auto started = tests::ControlPlane::Start(std::move(options));
    absl::Status status = started.status();
    if (status.ok()) status = (*started)->ApplyDeployFiles();
    if (!status.ok()) {
      std::fprintf(stderr, "control plane: %s\n", status.ToString().c_str());
      std::abort();
    }
    return *std::move(started);
  }();
  return *kCluster;
}

class RealServer : public Server {
 public:
  RealServer() : config_(kube::LoadKubeconfig(Cluster().admin_kubeconfig(), "")) {
    if (!config_.ok()) {
      std::fprintf(stderr, "kubeconfig: %s\n", config_.status().ToString().c_str());
      std::abort();
    }
    kube::HttpApi::Options options;
    options.config = *config_;
    api_ = std::make_unique<kube::HttpApi>(clock_, host::Logger(host::MakeNullSink()),
                                           std::move(options));
  }
  ~RealServer() override { api_->Stop(); }

  kube::Api& api() override { return *api_; }
  host::Clock& clock() override { return clock_; }
  void Spawn(host::Task<void> task) override { runner_.Spawn(std::move(task)); }
  bool Until(const std::function<bool()>& done) override {
    const host::Deadline deadline = host::Deadline::After(clock_, kPatience);
    while (!done()) {
      if (deadline.Expired(clock_)) return false;
      runner_.Run(Tick());
    }
    return true;
  }
  absl::Status CreateNamespace(const std::string& name) override {
    const kube::Resource namespaces{"", "v1", "namespaces", false};
    boost::json::value object = {
        {"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", name}}}};
    return runner_
        .Run(api_->Create(namespaces, "", std::move(object), {},
                          host::Deadline::After(clock_, kPatience)))
        .status();
  }
  void ForgetHistory() override {}  // its cache of custom resources began with their definition

 private:
  host::Task<bool> Tick() {
    co_await clock_.Sleep(absl::Milliseconds(1));
    co_return true;
  }

  host::RealClock clock_;
  absl::StatusOr<kube::ApiConfig> config_;
  std::unique_ptr<kube::HttpApi> api_;
  tests::TaskRunner runner_;
};

}  // namespace

std::unique_ptr<Server> MakeMemoryServer() { return std::make_unique<MemoryServer>(); }
std::unique_ptr<Server> MakeRealServer() { return std::make_unique<RealServer>(); }

}  // namespace outrigger::conformance
