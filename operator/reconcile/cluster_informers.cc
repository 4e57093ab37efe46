// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/cluster_informers.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

#include "operator/api/object_reader.h"
#include "operator/kube/informer.h"

namespace outrigger::controller::reconcile {
namespace {

using api::NamespacedName;
namespace json = boost::json;

constexpr char kByTarget[] = "target";                  // "Deployment/web", within a namespace
constexpr char kByAuthentication[] = "authentication";  // "TriggerAuthentication/ns/name"
constexpr char kMetricsApiService[] = "v1beta1.external.metrics.k8s.io";

// What is kept of a Secret or ConfigMap: that it is there, and its version.
struct Referenced {
  std::string resource_version;
};
absl::StatusOr<Referenced> ParseReferenced(const json::value& object) {
  absl::StatusOr<api::ObjectMeta> meta = api::ParseObjectMeta(object);
  if (!meta.ok()) return meta.status();
  return Referenced{meta->resource_version};
}

// Of its conditions only the one that we look at.
absl::StatusOr<api::HorizontalPodAutoscaler> ParseTrimmedHpa(const json::value& object) {
  absl::StatusOr<api::HorizontalPodAutoscaler> hpa = api::ParseHpa(object);
  if (!hpa.ok()) return hpa;
  api::Conditions kept;
  if (const api::Condition* found =
          api::FindCondition(hpa->status.conditions, api::kScalingActive)) {
    kept = {*found};
  }
  hpa->status.conditions = std::move(kept);
  return hpa;
}

// "namespace/name" of its Service.
struct ApiService {
  std::string service;
};
absl::StatusOr<ApiService> ParseApiService(const json::value& object) {
  ApiService parsed;
  api::ObjectReader reader("", object);
  const json::value* spec = reader.FindObject("spec");
  if (spec == nullptr) return parsed;
  api::ObjectReader spec_reader("spec", *spec);
  if (const json::value* service = spec_reader.FindObject("service")) {
    std::string namespace_name;
    std::string name;
    api::ObjectReader service_reader("spec.service", *service);
    service_reader.Read("namespace", namespace_name);
    service_reader.Read("name", name);
    if (!service_reader.status().ok()) return service_reader.status();
    parsed.service = absl::StrCat(namespace_name, "/", name);
  }
  return parsed;
}

std::string TargetOf(const api::ScaledObject& object) {
  const api::ScaleTargetRef& ref = object.spec.scale_target_ref;
  return absl::StrCat(ref.kind.empty() ? "Deployment" : ref.kind, "/", object.meta.namespace_name,
                      "/", ref.name);
}

std::vector<std::string> AuthenticationsOf(const api::ScaledObject& object) {
  std::vector<std::string> references;
  for (const api::Trigger& trigger : object.spec.triggers) {
    if (!trigger.authentication_ref) continue;
    const std::string kind = trigger.authentication_ref->kind.empty()
                                 ? api::kTriggerAuthenticationKind
                                 : trigger.authentication_ref->kind;
    const bool cluster = kind == api::kClusterTriggerAuthenticationKind;
    references.push_back(absl::StrCat(kind, "/", cluster ? "" : object.meta.namespace_name, "/",
                                      trigger.authentication_ref->name));
  }
  return references;
}

bool RefersToObjects(const api::ScaledObject& object) {
  return std::any_of(
      object.spec.triggers.begin(), object.spec.triggers.end(), [](const api::Trigger& trigger) {
        return trigger.authentication_ref.has_value() ||
               std::any_of(trigger.metadata.begin(), trigger.metadata.end(), [](const auto& entry) {
                 return absl::EndsWith(entry.first, "FromEnv");
               });
      });
}

std::string ScalingActiveOf(const api::HorizontalPodAutoscaler& hpa) {
  const api::Condition* condition = api::FindCondition(hpa.status.conditions, api::kScalingActive);
  return condition == nullptr ? "" : absl::StrCat(condition->status, "/", condition->reason);
}

bool SameHpaSpec(const api::HpaSpec& a, const api::HpaSpec& b) {
  return a.scale_target_ref == b.scale_target_ref && a.min_replicas == b.min_replicas &&
         a.max_replicas == b.max_replicas && a.metrics == b.metrics && a.behavior == b.behavior;
}

bool Matters(const api::HorizontalPodAutoscaler& before,
             const api::HorizontalPodAutoscaler& after) {
  return before.meta.uid != after.meta.uid || before.meta.labels != after.meta.labels ||
         before.meta.annotations != after.meta.annotations ||
         before.meta.owner_references != after.meta.owner_references ||
         before.meta.deletion_timestamp.has_value() != after.meta.deletion_timestamp.has_value() ||
         !SameHpaSpec(before.spec, after.spec) || ScalingActiveOf(before) != ScalingActiveOf(after);
}

std::optional<NamespacedName> OwnerOf(const api::HorizontalPodAutoscaler& hpa) {
  const api::OwnerReference* owner = api::ControllerOf(hpa.meta);
  if (owner == nullptr || owner->kind != api::kScaledObjectKind) return std::nullopt;
  return NamespacedName{hpa.meta.namespace_name, owner->name};
}

// The informers of one kind: one, or one per watched namespace.
template <typename T>
struct Kind {
  std::string name;
  std::vector<std::unique_ptr<kube::Informer<T>>> informers;

