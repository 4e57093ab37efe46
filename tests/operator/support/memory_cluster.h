// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "operator/api/scaled_object.h"
#include "operator/kube/memory_api.h"
#include "tests/operator/support/core_loop.h"
#include "tests/operator/support/live_view.h"
#include "tests/operator/support/recording_faults.h"

namespace outrigger::controller {

inline boost::json::value Json(absl::string_view text) {
  return boost::json::parse(boost::json::string_view(text.data(), text.size()));
}

// A member by path, as text: At(object, "/metadata/name"). "" when absent.
inline std::string At(const boost::json::value& value, absl::string_view pointer) {
  boost::json::error_code error;
  const boost::json::value* found =
      value.find_pointer(boost::json::string_view(pointer.data(), pointer.size()), error);
  if (found == nullptr) return "";
  return found->is_string() ? std::string(found->get_string()) : boost::json::serialize(*found);
}

// A kind that somebody installed, with a scale subresource.
inline kube::Resource Gadgets() { return {"example.com", "v1", "gadgets", true}; }

// A cluster in memory on a CoreLoop, and a test's hands in it. Everything lives in namespace "ns".
// What a test does itself is not among the recorded calls, and no planned fault hits it.
class MemoryCluster {
 public:
  explicit MemoryCluster(CoreLoop& loop) : loop_(loop) {}

  kube::MemoryApi& api() { return api_; }
  RecordingFaults& faults() { return faults_; }
  LiveView& view() { return view_; }

  void Create(const kube::Resource& resource, absl::string_view object) {
    Check(Do(Text("create", resource, ""),
             api_.Create(resource, Namespace(resource), Json(object), {}, Soon())),
          object);
  }
  void Patch(const kube::Resource& resource, const std::string& name, absl::string_view patch,
             const std::string& subresource = "") {
    Check(Do(Text("patch", resource, name, subresource),
             api_.Patch(resource, Namespace(resource), name, kube::PatchType::kMerge, Json(patch),
                        {.subresource = subresource}, Soon())),
          patch);
  }
  void Delete(const kube::Resource& resource, const std::string& name) {
    const absl::Status deleted = Do(Text("delete", resource, name),
                                    api_.Delete(resource, Namespace(resource), name, {}, Soon()));
    EXPECT_TRUE(deleted.ok()) << deleted;
  }
  // null when there is none.
  boost::json::value Get(const kube::Resource& resource, const std::string& name) const {
    for (const boost::json::value& object : api_.Objects(resource)) {
      if (At(object, "/metadata/name") == name) return object;
    }
    return nullptr;
  }

  // `spec` is the inside of the ScaledObject's spec but scaleTargetRef, which is Deployment "web".
  void CreateScaledObject(const std::string& name, absl::string_view spec,
                          absl::string_view target = R"({"name":"web"})") {
    Create(kube::ScaledObjects(),
           absl::StrCat(R"({"apiVersion":"keda.sh/v1alpha1","kind":"ScaledObject",)",
                        R"("metadata":{"name":")", name, R"("},"spec":{"scaleTargetRef":)", target,
                        ",", spec, "}}"));
  }
  void CreateDeployment(const std::string& name, int replicas) {
    Create(kube::Deployments(),
           absl::StrCat(R"({"metadata":{"name":")", name, R"("},"spec":{"replicas":)", replicas,
                        R"(,"selector":{"matchLabels":{"app":")", name,
                        R"("}},"template":{"spec":{"containers":[{"name":"main"}]}}}})"));
  }
  int Replicas(const std::string& name) const {
    int replicas = -1;
    (void)absl::SimpleAtoi(At(Get(kube::Deployments(), name), "/spec/replicas"), &replicas);
    return replicas;
  }
  void SetReplicas(const std::string& name, int replicas) {
    Patch(kube::Deployments(), name, absl::StrCat(R"({"spec":{"replicas":)", replicas, "}}"));
  }
  // As stored; default made when there is none.
  api::ScaledObject ScaledObject(const std::string& name) const {
    const boost::json::value found = Get(kube::ScaledObjects(), name);
    return found.is_null() ? api::ScaledObject()
                           : api::ParseScaledObject(found).value_or(api::ScaledObject());
  }
  // "True ScaledObjectReady"
  std::string Condition(const std::string& name, absl::string_view type) const {
    const api::ScaledObject object = ScaledObject(name);
    const api::Condition* found = api::FindCondition(object.status.conditions, type);
    return found == nullptr ? "" : absl::StrCat(found->status, " ", found->reason);
  }
  std::string ConditionMessage(const std::string& name, absl::string_view type) const {
    const api::ScaledObject object = ScaledObject(name);
    const api::Condition* found = api::FindCondition(object.status.conditions, type);
    return found == nullptr ? "" : found->message;
  }
  // "KEDAScaleTargetActivated: Scaled …", oldest first.
  std::vector<std::string> Events() const {
    std::map<std::string, std::string> by_time;
    for (const boost::json::value& event : api_.Objects(kube::Events())) {
      by_time[absl::StrCat(At(event, "/eventTime"), At(event, "/metadata/name"))] =
          absl::StrCat(At(event, "/reason"), ": ", At(event, "/note"));
    }
    std::vector<std::string> events;
    for (auto& [time, text] : by_time) events.push_back(std::move(text));
    return events;
  }
  int CountEvents(absl::string_view reason) const {
    int count = 0;
    for (const boost::json::value& event : api_.Objects(kube::Events())) {
      count += At(event, "/reason") == reason ? 1 : 0;
    }
    return count;
  }

 private:
  static std::vector<kube::MemoryKind> Kinds() {
    std::vector<kube::MemoryKind> kinds = kube::DefaultMemoryKinds();
    kinds.push_back(kube::CustomKind(Gadgets(), "Gadget"));
    kinds.back().has_scale = true;
    return kinds;
  }
  static std::string Namespace(const kube::Resource& resource) {
    return resource.namespaced ? "ns" : "";
  }
  host::Deadline Soon() { return host::Deadline::After(loop_.clock(), absl::Seconds(10)); }

  static std::string Text(absl::string_view verb, const kube::Resource& resource,
                          absl::string_view name, absl::string_view subresource = "") {
    return absl::StrCat(verb, " ", resource.ToString(), subresource.empty() ? "" : "/", subresource,
                        " ", Namespace(resource), "/", name);
  }
  template <typename T>
  T Do(const std::string& text, host::Task<T> call) {
    faults_.SkipOnce(text);
    std::shared_ptr<std::optional<T>> result = loop_.Start(std::move(call));
    loop_.Settle();
    EXPECT_TRUE(result->has_value()) << "a test's own call waits";
    return **result;
  }
  void Check(const absl::StatusOr<boost::json::value>& result, absl::string_view object) {
    EXPECT_TRUE(result.ok()) << result.status() << "\n" << object;
  }

  CoreLoop& loop_;
  RecordingFaults faults_;
  kube::MemoryApi api_{loop_.clock(), {.store = {.kinds = Kinds()}, .faults = &faults_}};
  LiveView view_{api_};
};

}  // namespace outrigger::controller
