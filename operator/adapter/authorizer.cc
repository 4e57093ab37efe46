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

}  // namespace

host::Task<absl::Status> Authorizer::Authorize(UserInfo user, std::string namespace_name,
                                               std::string metric, host::Deadline deadline) {
  if (std::find(user.groups.begin(), user.groups.end(), "system:masters") != user.groups.end()) {
    co_return absl::OkStatus();
  }
  absl::StatusOr<bool> all = co_await Ask(user, "", "", deadline);
  if (!all.ok()) co_return host::Annotate(all.status(), "authorisation of user ", user.name);
  if (*all) co_return absl::OkStatus();
  absl::StatusOr<bool> exact = co_await Ask(user, namespace_name, metric, deadline);
  if (!exact.ok()) co_return host::Annotate(exact.status(), "authorisation of user ", user.name);
  if (*exact) co_return absl::OkStatus();
  co_return absl::PermissionDeniedError(absl::StrCat(
      "user \"", user.name, "\" may not list resource \"", metric, "\" in API group \"",
      kExternalMetricsGroup, "\" in the namespace \"", namespace_name, "\""));
}

host::Task<absl::StatusOr<bool>> Authorizer::Ask(UserInfo user, std::string namespace_name,
                                                 std::string metric, host::Deadline deadline) {
  const std::string key = absl::StrCat(user.CacheKey(), "\n", namespace_name, "\n", metric);
  while (true) {
    AnswerPtr& slot = answers_[key];
    if (slot == nullptr) slot = std::make_shared<Answer>();
    AnswerPtr answer = slot;
    if (answer->known && clock_.SteadyNow() < answer->until) co_return answer->allowed;
    if (answer->asking) {
      const bool notified = co_await answer->answered.WaitUntil(clock_, deadline.time());
      if (!notified) co_return absl::DeadlineExceededError("no answer of the API server in time");
      answer->answered.NotifyAll();  // hand on to the others that wait
      if (!answer->known) co_return absl::UnavailableError("the review that was under way failed");
      continue;
    }
    answer->asking = true;
    answer->known = false;
    absl::StatusOr<bool> allowed =
        co_await Review(std::move(user), std::move(namespace_name), std::move(metric), deadline);
    answer->asking = false;
    answer->answered.NotifyAll();
    if (allowed.ok()) {
      answer->known = true;
      answer->allowed = *allowed;
      answer->until = clock_.SteadyNow() + options_.ttl;
      DropOld();
    } else {
      answers_.erase(key);
    }
    co_return allowed;
  }
}

host::Task<absl::StatusOr<bool>> Authorizer::Review(UserInfo user, std::string namespace_name,
                                                    std::string metric, host::Deadline deadline) {
  absl::StatusOr<json::value> answer =
      co_await api_.Create(kube::SubjectAccessReviews(), "", ReviewOf(user, namespace_name, metric),
                           kube::WriteOptions{}, deadline.Within(clock_, options_.review_timeout));
  if (!answer.ok()) co_return answer.status();
  bool allowed = false;
  bool denied = false;
  api::ObjectReader reader("", *answer);
  if (const json::value* status = reader.FindObject("status")) {
    api::ObjectReader status_reader("status", *status);
    status_reader.Read("allowed", allowed);
    status_reader.Read("denied", denied);
    reader.Merge(status_reader.status());
  }
  if (!reader.status().ok()) co_return reader.status();
  co_return allowed && !denied;
}

void Authorizer::DropOld() {
  if (answers_.size() < options_.most_entries) return;
  const host::SteadyTime now = clock_.SteadyNow();
  absl::erase_if(answers_, [&](const auto& entry) {
    return !entry.second->asking && entry.second->until <= now;
  });
}

}  // namespace outrigger::controller::adapter
