// SPDX-License-Identifier: Apache-2.0
#include "operator/local/manifest.h"

#include <absl/strings/escaping.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <yaml-cpp/yaml.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <fstream>
#include <map>
#include <utility>

#include "host/base/status.h"

namespace outrigger::controller::local {
namespace {

namespace json = boost::json;

// A plain scalar is what it looks like; a quoted one is text.
json::value ScalarToJson(const YAML::Node& node) {
  const std::string& text = node.Scalar();
  if (node.Tag() == "!") return json::value(text);
  if (text == "null" || text == "~" || text.empty()) return nullptr;
  if (text == "true" || text == "false") return text == "true";
  int64_t integer = 0;
  if (absl::SimpleAtoi(text, &integer)) return integer;
  double number = 0;
  if (absl::SimpleAtod(text, &number)) return number;
  return json::value(text);
}

json::value ToJson(const YAML::Node& node) {
  if (node.IsMap()) {
    json::object object;
    for (const auto& entry : node) object[entry.first.Scalar()] = ToJson(entry.second);
    return object;
  }
  if (node.IsSequence()) {
    json::array array;
    for (const YAML::Node& item : node) array.push_back(ToJson(item));
    return array;
  }
  return node.IsScalar() ? ScalarToJson(node) : json::value(nullptr);
}

const std::map<std::string, kube::Resource>& Kinds() {
  static const auto* const kKinds = new std::map<std::string, kube::Resource>{
      {"Deployment", kube::Deployments()},
      {"ScaledObject", kube::ScaledObjects()},
      {"TriggerAuthentication", kube::TriggerAuthentications()},
      {"Secret", kube::Secrets()},
      {"ConfigMap", kube::ConfigMaps()},
  };
  return *kKinds;
}

// The API server does this for a Secret.
void EncodeStringData(json::object& secret) {
  json::value* plain = secret.if_contains("stringData");
  if (plain == nullptr || !plain->is_object()) return;
  json::object data;
  if (const json::value* given = secret.if_contains("data");
      given != nullptr && given->is_object()) {
    data = given->get_object();
  }
  for (const auto& [key, value] : plain->get_object()) {
    if (!value.is_string()) continue;
    const std::string text(value.get_string());
    data[key] = absl::Base64Escape(text);
  }
  secret["data"] = std::move(data);
  secret.erase("stringData");
}

absl::StatusOr<ManifestObject> ToManifest(const std::string& where, json::value document) {
  if (!document.is_object())
    return absl::InvalidArgumentError(absl::StrCat(where, ": want an object"));
  json::object& object = document.get_object();
  const json::value* kind = object.if_contains("kind");
  if (kind == nullptr || !kind->is_string())
    return absl::InvalidArgumentError(absl::StrCat(where, ": kind: want a text"));
  auto known = Kinds().find(std::string(kind->get_string()));
  if (known == Kinds().end()) {
    return absl::UnimplementedError(absl::StrCat(
        where,
        ": kind: want Deployment, ScaledObject, TriggerAuthentication, Secret or ConfigMap, got \"",
        std::string(kind->get_string()), "\""));
  }
  json::value& metadata = object["metadata"];
  if (!metadata.is_object() || !metadata.get_object().contains("name")) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": metadata.name: want a name, got nothing"));
  }
  json::value& namespace_name = metadata.get_object()["namespace"];
  if (!namespace_name.is_string()) namespace_name = "default";
  if (known->first == "Secret") EncodeStringData(object);
  ManifestObject manifest{.resource = known->second,
                          .namespace_name = std::string(namespace_name.get_string())};
  manifest.object = std::move(document);
  return manifest;
}

absl::Status LoadFile(const std::string& file, std::vector<ManifestObject>& objects) {
  std::ifstream input(file);
  if (!input) return absl::NotFoundError(absl::StrCat(file, ": cannot be read"));
  std::vector<YAML::Node> documents;
  try {
    documents = YAML::LoadAll(input);
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": line ", error.mark.line + 1, ": ", error.msg));
  }
  for (size_t i = 0; i < documents.size(); ++i) {
    if (!documents[i] || documents[i].IsNull()) continue;
    ASSIGN_OR_RETURN(ManifestObject object,
                     ToManifest(absl::StrCat(file, ", document ", i + 1), ToJson(documents[i])));
    objects.push_back(std::move(object));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<ManifestObject>> LoadManifests(const std::vector<std::string>& files) {
  std::vector<ManifestObject> objects;
  for (const std::string& file : files) RETURN_IF_ERROR(LoadFile(file, objects));
  if (objects.empty())
    return absl::InvalidArgumentError("-f: want files with at least one object, got none");
  return objects;
}

}  // namespace outrigger::controller::local