  std::shared_ptr<const T> Get(const NamespacedName& key) const {
    for (const auto& informer : informers) {
      if (std::shared_ptr<const T> object = informer->Get(key)) return object;
    }
    return nullptr;
  }
  bool Synced() const {
    return std::all_of(informers.begin(), informers.end(),
                       [](const auto& informer) { return informer->HasSynced(); });
  }
};

}  // namespace

struct ClusterInformers::Watches {
  Watches(host::Clock& clock, kube::Api& api, host::Executor strand, host::Random random,
          host::Logger log, runtime::MetricsSink& metrics, Options options)
      : clock(clock),
        api(api),
        random(random),
        log(std::move(log)),
        metrics(metrics),
        options(std::move(options)),
        tasks(clock, std::move(strand)) {}

  template <typename T>
  kube::Informer<T>& Add(Kind<T>& kind, kube::Reflector::Options reflector,
                         typename kube::Informer<T>::Parse parse) {
    kind.name = reflector.resource.ToString();
    reflector.on_event_taken = [this](absl::Duration took) {
      metrics.Step(runtime::LoopStep::kEvent, took);
    };
    kind.informers.push_back(std::make_unique<kube::Informer<T>>(
        clock, api, host::Random(random.Next()), log, std::move(reflector), std::move(parse)));
    return *kind.informers.back();
  }

  template <typename T>
  void AddForNamespaces(Kind<T>& kind, const kube::Resource& resource,
                        const typename kube::Informer<T>::Parse& parse,
                        const typename kube::Informer<T>::Handlers& handlers) {
    std::vector<std::string> namespaces = options.namespaces;
    if (namespaces.empty() || !resource.namespaced) namespaces = {""};
    for (const std::string& namespace_name : namespaces) {
      Add(kind, {.resource = resource, .namespace_name = namespace_name}, parse)
          .AddHandlers(handlers);
    }
  }

  template <typename T>
  void Start(Kind<T>& kind) {
    for (const auto& informer : kind.informers) tasks.Spawn(informer->Run());
  }
  template <typename T>
  void StopKind(Kind<T>& kind) {
    for (const auto& informer : kind.informers) informer->Stop();
  }

  host::Clock& clock;
  kube::Api& api;
  host::Random random;
  const host::Logger log;
  runtime::MetricsSink& metrics;
  const Options options;
  host::TaskGroup tasks;
  bool running = false;
  bool stopping = false;
  host::Event stopped;

