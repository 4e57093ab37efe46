// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/stage.h"

#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>

#include <boost/json/parse.hpp>
#include <cstdio>
#include <utility>

#include "host/base/status.h"
#include "tests/support/wait_for.h"

namespace outrigger::bench {
namespace json = boost::json;

namespace {

constexpr int kConnections = 16;
constexpr char kScaledObjects[] = "/apis/keda.sh/v1alpha1/namespaces/bench/scaledobjects";
constexpr char kDeployments[] = "/apis/apps/v1/namespaces/bench/deployments";
// From the API server's own cache; 1 item, and the number of those that are left out.
constexpr char kOneReplicaSet[] = "/apis/apps/v1/namespaces/bench/replicasets?limit=1";
constexpr char kTable[] = "application/json;as=Table;v=v1;g=meta.k8s.io";

std::string DeploymentOf(const ObjectSpec& object) {
  return absl::StrCat(R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":")",
                      object.name, R"("},"spec":{"replicas":0,"selector":{"matchLabels":{"app":")",
                      object.name, R"("}},"template":{"metadata":{"labels":{"app":")", object.name,
                      R"("}},"spec":{"containers":[{"name":"c","image":"i"}]}}}})");
}

std::string ScaledObjectOf(const ObjectSpec& object, int polling_seconds) {
  return absl::StrCat(
      R"({"apiVersion":"keda.sh/v1alpha1","kind":"ScaledObject","metadata":{"name":")", object.name,
      R"("},"spec":{"scaleTargetRef":{"name":")", object.name, R"("},"pollingInterval":)",
      polling_seconds, R"(,"triggers":[{"type":")", object.trigger_type, R"(","metadata":{)",
      object.metadata, "}}]}}");
}

absl::StatusOr<json::object> ParseObject(const std::string& text) {
  boost::system::error_code error;
  json::value value = json::parse(text, error);
  if (error || !value.is_object()) {
    return absl::InternalError(absl::StrCat("want a JSON object, got ", text.substr(0, 200)));
  }
  return std::move(value.get_object());
}

// The rows of a Table whose column `name` says "True".
absl::StatusOr<int> CountTrue(const json::object& table, absl::string_view name) {
  const json::value* columns = table.if_contains("columnDefinitions");
  const json::value* rows = table.if_contains("rows");
  if (columns == nullptr || rows == nullptr) return absl::InternalError("want a Table");
  size_t index = 0;
  const json::array& definitions = columns->as_array();
  while (index < definitions.size() &&
         definitions[index].at("name") != json::string_view(name.data(), name.size())) {
    ++index;
  }
  if (index == definitions.size()) {
    return absl::InternalError(absl::StrCat("the Table has no column ", name));
  }
  if (!rows->is_array()) return 0;  // null where there are none
  int count = 0;
  for (const json::value& row : rows->get_array()) count += row.at("cells").at(index) == "True";
  return count;
}

absl::Status WaitUntilLeading(tests::OperatorProcess& controller) {
  return tests::WaitForOk(
      [&]() -> absl::Status {
        ASSIGN_OR_RETURN(const std::string metrics,
                         tests::OperatorProcess::HttpGet(controller.metrics_port(), "/metrics"));
        if (metrics.find("\noutrigger_leader 1") != std::string::npos) return absl::OkStatus();
        return absl::UnavailableError("outrigger_leader is not 1");
      },
      absl::Seconds(60), "the operator leads");
}

}  // namespace

void Say(const std::string& what) {
  std::fprintf(stderr, "%s %s\n",
               absl::FormatTime("%H:%M:%S", absl::Now(), absl::UTCTimeZone()).c_str(),
               what.c_str());
}

absl::StatusOr<std::unique_ptr<Stage>> Stage::Start(Crds crds) {
  auto stage = std::make_unique<Stage>();
  ASSIGN_OR_RETURN(stage->plane_,
                   tests::ControlPlane::Start({.hpa_sync_period = absl::Seconds(15)}));
  RETURN_IF_ERROR(crds == Crds::kOurs ? stage->plane_->ApplyDeployFiles()
                                      : stage->plane_->ApplyDeployFilesWithKedaCrds());
  RETURN_IF_ERROR(stage->plane_->CreateNamespace("bench"));
  stage->load_ = std::make_unique<HttpLoad>(*stage->plane_, kConnections);
  return stage;
}

