// SPDX-License-Identifier: Apache-2.0
#include "tests/e2e/scene.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/time/clock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <fstream>
#include <utility>

#include "operator/api/object_reader.h"
#include "tests/support/wait_for.h"

namespace outrigger::tests {
namespace {

namespace json = boost::json;

constexpr char kOperatorUser[] = "system:serviceaccount:outrigger:outrigger-operator";

void MustBeOk(const absl::Status& status) { ASSERT_TRUE(status.ok()) << status; }

}  // namespace

Scene::Scene(ControlPlane& plane, std::string namespace_name)
    : plane_(plane), namespace_(std::move(namespace_name)) {
  MustBeOk(plane_.CreateNamespace(namespace_));
}

Scene::~Scene() {
  // Without an operator nobody takes the finalizers off; so the objects go first.
  if (operator_ != nullptr && operator_->process().Running()) {
    (void)plane_.Kubectl({"-n", namespace_, "delete", "so", "--all", "--timeout=20s"});
  }
  operator_.reset();
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

void Scene::ApplyDeployment(const std::string& name, int replicas) {
  Apply(absl::StrCat("{apiVersion: apps/v1, kind: Deployment, metadata: {name: ", name,
                     ", namespace: ", namespace_, "}, spec: {replicas: ", replicas,
                     ", selector: {matchLabels: {app: ", name,
                     "}}, template: {metadata: {labels: {app: ", name,
                     "}}, spec: {containers: [{name: c, image: i}]}}}}"));
}

void Scene::ApplyScaledObject(const std::string& name, const std::string& list,
                              const std::string& spec, const std::string& address) {
  Apply(absl::StrCat("{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: ", name,
                     ", namespace: ", namespace_, "}, spec: {scaleTargetRef: {name: ", name,
                     "}, pollingInterval: 1, cooldownPeriod: 2, maxReplicaCount: 10, ",
                     spec.empty() ? "" : absl::StrCat(spec, ", "),
                     "triggers: [{type: redis, metadata: {address: \"",
                     address.empty() ? redis_->address() : address, "\", listName: ", list,
                     ", listLength: \"5\"}}]}}"));
}

void Scene::Delete(const std::string& kind, const std::string& name) {
  MustBeOk(plane_.MustKubectl({"-n", namespace_, "delete", kind, name, "--timeout=30s"}).status());
}

void Scene::Push(const std::string& list, int items) {
  std::vector<std::string> command = {"RPUSH", list};
  for (int i = 0; i < items; ++i) command.push_back(absl::StrCat("item-", i));
  MustBeOk(redis_->Command(command).status());
}

void Scene::Drain(const std::string& list) { MustBeOk(redis_->Command({"DEL", list}).status()); }

std::string Scene::Get(const std::string& what, const std::string& name, const std::string& path) {
  return plane_
      .MustKubectl(
          {"-n", namespace_, "get", what, name, "-o", absl::StrCat("jsonpath={", path, "}")})
      .value_or("");
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

std::vector<AuditedRequest> RequestsOf(const ControlPlane& plane, absl::string_view user,
                                       absl::Time since) {
  std::vector<AuditedRequest> requests;
  std::ifstream log(plane.audit_log());
  std::string line;
  while (std::getline(log, line)) {
    if (line.find(user.data(), 0, user.size()) == std::string::npos) continue;  // most are others'
    boost::system::error_code error;
    const json::value event = json::parse(line, error);
    if (error || !event.is_object()) continue;
    const json::object& object = event.get_object();
    if (object.at("stage") != "ResponseComplete") continue;
    const json::value* name = object.at("user").get_object().if_contains("username");
    if (name == nullptr || *name != json::string_view(user.data(), user.size())) continue;
    AuditedRequest request;
    controller::api::ObjectReader reader("", event);
    reader.Read("verb", request.verb);
    reader.Read("userAgent", request.user_agent);
    std::string at;
    reader.Read("requestReceivedTimestamp", at);
    std::string parse_error;
    absl::ParseTime(absl::RFC3339_full, at, &request.at, &parse_error);
    if (request.at < since) continue;
    if (const json::value* ref = reader.FindObject("objectRef")) {
      controller::api::ObjectReader ref_reader("objectRef", *ref);
      std::string subresource;
      ref_reader.Read("resource", request.resource);
      ref_reader.Read("subresource", subresource);
      ref_reader.Read("namespace", request.namespace_name);
      ref_reader.Read("name", request.name);
      if (!subresource.empty()) absl::StrAppend(&request.resource, "/", subresource);
    }
    if (const json::value* status = reader.FindObject("responseStatus")) {
      int32_t code = 0;
      controller::api::ObjectReader("responseStatus", *status).Read("code", code);
      request.code = code;
    }
    requests.push_back(std::move(request));
  }
  return requests;
}

std::vector<AuditedRequest> WritesOf(const ControlPlane& plane, absl::string_view user,
                                     absl::Time since) {
  std::vector<AuditedRequest> writes = RequestsOf(plane, user, since);
  std::erase_if(writes, [](const AuditedRequest& request) {
    const bool reads = request.verb == "get" || request.verb == "list" || request.verb == "watch";
    return reads || request.resource == "leases" || request.resource == "subjectaccessreviews";
  });
  return writes;
}

std::vector<AuditedRequest> OperatorRequests(const ControlPlane& plane, absl::Time since) {
  return RequestsOf(plane, kOperatorUser, since);
}

std::vector<AuditedRequest> OperatorWrites(const ControlPlane& plane, absl::Time since) {
  return WritesOf(plane, kOperatorUser, since);
}

std::string Print(const std::vector<AuditedRequest>& requests) {
  return absl::StrJoin(requests, "\n", [](std::string* out, const AuditedRequest& request) {
    absl::StrAppend(out, absl::FormatTime("%H:%M:%E3S", request.at, absl::UTCTimeZone()), " ",
                    request.verb, " ", request.resource, " ", request.namespace_name, "/",
                    request.name, " ", request.code, " ", request.user_agent);
  });
}

}  // namespace outrigger::tests
