// SPDX-License-Identifier: Apache-2.0
#include "tests/e2e/scene.h"

#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>
#include <gtest/gtest.h>

#include <utility>

#include "tests/support/wait_for.h"

namespace outrigger::tests {
namespace {

void MustBeOk(const absl::Status& status) { ASSERT_TRUE(status.ok()) << status; }

}  // namespace

std::string DeploymentYaml(const std::string& namespace_name, const std::string& name,
                           int replicas) {
  return absl::StrCat("{apiVersion: apps/v1, kind: Deployment, metadata: {name: ", name,
                      ", namespace: ", namespace_name, "}, spec: {replicas: ", replicas,
                      ", selector: {matchLabels: {app: ", name,
                      "}}, template: {metadata: {labels: {app: ", name,
                      "}}, spec: {containers: [{name: c, image: i}]}}}}");
}

std::string ScaledObjectYaml(const std::string& namespace_name, const std::string& name,
                             const std::string& list, const std::string& address,
                             const std::string& spec) {
  return absl::StrCat("{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: ", name,
                      ", namespace: ", namespace_name, "}, spec: {scaleTargetRef: {name: ", name,
                      "}, pollingInterval: 1, cooldownPeriod: 2, maxReplicaCount: 10, ",
                      spec.empty() ? "" : absl::StrCat(spec, ", "),
                      "triggers: [{type: redis, metadata: {address: \"", address,
                      "\", listName: ", list, ", listLength: \"5\"}}]}}");
}

Scene::Scene(ControlPlane& plane, std::string namespace_name)
    : plane_(plane), namespace_(std::move(namespace_name)) {
  MustBeOk(plane_.CreateNamespace(namespace_));
}

Scene::~Scene() {
  // Without an operator nobody takes the finalizers off; so the objects go first.
  if (operator_ != nullptr && operator_->process().Running()) {
    (void)plane_.Kubectl({"-n", namespace_, "delete", "so", "--all", "--timeout=20s"});
  }
  const bool had_operator = operator_ != nullptr;
  operator_.reset();
  // It was killed, and the next test's operator need not wait until its lease is over.
  if (had_operator) {
    (void)plane_.Kubectl(
        {"-n", "outrigger", "delete", "lease", "outrigger-operator", "--ignore-not-found"});
  }
  plugin_.reset();
  redis_.reset();
}

void Scene::StartRedis() {
  absl::StatusOr<std::unique_ptr<RedisServer>> started = RedisServer::Start();
  MustBeOk(started.status());
  redis_ = *std::move(started);
}

void Scene::StartPlugin() {
  absl::StatusOr<std::unique_ptr<Process>> started =
      tests::StartPlugin(plugins_, "redis", "outrigger-scaler-redis");
  MustBeOk(started.status());
  plugin_ = *std::move(started);
}

void Scene::StartOperator(OperatorProcess::Options options) {
  absl::StatusOr<std::unique_ptr<OperatorProcess>> started =
      OperatorProcess::Start(std::move(options));
  MustBeOk(started.status());
  operator_ = *std::move(started);
  MustBeOk(plane_.RegisterExternalMetrics(operator_->metrics_api_port(),
                                          plane_.pki().authority().certificate()));
}

void Scene::StartAll() {
  StartRedis();
  StartPlugin();
  StartOperator();
}

void Scene::Apply(const std::string& yaml) { MustBeOk(plane_.Apply(yaml)); }

std::string Scene::ScaledObjectYaml(const std::string& name, const std::string& list,
                                    const std::string& spec, const std::string& address) const {
  return tests::ScaledObjectYaml(namespace_, name, list,
                                 address.empty() ? redis_->address() : address, spec);
}

void Scene::Delete(const std::string& kind, const std::string& name) {
  MustBeOk(plane_.MustKubectl({"-n", namespace_, "delete", kind, name, "--timeout=30s"}).status());
}

void Scene::Patch(const std::string& kind, const std::string& name,
                  const std::string& merge_patch) {
  MustBeOk(
      plane_.MustKubectl({"-n", namespace_, "patch", kind, name, "--type=merge", "-p", merge_patch})
          .status());
}

void Scene::Push(const std::string& list, int items) {
  std::vector<std::string> command = {"RPUSH", list};
  for (int i = 0; i < items; ++i) command.push_back(absl::StrCat("item-", i));
  MustBeOk(redis_->Command(command).status());
}

void Scene::Drain(const std::string& list) { MustBeOk(redis_->Command({"DEL", list}).status()); }

std::string Scene::PluginLog() const {
  return ReadFile(plugins_.dir().File("redis/plugin.log")).value_or("");
}

std::string Scene::Get(const std::string& what, const std::string& name, const std::string& path) {
  std::vector<std::string> arguments = {"-n", namespace_, "get", what};
  if (!name.empty()) arguments.push_back(name);
  arguments.insert(arguments.end(), {"-o", absl::StrCat("jsonpath={", path, "}")});
  return plane_.MustKubectl(std::move(arguments)).value_or("");
}

std::string Scene::Condition(const std::string& name, const std::string& type,
                             const std::string& field) {
  return Get("so", name, absl::StrCat(".status.conditions[?(@.type=='", type, "')].", field));
}

void Scene::WaitUntil(const std::string& name, const std::string& what, absl::Duration timeout,
                      const std::function<bool()>& condition) {
  const absl::Status reached = WaitFor(condition, timeout, what, [&] {
    return absl::StrCat("replicas ", Replicas(name), "\nstatus ", Get("so", name, ".status"),
                        "\nHPA ", Get("hpa", absl::StrCat("keda-hpa-", name), ".status"),
                        "\noperator ",
                        operator_ == nullptr ? "" : operator_->process().OutputTail());
  });
  ASSERT_TRUE(reached.ok()) << reached;
}

void Scene::StaysTrue(const std::string& what, absl::Duration time,
                      const std::function<bool()>& condition) {
  const absl::Time end = absl::Now() + time;
  bool broken = false;
  const absl::Status watched = WaitFor(
      [&] {
        broken = !condition();
        return broken || absl::Now() >= end;
      },
      time + absl::Seconds(30), what, [] { return "watching"; });
  ASSERT_TRUE(watched.ok()) << watched;
  ASSERT_FALSE(broken) << "no longer true: " << what;
}

}  // namespace outrigger::tests