absl::Status Stage::StartOperator() {
  ASSIGN_OR_RETURN(
      operator_, tests::OperatorProcess::Start({.plane = *plane_, .plugin_dir = plugins_.path()}));
  RETURN_IF_ERROR(plane_->RegisterExternalMetrics(operator_->metrics_api_port(),
                                                  plane_->pki().authority().certificate()));
  return WaitUntilLeading(*operator_);
}

absl::Status Stage::CreateAll(const std::string& path, const std::vector<std::string>& bodies) {
  std::vector<HttpRequest> requests;
  requests.reserve(bodies.size());
  for (const std::string& body : bodies) requests.push_back({.path = path, .body = body});
  const LoadResult result = load_->Send(requests);
  if (result.first_failure.empty()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("POST ", path, ": ", result.first_failure));
}

absl::Status Stage::CreateDeployments(const std::vector<ObjectSpec>& objects) {
  ASSIGN_OR_RETURN(const int before, CountReplicaSets());
  std::vector<std::string> bodies;
  bodies.reserve(objects.size());
  for (const ObjectSpec& object : objects) bodies.push_back(DeploymentOf(object));
  RETURN_IF_ERROR(CreateAll(kDeployments, bodies));
  const int wanted = before + static_cast<int>(objects.size());
  return tests::WaitForOk(
      [&]() -> absl::Status {
        ASSIGN_OR_RETURN(const int count, CountReplicaSets());
        if (count >= wanted) return absl::OkStatus();
        return absl::UnavailableError(absl::StrCat(count, " of ", wanted));
      },
      absl::Minutes(5), "the ReplicaSets of all Deployments");
}

absl::StatusOr<int> Stage::CountReplicaSets() {
  ASSIGN_OR_RETURN(const std::string text, load_->Ask({.path = kOneReplicaSet}));
  ASSIGN_OR_RETURN(const json::object list, ParseObject(text));
  const json::value* left = list.at("metadata").as_object().if_contains("remainingItemCount");
  const int listed = static_cast<int>(list.at("items").as_array().size());
  return left == nullptr ? listed : listed + static_cast<int>(left->to_number<int64_t>());
}

absl::Status Stage::CreateScaledObjects(const std::vector<ObjectSpec>& objects,
                                        int polling_seconds) {
  std::vector<std::string> bodies;
  bodies.reserve(objects.size());
  for (const ObjectSpec& object : objects) {
    bodies.push_back(ScaledObjectOf(object, polling_seconds));
  }
  return CreateAll(kScaledObjects, bodies);
}

absl::StatusOr<int> Stage::CountReady(const std::string& name) {
  std::string path = absl::StrCat(kScaledObjects, "?resourceVersion=0&includeObject=None");
  if (!name.empty()) absl::StrAppend(&path, "&fieldSelector=metadata.name%3D", name);
  ASSIGN_OR_RETURN(const std::string text, load_->Ask({.path = path, .accept = kTable}));
  ASSIGN_OR_RETURN(const json::object table, ParseObject(text));
  return CountTrue(table, "Ready");
}

absl::Status Stage::WaitUntilReady(int count, absl::Duration timeout, const std::string& name) {
  // Lists of 1,000 cost the API server something: a tenth of its time at most.
  absl::Time next = absl::Now();
  int ready = 0;
  absl::Status failed;
  const absl::Status waited = tests::WaitFor(
      [&] {
        const absl::Time start = absl::Now();
        if (start < next) return false;
        const absl::StatusOr<int> counted = CountReady(name);
        next = absl::Now() + 10 * (absl::Now() - start);
        failed = counted.status();
        ready = counted.value_or(0);
        return ready >= count || !failed.ok();
      },
      timeout, absl::StrCat(count, " ScaledObjects Ready"),
      [&] {
        return absl::StrCat(ready, " are\n",
                            operator_ == nullptr ? "" : operator_->process().OutputTail());
      });
  return failed.ok() ? waited : failed;
}

HttpRequest Stage::MetricRead(const ObjectSpec& object) const {
  return {.path = absl::StrCat("/apis/external.metrics.k8s.io/v1beta1/namespaces/bench/",
                               object.metric_name, "?labelSelector=scaledobject.keda.sh%2Fname%3D",
                               object.name)};
}

absl::Status Stage::WaitUntilServed(const ObjectSpec& object) {
  return tests::WaitForOk([&] { return load_->Ask(MetricRead(object)).status(); },
                          absl::Seconds(60), "the metric is served through the aggregator");
}

}  // namespace outrigger::bench
