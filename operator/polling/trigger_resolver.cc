// SPDX-License-Identifier: Apache-2.0
#include "operator/polling/trigger_resolver.h"

#include <absl/strings/escaping.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>
#include <absl/strings/strip.h>

#include <boost/json/object.hpp>
#include <utility>

#include "host/base/status.h"

namespace outrigger::controller::polling {
namespace {

using api::NamespacedName;
using Data = std::map<std::string, std::string>;

constexpr absl::string_view kFromEnv = "FromEnv";
constexpr char kObject[] = "ScaledObject";
constexpr char kWorkload[] = "Workload";

scaler::v1::MetricType WireMetricType(const std::string& text) {
  return text == "Value" ? scaler::v1::VALUE : scaler::v1::AVERAGE_VALUE;
}

// The metadata keys that a type's schema lets through.
std::set<std::string> KnownKeys(const scaler::v1::TriggerType& schema) {
  std::set<std::string> keys;
  for (const scaler::v1::Parameter& parameter : schema.parameters()) {
    keys.insert(parameter.name());
    keys.insert(parameter.aliases().begin(), parameter.aliases().end());
  }
  return keys;
}

absl::Status NoPlugin(const std::string& type) {
  absl::Status status =
      absl::UnavailableError(absl::StrCat("no plugin serves trigger type \"", type, "\" (yet)"));
  host::MarkPluginUnreachable(status);
  return status;
}

}  // namespace

struct TriggerResolver::Resolution {
  std::shared_ptr<const api::ScaledObject> object;
  std::shared_ptr<ResolvedObject> result;
  host::Deadline deadline;
  std::map<std::string, absl::StatusOr<Data>> read;  // Secrets and ConfigMaps of this run
  std::optional<absl::StatusOr<Data>> environment;
};

TriggerResolver::TriggerResolver(kube::Api& api, const ClusterView& view,
                                 const host::ScalerService& scalers, Options options)
    : api_(api), view_(view), scalers_(scalers), options_(std::move(options)) {}

std::string TriggerResolver::SecretReference(const NamespacedName& key) {
  return "Secret/" + key.ToString();
}
std::string TriggerResolver::ConfigMapReference(const NamespacedName& key) {
  return "ConfigMap/" + key.ToString();
}

// The version that a reference has now: what `versions` is compared with.
std::string TriggerResolver::VersionOf(const std::string& reference,
                                       const NamespacedName& key) const {
  const std::vector<std::string> parts = absl::StrSplit(reference, '/');
  if (parts[0] == kObject) {
    const auto current = view_.ScaledObject(key);
    return current == nullptr ? "" : current->meta.uid;
  }
  if (parts[0] == kWorkload) {
    const auto workload = view_.Workload(parts[1], {parts[2], parts[3]});
    return workload == nullptr ? ""
                               : absl::StrCat(workload->meta.uid, "/", workload->template_hash);
  }
  if (parts[0] == "Schema") return scalers_.SchemaVersion(parts[1]);
  if (parts[0] == "Secret") return view_.SecretVersion({parts[1], parts[2]});
  if (parts[0] == "ConfigMap") return view_.ConfigMapVersion({parts[1], parts[2]});
  const auto authentication =
      view_.Authentication(parts[0], {parts.size() > 2 ? parts[1] : "", parts.back()});
  return authentication == nullptr ? "" : authentication->meta.resource_version;
}

bool TriggerResolver::Fresh(const ResolvedObject& resolved) const {
  for (const auto& [reference, version] : resolved.versions) {
    if (VersionOf(reference, resolved.key) != version) return false;
  }
  for (const ResolvedTrigger& trigger : resolved.triggers) {
    // An error of the API server (or of a Secret that is not watched yet) may have passed.
    if (!trigger.error.ok() && !absl::IsInvalidArgument(trigger.error)) return false;
  }
  return true;
}

std::shared_ptr<const ResolvedObject> TriggerResolver::Cached(
    const api::ScaledObject& object) const {
  auto cached = cache_.find(object.meta.uid);
  if (cached == cache_.end()) return nullptr;
  const bool same = cached->second->generation == object.meta.generation;
  return same && Fresh(*cached->second) ? cached->second : nullptr;
}

host::Task<std::shared_ptr<const ResolvedObject>> TriggerResolver::Resolve(
    std::shared_ptr<const api::ScaledObject> object, host::Deadline deadline) {
  if (std::shared_ptr<const ResolvedObject> cached = Cached(*object)) co_return cached;
  auto result = std::make_shared<ResolvedObject>();
  result->key = object->Key();
  result->generation = object->meta.generation;
  result->triggers.resize(object->spec.triggers.size());
  Resolution run{.object = object, .result = result, .deadline = deadline};
  result->versions[kObject] = object->meta.uid;
  for (uint32_t i = 0; i < object->spec.triggers.size(); ++i) co_await ResolveTrigger(run, i);
  // Versions were taken before each read: a change that came in between shows as a difference at
  // the next look. An object that went meanwhile leaves nothing behind.
  const auto current = view_.ScaledObject(object->Key());
  if (current != nullptr && current->meta.uid == object->meta.uid) {
    cache_[object->meta.uid] = result;
  }
  co_return result;
}

host::Task<void> TriggerResolver::ResolveTrigger(Resolution& run, uint32_t index) {
  const api::Trigger& trigger = run.object->spec.triggers[index];
  ResolvedTrigger& resolved = run.result->triggers[index];
  resolved.index = index;
  resolved.type = trigger.type;
  resolved.name = trigger.name;
  resolved.use_cached_metrics = trigger.use_cached_metrics;
  resolved.resource = api::IsResourceTrigger(trigger);
  if (resolved.resource) co_return;
  const std::string schema_reference = "Schema/" + trigger.type;
  run.result->versions[schema_reference] = VersionOf(schema_reference, run.result->key);
  const std::optional<scaler::v1::TriggerType> schema = scalers_.SchemaFor(trigger.type);
  if (!schema) {
    resolved.error = NoPlugin(trigger.type);
    co_return;
  }
  resolved.stateful = schema->stateful();
  auto wire = std::make_shared<scaler::v1::Trigger>();
  scaler::v1::ObjectReference& reference = *wire->mutable_object();
  reference.set_kind(api::kScaledObjectKind);
  reference.set_namespace_(run.object->meta.namespace_name);
  reference.set_name(run.object->meta.name);
  reference.set_uid(run.object->meta.uid);
  reference.set_generation(run.object->meta.generation);
  wire->set_index(index);
  wire->set_type(trigger.type);
  wire->set_name(trigger.name);
  wire->set_metric_type(WireMetricType(trigger.metric_type));
  const std::set<std::string> known = KnownKeys(*schema);
  for (const auto& [key, value] : trigger.metadata) {
    const absl::string_view base = absl::StripSuffix(key, kFromEnv);
    if (schema->open() || known.contains(key) || known.contains(std::string(base)))
      (*wire->mutable_metadata())[key] = value;
    if (!absl::EndsWith(key, kFromEnv) || (!schema->open() && !known.contains(std::string(base))))
      continue;
    if (!run.environment) {
      absl::StatusOr<Data> environment = co_await Environment(run);
      run.environment.emplace(std::move(environment));
    }
    if (!run.environment->ok()) {
      resolved.error = host::Annotate(run.environment->status(), "metadata.", key);
      co_return;
    }
    auto found = (*run.environment)->find(value);
    if (found != (*run.environment)->end() && !found->second.empty()) {
      (*wire->mutable_environment())[std::string(base)] = found->second;
    }
  }
  if (trigger.authentication_ref) {
    absl::StatusOr<Data> parameters = co_await Authentication(run, trigger);
    if (!parameters.ok()) {
      resolved.error = host::Annotate(parameters.status(), "authenticationRef");
      co_return;
    }
    for (const auto& [name, value] : *parameters) {
      if (schema->open() || known.contains(name)) (*wire->mutable_authentication())[name] = value;
    }
  }
  host::SetFingerprint(*wire, schema->per_object(), options_.fingerprint_key);
  resolved.trigger = std::move(wire);
}

host::Task<absl::StatusOr<Data>> TriggerResolver::Authentication(Resolution& run,
                                                                 const api::Trigger& trigger) {
  const api::AuthenticationRef& ref = *trigger.authentication_ref;
  const std::string kind = ref.kind.empty() ? api::kTriggerAuthenticationKind : ref.kind;
  const bool cluster = kind == api::kClusterTriggerAuthenticationKind;
  const NamespacedName key{cluster ? "" : run.object->meta.namespace_name, ref.name};
  const std::string reference = absl::StrCat(kind, "/", key.ToString());
  run.result->versions[reference] = VersionOf(reference, run.result->key);
  const auto authentication = view_.Authentication(kind, key);
  if (authentication == nullptr) {
    co_return absl::InvalidArgumentError(
        absl::StrCat("want an existing ", kind, ", got none named ", key.ToString()));
  }
  if (!authentication->other_sources.empty()) {
    co_return absl::InvalidArgumentError(
        absl::StrCat(kind, " ", key.ToString(),
                     ": want secretTargetRef only (others are not supported yet), got ",
                     absl::StrJoin(authentication->other_sources, ", ")));
  }
  Data parameters;
  for (const api::SecretTargetRef& secret : authentication->secret_target_refs) {
    const NamespacedName secret_key{
        cluster ? options_.cluster_object_namespace : run.object->meta.namespace_name, secret.name};
    absl::StatusOr<Data> data = co_await ReadData(run, true, secret_key);
    if (absl::IsNotFound(data.status())) {
      co_return absl::InvalidArgumentError(
          absl::StrCat(kind, " ", key.ToString(), ": parameter ", secret.parameter,
                       ": want an existing Secret, got none named ", secret_key.ToString()));
    }
    if (!data.ok()) co_return host::Annotate(data.status(), kind, " ", key.ToString());
    auto found = data->find(secret.key);
    if (found == data->end()) {
      co_return absl::InvalidArgumentError(
          absl::StrCat(kind, " ", key.ToString(), ": parameter ", secret.parameter, ": want key \"",
                       secret.key, "\" in Secret ", secret_key.ToString(), ", got none"));
    }
    parameters[secret.parameter] = found->second;
  }
  co_return parameters;
}

host::Task<absl::StatusOr<Data>> TriggerResolver::Environment(Resolution& run) {
  const api::ScaleTargetRef& ref = run.object->spec.scale_target_ref;
  const std::string kind = ref.kind.empty() ? "Deployment" : ref.kind;
  const NamespacedName key{run.object->meta.namespace_name, ref.name};
  const std::string reference =
      absl::StrCat(kWorkload, "/", kind, "/", key.namespace_name, "/", key.name);
  run.result->versions[reference] = VersionOf(reference, run.result->key);
  if (kind != "Deployment" && kind != "StatefulSet") {
    co_return absl::InvalidArgumentError(absl::StrCat(
        "want a Deployment or StatefulSet as the target whose environment is read, got ", kind, " ",
        key.ToString()));
  }
  const auto workload = view_.Workload(kind, key);
  if (workload == nullptr)
    co_return absl::FailedPreconditionError(absl::StrCat(kind, " ", key.ToString(), ": not found"));
  const api::Container* container =
      workload->containers.empty() ? nullptr : &workload->containers.front();
  if (!ref.env_source_container_name.empty()) {
    container = nullptr;
    for (const api::Container& candidate : workload->containers) {
      if (candidate.name == ref.env_source_container_name) container = &candidate;
    }
    if (container == nullptr) {
      co_return absl::InvalidArgumentError(
          absl::StrCat("scaleTargetRef.envSourceContainerName: want a container of ", kind, " ",
                       key.ToString(), ", got \"", ref.env_source_container_name, "\""));
    }
  }
  Data variables;
  if (container == nullptr) co_return variables;
  for (const api::EnvFrom& from : container->env_from) {
    const NamespacedName source{key.namespace_name, from.object_name};
    absl::StatusOr<Data> data = co_await ReadData(run, from.secret, source);
    if (absl::IsNotFound(data.status()) && from.optional) continue;
    if (!data.ok()) co_return host::Annotate(data.status(), "envFrom ", source.ToString());
    for (const auto& [name, value] : *data) variables[absl::StrCat(from.prefix, name)] = value;
  }
  for (const api::EnvVar& var : container->env) {
    if (var.source == api::EnvVar::Source::kOther) continue;
    if (var.source == api::EnvVar::Source::kLiteral) {
      variables[var.name] = api::ExpandVariables(var.value, variables);
      continue;
    }
    const NamespacedName source{key.namespace_name, var.object_name};
    absl::StatusOr<Data> data =
        co_await ReadData(run, var.source == api::EnvVar::Source::kSecretKey, source);
    if (absl::IsNotFound(data.status()) && var.optional) continue;
    if (!data.ok())
      co_return host::Annotate(data.status(), "env ", var.name, " ", source.ToString());
    auto found = data->find(var.key);
    variables[var.name] = found == data->end() ? "" : found->second;
  }
  co_return variables;
}

host::Task<absl::StatusOr<Data>> TriggerResolver::ReadData(Resolution& run, bool secret,
                                                           NamespacedName key) {
  const std::string reference = secret ? SecretReference(key) : ConfigMapReference(key);
  if (auto known = run.read.find(reference); known != run.read.end()) co_return known->second;
  run.result->versions[reference] = VersionOf(reference, run.result->key);
  absl::StatusOr<boost::json::value> object =
      co_await api_.Get(secret ? kube::Secrets() : kube::ConfigMaps(), key.namespace_name, key.name,
                        "", run.deadline);
  absl::StatusOr<Data> data = Data();
  if (!object.ok()) {
    data = object.status();
  } else if (!object->is_object()) {
    data = absl::UnavailableError(absl::StrCat(reference, ": the answer is no object"));
  } else if (const boost::json::value* fields = object->get_object().if_contains("data");
             fields != nullptr && fields->is_object()) {
    for (const auto& [name, value] : fields->get_object()) {
      if (!value.is_string()) continue;
      std::string text(value.get_string());
      if (secret) {
        std::string decoded;
        if (!absl::Base64Unescape(text, &decoded)) continue;
        text = std::move(decoded);
      }
      (*data)[std::string(name)] = std::move(text);
    }
  }
  run.read.emplace(reference, data);
  co_return data;
}

void TriggerResolver::Forget(const std::string& uid) { cache_.erase(uid); }

std::set<NamespacedName> TriggerResolver::UsersOf(const std::string& reference) const {
  std::set<NamespacedName> users;
  for (const auto& [uid, resolved] : cache_) {
    if (resolved->versions.contains(reference)) users.insert(resolved->key);
  }
  return users;
}

}  // namespace outrigger::controller::polling
