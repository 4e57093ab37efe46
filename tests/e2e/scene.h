// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/strings/string_view.h>
#include <absl/time/time.h>

#include <functional>
#include <memory>
#include <string>

#include "tests/cluster/control_plane.h"
#include "tests/e2e/operator_audit.h"
#include "tests/e2e/operator_process.h"
#include "tests/support/process.h"
#include "tests/support/redis_server.h"

namespace outrigger::tests {

// A Deployment, and a ScaledObject that scales the Deployment of its name by the length of a Redis
// list, 5 items per replica. `spec`: more YAML of the spec in flow style, "minReplicaCount: 1".
// One document each: Join several with "\n---\n".
std::string DeploymentYaml(const std::string& namespace_name, const std::string& name,
                           int replicas);
std::string ScaledObjectYaml(const std::string& namespace_name, const std::string& name,
                             const std::string& list, const std::string& address,
                             const std::string& spec = "");

// The stage of one test: a namespace of a control plane, a Redis, the redis plugin and an operator,
// each of which the test may start, stop and kill when it likes. Everything is ended with the
// scene, the lease of its operator too.
class Scene {
 public:
  // `namespace_name` is made.
  Scene(ControlPlane& plane, std::string namespace_name);
  ~Scene();

  void StartRedis();
  void StartPlugin();
  // With the metrics APIService pointing to it.
  void StartOperator(OperatorProcess::Options options);
  void StartOperator() { StartOperator({.plane = plane_, .plugin_dir = plugins_.path()}); }
  void StartAll();

  void ApplyDeployment(const std::string& name, int replicas) {
    Apply(DeploymentYaml(name, replicas));
  }
  // `address`: "" is that of the scene's Redis.
  void ApplyScaledObject(const std::string& name, const std::string& list,
                         const std::string& spec = "", const std::string& address = "") {
    Apply(ScaledObjectYaml(name, list, spec, address));
  }
  void Apply(const std::string& yaml);
  // The same, for many objects in one Apply().
  std::string DeploymentYaml(const std::string& name, int replicas) const {
    return tests::DeploymentYaml(namespace_, name, replicas);
  }
  std::string ScaledObjectYaml(const std::string& name, const std::string& list,
                               const std::string& spec = "", const std::string& address = "") const;
  void Delete(const std::string& kind, const std::string& name);
  void Patch(const std::string& kind, const std::string& name, const std::string& merge_patch);
  void Push(const std::string& list, int items);
  void Drain(const std::string& list);

  // All that the redis plugin of this scene, and those before it, have logged.
  std::string PluginLog() const;
  // jsonpath of one object, or with the name "" of the list of all; "" when it is not there.
  std::string Get(const std::string& what, const std::string& name, const std::string& path);
  std::string Replicas(const std::string& name) {
    return Get("deployment", name, ".spec.replicas");
  }
  std::string Condition(const std::string& name, const std::string& type,
                        const std::string& field = "status");
  // Fails the test, with what it last saw, the status of `name` and the end of the operator's log.
  void WaitUntil(const std::string& name, const std::string& what, absl::Duration timeout,
                 const std::function<bool()>& condition);
  // Fails the test when `condition` is once not true within `time`.
  void StaysTrue(const std::string& what, absl::Duration time,
                 const std::function<bool()>& condition);

  ControlPlane& plane() { return plane_; }
  const std::string& namespace_name() const { return namespace_; }
  const PluginDir& plugins() const { return plugins_; }
  RedisServer& redis() { return *redis_; }

  std::unique_ptr<RedisServer> redis_;
  std::unique_ptr<Process> plugin_;
  std::unique_ptr<OperatorProcess> operator_;

 private:
  ControlPlane& plane_;
  const std::string namespace_;
  PluginDir plugins_;
};

}  // namespace outrigger::tests
