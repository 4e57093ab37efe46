// SPDX-License-Identifier: Apache-2.0
#include "operator/adapter/authorizer.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <utility>

#include "host/base/status.h"
#include "operator/adapter/metric_request.h"
#include "operator/api/object_reader.h"

namespace outrigger::controller::adapter {
namespace {

namespace json = boost::json;

json::array ToArray(const std::vector<std::string>& values) {
  json::array array;
  for (const std::string& value : values) array.emplace_back(value);
  return array;
}

// "" for namespace and metric: all of them.
json::object ReviewOf(const UserInfo& user, const std::string& namespace_name,
                      const std::string& metric) {
  json::object attributes;
  attributes["group"] = kExternalMetricsGroup;
  attributes["version"] = "v1beta1";
  attributes["verb"] = "list";
  attributes["resource"] = metric.empty() ? "*" : metric;
  if (!namespace_name.empty()) attributes["namespace"] = namespace_name;
  json::object spec;
  spec["user"] = user.name;
  if (!user.uid.empty()) spec["uid"] = user.uid;
  spec["groups"] = ToArray(user.groups);
  json::object extra;
  for (const auto& [key, values] : user.extra) extra[key] = ToArray(values);
  if (!extra.empty()) spec["extra"] = std::move(extra);
  spec["resourceAttributes"] = std::move(attributes);
  json::object review;
  review["apiVersion"] = "authorization.k8s.io/v1";
  review["kind"] = "SubjectAccessReview";
  review["spec"] = std::move(spec);
  return review;
}

// A review that could not be made says nothing about the user; above all, a right that we lack must
// not look like one that the user lacks.
absl::Status NoAnswer(const absl::Status& status) {
  absl::Status told = host::Annotate(status, "create subjectaccessreviews");
  if (absl::IsDeadlineExceeded(status) || absl::IsUnavailable(status)) return told;
  if (absl::IsResourceExhausted(status)) return absl::UnavailableError(told.message());
  return absl::InternalError(told.message());
}

}  // namespace

host::Task<absl::Status> Authorizer::Authorize(UserInfo user, std::string namespace_name,
                                               std::string metric, host::Deadline deadline) {
  if (std::find(user.groups.begin(), user.groups.end(), "system:masters") != user.groups.end()) {
    co_return absl::OkStatus();
  }
  absl::StatusOr<bool> all = co_await Ask(user, "", "", deadline);
  if (!all.ok())
    co_return host::Annotate(all.status(), "authorisation of user \"", user.name, "\"");
  if (*all) co_return absl::OkStatus();
  absl::StatusOr<bool> exact = co_await Ask(user, namespace_name, metric, deadline);
  if (!exact.ok())
    co_return host::Annotate(exact.status(), "authorisation of user \"", user.name, "\"");
  if (*exact) co_return absl::OkStatus();
  co_return absl::PermissionDeniedError(absl::StrCat(
      "user \"", user.name, "\" may not list resource \"", metric, "\" in API group \"",
      kExternalMetricsGroup, "\" in the namespace \"", namespace_name, "\""));
}

host::Task<absl::StatusOr<bool>> Authorizer::Ask(UserInfo user, std::string namespace_name,
                                                 std::string metric, host::Deadline deadline) {
  const std::string key = absl::StrCat(user.CacheKey(), "\n", namespace_name, "\n", metric);
  if (auto it = answers_.find(key); it != answers_.end()) {
    const AnswerPtr answer = it->second;
    if (answer->asking) co_return co_await Wait(answer, deadline);
    if (clock_.SteadyNow() < answer->until) co_return answer->allowed;
  }
  MakeRoom();
  const AnswerPtr answer = std::make_shared<Answer>();
  answer->asking = true;
  answers_[key] = answer;
  answer->allowed =
      co_await Review(std::move(user), std::move(namespace_name), std::move(metric), deadline);
  answer->asking = false;
  answer->until = clock_.SteadyNow() + options_.ttl;
  if (!answer->allowed.ok()) answers_.erase(key);  // a failure is not remembered
  answer->answered.NotifyAll();
  co_return answer->allowed;
}

host::Task<absl::StatusOr<bool>> Authorizer::Wait(AnswerPtr answer, host::Deadline deadline) {
  const bool notified = co_await answer->answered.WaitUntil(clock_, deadline.time());
  if (answer->asking || !notified)
    co_return absl::DeadlineExceededError("the API server did not answer a review in time");
  co_return answer->allowed;
}

host::Task<absl::StatusOr<bool>> Authorizer::Review(UserInfo user, std::string namespace_name,
                                                    std::string metric, host::Deadline deadline) {
  absl::StatusOr<json::value> answer =
      co_await api_.Create(kube::SubjectAccessReviews(), "", ReviewOf(user, namespace_name, metric),
                           kube::WriteOptions{}, deadline.Within(clock_, options_.review_timeout));
  if (!answer.ok()) co_return NoAnswer(answer.status());
  bool allowed = false;
  bool denied = false;
  api::ObjectReader reader("", *answer);
  if (const json::value* status = reader.FindObject("status")) {
    api::ObjectReader status_reader("status", *status);
    status_reader.Read("allowed", allowed);
    status_reader.Read("denied", denied);
    reader.Merge(status_reader.status());
  }
  if (!reader.status().ok()) co_return NoAnswer(reader.status());
  co_return allowed && !denied;
}

void Authorizer::MakeRoom() {
  if (answers_.size() < options_.most_entries) return;
  const host::SteadyTime now = clock_.SteadyNow();
  absl::erase_if(answers_, [&](const auto& entry) {
    return !entry.second->asking && entry.second->until <= now;
  });
  if (answers_.size() < options_.most_entries) return;
  // Somebody asks for very many metrics that they may not read: all ask anew.
  absl::erase_if(answers_, [](const auto& entry) { return !entry.second->asking; });
}

}  // namespace outrigger::controller::adapter
