// SPDX-License-Identifier: Apache-2.0
#include "operator/api/workload.h"

#include <absl/strings/str_cat.h>

#include <boost/json/serialize.hpp>
#include <functional>
#include <optional>

#include "host/base/status.h"
#include "operator/api/object_reader.h"

namespace outrigger::controller::api {
namespace {

namespace json = boost::json;

// Reads {name, key, optional} of a key selector.
absl::Status ParseKeySelector(const std::string& path, const json::value& value,
                              EnvVar::Source source, EnvVar& var) {
  ObjectReader reader(path, value);
  reader.Read("name", var.object_name);
  reader.Read("key", var.key);
  reader.Read("optional", var.optional);
  var.source = source;
  return reader.status();
}

absl::StatusOr<EnvVar> ParseEnvVar(const std::string& path, const json::value& value) {
  EnvVar var;
  ObjectReader reader(path, value);
  reader.Read("name", var.name);
  reader.Read("value", var.value);
  if (const json::value* from = reader.FindObject("valueFrom")) {
    var.source = EnvVar::Source::kOther;  // fieldRef and the like: nothing to resolve
    ObjectReader from_reader(reader.PathOf("valueFrom"), *from);
    if (const json::value* secret = from_reader.FindObject("secretKeyRef")) {
      reader.Merge(ParseKeySelector(from_reader.PathOf("secretKeyRef"), *secret,
                                    EnvVar::Source::kSecretKey, var));
    } else if (const json::value* map = from_reader.FindObject("configMapKeyRef")) {
      reader.Merge(ParseKeySelector(from_reader.PathOf("configMapKeyRef"), *map,
                                    EnvVar::Source::kConfigMapKey, var));
    }
    reader.Merge(from_reader.status());
  }
  if (!reader.status().ok()) return reader.status();
  return var;
}

absl::StatusOr<EnvFrom> ParseEnvFrom(const std::string& path, const json::value& value) {
  EnvFrom from;
  ObjectReader reader(path, value);
  reader.Read("prefix", from.prefix);
  const json::value* ref = reader.FindObject("secretRef");
  from.secret = ref != nullptr;
  if (ref == nullptr) ref = reader.FindObject("configMapRef");
  if (ref != nullptr) {
    ObjectReader ref_reader(path, *ref);
    ref_reader.Read("name", from.object_name);
    ref_reader.Read("optional", from.optional);
    reader.Merge(ref_reader.status());
  }
  if (!reader.status().ok()) return reader.status();
  return from;
}

absl::StatusOr<Container> ParseContainer(const std::string& path, const json::value& value) {
  Container container;
  ObjectReader reader(path, value);
  reader.Read("name", container.name);
  if (const json::array* list = reader.FindArray("envFrom")) {
    for (size_t i = 0; i < list->size(); ++i) {
      ASSIGN_OR_RETURN(EnvFrom from,
                       ParseEnvFrom(absl::StrCat(path, ".envFrom[", i, "]"), (*list)[i]));
      container.env_from.push_back(std::move(from));
    }
  }
  if (const json::array* list = reader.FindArray("env")) {
    for (size_t i = 0; i < list->size(); ++i) {
      ASSIGN_OR_RETURN(EnvVar var, ParseEnvVar(absl::StrCat(path, ".env[", i, "]"), (*list)[i]));
      container.env.push_back(std::move(var));
    }
  }
  if (!reader.status().ok()) return reader.status();
  return container;
}

}  // namespace

absl::StatusOr<Workload> ParseWorkload(const json::value& object) {
  Workload workload;
  ASSIGN_OR_RETURN(workload.meta, ParseObjectMeta(object));
  workload.meta.labels.clear();  // trimmed: nobody reads them
  workload.meta.annotations.clear();
  ObjectReader reader("", object);
  const json::value* spec = reader.FindObject("spec");
  if (spec == nullptr) return workload;
  ObjectReader spec_reader("spec", *spec);
  std::optional<int32_t> replicas;
  spec_reader.Read("replicas", replicas);
  workload.replicas = replicas.value_or(1);
  const json::value* pod_template = spec_reader.FindObject("template");
  const json::value* pod_spec = nullptr;
  if (pod_template != nullptr)
    pod_spec = ObjectReader("spec.template", *pod_template).FindObject("spec");
  if (pod_spec != nullptr) {
    ObjectReader pod_reader("spec.template.spec", *pod_spec);
    if (const json::array* containers = pod_reader.FindArray("containers")) {
      workload.template_hash = std::hash<std::string>()(json::serialize(*containers));
      for (size_t i = 0; i < containers->size(); ++i) {
        ASSIGN_OR_RETURN(Container container,
                         ParseContainer(absl::StrCat("spec.template.spec.containers[", i, "]"),
                                        (*containers)[i]));
        workload.containers.push_back(std::move(container));
      }
    }
  }
  if (!spec_reader.status().ok()) return spec_reader.status();
  return workload;
}

std::string ExpandVariables(absl::string_view text,
                            const std::map<std::string, std::string>& known) {
  std::string out;
  size_t i = 0;
  while (i < text.size()) {
    const bool special = text[i] == '$' && text.size() - i > 3;
    if (special && text[i + 1] == '$') {
      out += '$';
      i += 2;
      continue;
    }
    const size_t close =
        special && text[i + 1] == '(' ? text.find(')', i + 2) : absl::string_view::npos;
    if (close == absl::string_view::npos) {
      out += text[i++];
      continue;
    }
    const std::string name(text.substr(i + 2, close - i - 2));
    auto it = known.find(name);
    absl::StrAppend(&out, it == known.end() ? absl::StrCat("$(", name, ")") : it->second);
    i = close + 1;
  }
  return out;
}

}  // namespace outrigger::controller::api
