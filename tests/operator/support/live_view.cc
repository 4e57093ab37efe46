// SPDX-License-Identifier: Apache-2.0
#include "tests/operator/support/live_view.h"

#include "operator/api/object_meta.h"

namespace outrigger::controller {
namespace {

template <typename T>
std::shared_ptr<const T> Share(absl::StatusOr<T> parsed) {
  return parsed.ok() ? std::make_shared<const T>(*std::move(parsed)) : nullptr;
}

api::NamespacedName KeyOf(const boost::json::value& object) {
  const boost::json::object& metadata = object.at("metadata").as_object();
  const boost::json::value* namespace_name = metadata.if_contains("namespace");
  return {namespace_name == nullptr ? "" : std::string(namespace_name->as_string()),
          std::string(metadata.at("name").as_string())};
}

}  // namespace

void LiveView::Freeze() {
  for (const kube::Resource& resource :
       {kube::ScaledObjects(), kube::HorizontalPodAutoscalers(), kube::Deployments(),
        kube::StatefulSets(), kube::TriggerAuthentications(), kube::ClusterTriggerAuthentications(),
        kube::Secrets(), kube::ConfigMaps()}) {
    Find(resource, {});
  }
  frozen_ = true;
}

const boost::json::value* LiveView::Find(const kube::Resource& resource,
                                         const api::NamespacedName& key) const {
  Objects& objects = objects_[resource.ToString()];
  if (!frozen_ && objects.version != api_.resource_version()) {
    objects.version = api_.resource_version();
    objects.by_key.clear();
    for (boost::json::value& object : api_.Objects(resource)) {
      const api::NamespacedName found = KeyOf(object);
      objects.by_key.emplace(found, std::move(object));
    }
  }
  auto it = objects.by_key.find(key);
  return it == objects.by_key.end() ? nullptr : &it->second;
}

std::shared_ptr<const api::ScaledObject> LiveView::ScaledObject(
    const api::NamespacedName& key) const {
  const boost::json::value* found = Find(kube::ScaledObjects(), key);
  return found == nullptr ? nullptr : Share(api::ParseScaledObject(*found));
}

std::shared_ptr<const api::HorizontalPodAutoscaler> LiveView::Hpa(
    const api::NamespacedName& key) const {
  const boost::json::value* found = Find(kube::HorizontalPodAutoscalers(), key);
  return found == nullptr ? nullptr : Share(api::ParseHpa(*found));
}

std::shared_ptr<const api::Workload> LiveView::Workload(const std::string& kind,
                                                        const api::NamespacedName& key) const {
  if (kind != "Deployment" && kind != "StatefulSet") return nullptr;
  const boost::json::value* found =
      Find(kind == "Deployment" ? kube::Deployments() : kube::StatefulSets(), key);
  return found == nullptr ? nullptr : Share(api::ParseWorkload(*found));
}

std::shared_ptr<const api::TriggerAuthentication> LiveView::Authentication(
    const std::string& kind, const api::NamespacedName& key) const {
  const bool cluster = kind == api::kClusterTriggerAuthenticationKind;
  const boost::json::value* found =
      Find(cluster ? kube::ClusterTriggerAuthentications() : kube::TriggerAuthentications(), key);
  return found == nullptr ? nullptr : Share(api::ParseTriggerAuthentication(*found));
}

std::string LiveView::VersionOf(const kube::Resource& resource,
                                const api::NamespacedName& key) const {
  if (!references_watched_) return "";
  const boost::json::value* found = Find(resource, key);
  return found == nullptr ? "" : api::ParseObjectMeta(*found)->resource_version;
}

std::string LiveView::SecretVersion(const api::NamespacedName& key) const {
  return VersionOf(kube::Secrets(), key);
}

std::string LiveView::ConfigMapVersion(const api::NamespacedName& key) const {
  return VersionOf(kube::ConfigMaps(), key);
}

}  // namespace outrigger::controller