  Kind<api::ScaledObject> scaled_objects;
  Kind<api::HorizontalPodAutoscaler> hpas;
  Kind<api::Workload> deployments;
  Kind<api::Workload> stateful_sets;
  Kind<api::TriggerAuthentication> authentications;
  Kind<api::TriggerAuthentication> cluster_authentications;
  Kind<ApiService> api_service;
  std::map<std::string, Kind<Referenced>> secrets;  // by namespace
  std::map<std::string, Kind<Referenced>> config_maps;
};

ClusterInformers::ClusterInformers(host::Clock& clock, kube::Api& api, host::Executor strand,
                                   host::Random random, host::Logger log,
                                   runtime::MetricsSink& metrics, Options options,
                                   Listener listener)
    : clock_(clock),
      log_(log),
      listener_(std::move(listener)),
      watches_(std::make_unique<Watches>(clock, api, std::move(strand), random, std::move(log),
                                         metrics, std::move(options))) {
  Watches& w = *watches_;
  w.AddForNamespaces<api::ScaledObject>(
      w.scaled_objects, kube::ScaledObjects(), api::ParseScaledObject,
      {.on_add = [this](const auto&, const auto& now) { OnScaledObject(nullptr, now); },
       .on_update = [this](const auto&, const auto& before,
                           const auto& now) { OnScaledObject(before, now); },
       .on_delete =
           [this](const NamespacedName& key, const auto& last, kube::FinalState) {
             if (last != nullptr) listener_.gone(last->meta.uid);
             listener_.reconcile(key);
           }});
  for (const auto& informer : w.scaled_objects.informers) {
    informer->AddIndex(kByTarget, [](const api::ScaledObject& object) {
      return std::vector<std::string>{TargetOf(object)};
    });
    informer->AddIndex(kByAuthentication, AuthenticationsOf);
  }
  w.AddForNamespaces<api::HorizontalPodAutoscaler>(
      w.hpas, kube::HorizontalPodAutoscalers(), ParseTrimmedHpa,
      {.on_add = [this](const auto&, const auto& now) { OnHpa(nullptr, now.get()); },
       .on_update = [this](const auto&, const auto& before,
                           const auto& now) { OnHpa(before.get(), now.get()); },
       .on_delete = [this](const auto&, const auto& last,
                           kube::FinalState) { OnHpa(last.get(), nullptr); }});
  auto workload_handlers = [this](const char* kind) {
    return kube::Informer<api::Workload>::Handlers{
        .on_add = [this, kind](const NamespacedName& key,
                               const auto& now) { OnWorkload(kind, key, nullptr, now.get()); },
        .on_update = [this, kind](
                         const NamespacedName& key, const auto& before,
                         const auto& now) { OnWorkload(kind, key, before.get(), now.get()); },
        .on_delete = [this, kind](
                         const NamespacedName& key, const auto& last,
                         kube::FinalState) { OnWorkload(kind, key, last.get(), nullptr); }};
  };
  w.AddForNamespaces<api::Workload>(w.deployments, kube::Deployments(), api::ParseWorkload,
                                    workload_handlers("Deployment"));
  w.AddForNamespaces<api::Workload>(w.stateful_sets, kube::StatefulSets(), api::ParseWorkload,
                                    workload_handlers("StatefulSet"));
  if (w.options.authentications) {
    auto handlers = [this](const char* kind) {
      return kube::Informer<api::TriggerAuthentication>::Handlers{
          .on_add = [this, kind](const NamespacedName& key,
                                 const auto&) { OnAuthentication(kind, key); },
          .on_update = [this, kind](const NamespacedName& key, const auto&,
                                    const auto&) { OnAuthentication(kind, key); },
          .on_delete = [this, kind](const NamespacedName& key, const auto&,
                                    kube::FinalState) { OnAuthentication(kind, key); }};
    };
    w.AddForNamespaces<api::TriggerAuthentication>(
        w.authentications, kube::TriggerAuthentications(), api::ParseTriggerAuthentication,
        handlers(api::kTriggerAuthenticationKind));
    w.AddForNamespaces<api::TriggerAuthentication>(
        w.cluster_authentications, kube::ClusterTriggerAuthentications(),
        api::ParseTriggerAuthentication, handlers(api::kClusterTriggerAuthenticationKind));
  }
  if (w.options.api_service) {
    w.Add<ApiService>(w.api_service,
                      {.resource = kube::ApiServices(),
                       .field_selector = absl::StrCat("metadata.name=", kMetricsApiService)},
                      ParseApiService)
        .AddHandlers(
            {.on_add = [this](const auto&, const auto&) { listener_.api_service_changed(); },
             .on_update =
                 [this](const auto&, const auto& before, const auto& now) {
                   if (before->service != now->service) listener_.api_service_changed();
                 },
             .on_delete = [this](const auto&, const auto&,
                                 kube::FinalState) { listener_.api_service_changed(); }});
  }
}

ClusterInformers::~ClusterInformers() = default;

host::Task<void> ClusterInformers::Run() {
  Watches& w = *watches_;
  w.running = true;
  // What others depend on first: a reconcile that starts while the targets are not known yet would
  // call them missing.
  w.Start(w.api_service);
  w.Start(w.authentications);
  w.Start(w.cluster_authentications);
  w.Start(w.deployments);
  w.Start(w.stateful_sets);
  w.Start(w.hpas);
  w.Start(w.scaled_objects);
  for (auto& [name, kind] : w.secrets) w.Start(kind);
  for (auto& [name, kind] : w.config_maps) w.Start(kind);
  while (!w.stopping) co_await w.stopped.Wait(clock_);
  co_await w.tasks.Join();
}

void ClusterInformers::Stop() {
  Watches& w = *watches_;
  w.stopping = true;
  w.StopKind(w.scaled_objects);
  w.StopKind(w.hpas);
  w.StopKind(w.deployments);
  w.StopKind(w.stateful_sets);
  w.StopKind(w.authentications);
  w.StopKind(w.cluster_authentications);
  w.StopKind(w.api_service);
  for (auto& [name, kind] : w.secrets) w.StopKind(kind);
  for (auto& [name, kind] : w.config_maps) w.StopKind(kind);
  w.stopped.NotifyAll();
}

bool ClusterInformers::Synced() const {
  const Watches& w = *watches_;
  return w.scaled_objects.Synced() && w.hpas.Synced() && w.deployments.Synced() &&
         w.stateful_sets.Synced() && w.authentications.Synced() &&
         w.cluster_authentications.Synced() && w.api_service.Synced();
}

host::Task<absl::Status> ClusterInformers::WaitForSync(host::Deadline deadline) {
  Watches& w = *watches_;
  absl::Status status;
  auto wait = [&](auto& kind) -> host::Task<void> {
    for (const auto& informer : kind.informers) {
      const absl::Status synced = co_await informer->WaitForSync(deadline);
      status.Update(synced);
      w.metrics.InformerSynced(kind.name, synced.ok());
    }
  };
  co_await wait(w.api_service);
  co_await wait(w.authentications);
  co_await wait(w.cluster_authentications);
  co_await wait(w.deployments);
  co_await wait(w.stateful_sets);
  co_await wait(w.hpas);
  co_await wait(w.scaled_objects);
  co_return status;
}

void ClusterInformers::OnScaledObject(const ObjectPtr& before, const ObjectPtr& after) {
  if (before != nullptr && before->meta.uid != after->meta.uid) listener_.gone(before->meta.uid);
  WatchReferences(*after);
  listener_.seen(after);
  // Its status alone means nothing to us (requirement R6).
  if (before == nullptr || !api::SameButStatus(*before, *after)) listener_.reconcile(after->Key());
}

void ClusterInformers::OnHpa(const api::HorizontalPodAutoscaler* before,
                             const api::HorizontalPodAutoscaler* after) {
  for (const api::HorizontalPodAutoscaler* hpa : {before, after}) {
    if (hpa == nullptr) continue;
    const std::optional<NamespacedName> owner = OwnerOf(*hpa);
    if (!owner) continue;
    if (before == nullptr || after == nullptr || Matters(*before, *after))
      listener_.reconcile(*owner);
    if (hpa == after) listener_.hpa_changed(*owner);
  }
}

// Both null: it went, and could never be read.
void ClusterInformers::OnWorkload(const std::string& kind, const NamespacedName& key,
                                  const api::Workload* before, const api::Workload* after) {
  const bool matters = before == nullptr || after == nullptr ||
                       before->meta.uid != after->meta.uid ||
                       before->template_hash != after->template_hash;
  if (!matters) return;
  for (const auto& informer : watches_->scaled_objects.informers) {
    for (const auto& object :
         informer->ByIndex(kByTarget, absl::StrCat(kind, "/", key.ToString()))) {
      listener_.reconcile(object->Key());
    }
  }
}

void ClusterInformers::OnAuthentication(const std::string& kind, const NamespacedName& key) {
  const std::string reference = absl::StrCat(kind, "/", key.namespace_name, "/", key.name);
  for (const auto& informer : watches_->scaled_objects.informers) {
    for (const auto& object : informer->ByIndex(kByAuthentication, reference))
      listener_.reconcile(object->Key());
  }
}

void ClusterInformers::OnReference(const std::string& reference) {
  for (const NamespacedName& key : listener_.users_of(reference)) listener_.reconcile(key);
}

// Metadata of Secrets and ConfigMaps, from the first object of a namespace on that refers to one.
void ClusterInformers::WatchReferences(const api::ScaledObject& object) {
  if (!RefersToObjects(object)) return;
  WatchReferencesIn(object.meta.namespace_name);
  for (const api::Trigger& trigger : object.spec.triggers) {
    if (trigger.authentication_ref &&
        trigger.authentication_ref->kind == api::kClusterTriggerAuthenticationKind) {
      WatchReferencesIn(watches_->options.cluster_object_namespace);
    }
  }
}

void ClusterInformers::WatchReferencesIn(const std::string& namespace_name) {
  Watches& w = *watches_;
  if (w.stopping || namespace_name.empty() || w.secrets.contains(namespace_name)) return;
  auto watch = [&](std::map<std::string, Kind<Referenced>>& kinds, const kube::Resource& resource,
                   const std::string& prefix) {
    Kind<Referenced>& kind = kinds[namespace_name];
    auto changed = [this, prefix](const NamespacedName& key) {
      OnReference(absl::StrCat(prefix, "/", key.ToString()));
    };
    kube::Informer<Referenced>& informer = w.Add<Referenced>(
        kind, {.resource = resource, .namespace_name = namespace_name, .metadata_only = true},
        ParseReferenced);
    informer.AddHandlers(
        {.on_add = [changed](const NamespacedName& key, const auto&) { changed(key); },
         .on_update = [changed](const NamespacedName& key, const auto&,
                                const auto&) { changed(key); },
         .on_delete = [changed](const NamespacedName& key, const auto&,
                                kube::FinalState) { changed(key); }});
    if (w.running) w.Start(kind);
  };
  watch(w.secrets, kube::Secrets(), "Secret");
  watch(w.config_maps, kube::ConfigMaps(), "ConfigMap");
}

std::shared_ptr<const api::ScaledObject> ClusterInformers::ScaledObject(
    const NamespacedName& key) const {
  return watches_->scaled_objects.Get(key);
}

std::shared_ptr<const api::HorizontalPodAutoscaler> ClusterInformers::Hpa(
    const NamespacedName& key) const {
  return watches_->hpas.Get(key);
}

std::shared_ptr<const api::Workload> ClusterInformers::Workload(const std::string& kind,
                                                                const NamespacedName& key) const {
  if (kind == "Deployment") return watches_->deployments.Get(key);
  if (kind == "StatefulSet") return watches_->stateful_sets.Get(key);
  return nullptr;
}

std::shared_ptr<const api::TriggerAuthentication> ClusterInformers::Authentication(
    const std::string& kind, const NamespacedName& key) const {
  const bool cluster = kind == api::kClusterTriggerAuthenticationKind;
  return (cluster ? watches_->cluster_authentications : watches_->authentications).Get(key);
}

std::string ClusterInformers::SecretVersion(const NamespacedName& key) const {
  auto kind = watches_->secrets.find(key.namespace_name);
  if (kind == watches_->secrets.end()) return "";
  const auto found = kind->second.Get(key);
  return found == nullptr ? "" : found->resource_version;
}

std::string ClusterInformers::ConfigMapVersion(const NamespacedName& key) const {
  auto kind = watches_->config_maps.find(key.namespace_name);
  if (kind == watches_->config_maps.end()) return "";
  const auto found = kind->second.Get(key);
  return found == nullptr ? "" : found->resource_version;
}

std::vector<NamespacedName> ClusterInformers::ScaledObjectKeys() const {
  std::vector<NamespacedName> keys;
  for (const auto& informer : watches_->scaled_objects.informers) {
    for (const auto& object : informer->List()) keys.push_back(object->Key());
  }
  return keys;
}

std::string ClusterInformers::MetricsService() const {
  const auto found = watches_->api_service.Get({"", kMetricsApiService});
  return found == nullptr ? "" : found->service;
}

}  // namespace outrigger::controller::reconcile
