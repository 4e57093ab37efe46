// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/strings/string_view.h>
#include <absl/time/time.h>

#include <boost/json/value.hpp>
#include <memory>
#include <string>
#include <vector>

#include "tests/cluster/control_plane.h"
#include "tests/e2e/operator_process.h"
#include "tests/support/process.h"
#include "tests/support/redis_server.h"

namespace outrigger::tests {

// The stage of one test: a namespace of a control plane, a Redis, the redis plugin and an operator,
// each of which the test may start, stop and kill when it likes. Everything is ended with the
// scene.
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

  void ApplyDeployment(const std::string& name, int replicas);
  // `spec` is more YAML of the spec, `metadata` more of the trigger's metadata, both in flow style:
  // "minReplicaCount: 1".
  void ApplyScaledObject(const std::string& name, const std::string& list,
                         const std::string& spec = "", const std::string& address = "");
  void Apply(const std::string& yaml);
  void Delete(const std::string& kind, const std::string& name);
  void Push(const std::string& list, int items);
  void Drain(const std::string& list);

  // jsonpath of one object; "" when it is not there.
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

// One request that the API server logged.
struct AuditedRequest {
  std::string verb;
  std::string resource;  // "scaledobjects/status"
  std::string namespace_name;
  std::string name;
  std::string user_agent;
  int code = 0;
  absl::Time at;
};
// What `user` ("system:serviceaccount:<namespace>:<name>") asked for since `since`.
std::vector<AuditedRequest> RequestsOf(const ControlPlane& plane, absl::string_view user,
                                       absl::Time since);
// Those of them that write: create, update, patch, delete; less Leases and SubjectAccessReviews.
std::vector<AuditedRequest> WritesOf(const ControlPlane& plane, absl::string_view user,
                                     absl::Time since);
// The same of the operator's service account.
std::vector<AuditedRequest> OperatorRequests(const ControlPlane& plane, absl::Time since);
std::vector<AuditedRequest> OperatorWrites(const ControlPlane& plane, absl::Time since);
std::string Print(const std::vector<AuditedRequest>& requests);

}  // namespace outrigger::tests
