// SPDX-License-Identifier: Apache-2.0
#include "operator/local/manifest.h"

#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <boost/json/object.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "operator/api/object_reader.h"
#include "operator/api/scaled_object.h"
#include "operator/api/trigger_authentication.h"
#include "operator/local/manifest_check.h"
#include "operator/local/yaml_documents.h"

namespace outrigger::controller::local {
namespace {

namespace json = boost::json;

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
    const std::string text(value.get_string());
    data[key] = absl::Base64Escape(text);
  }
  secret["data"] = std::move(data);
  secret.erase("stringData");
}

std::string TextAt(const json::value& object, const char* pointer) {
  json::error_code ignored;
  const json::value* value = object.find_pointer(pointer, ignored);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : "";
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return absl::InvalidArgumentError("want a YAML file, got a folder");
  }
  std::ifstream file(path);
  if (!file) return absl::NotFoundError("want a YAML file that can be read, got none");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string NamesOfKinds() {
  return absl::StrJoin(KnownKinds(), ", ", [](std::string* out, const KnownKind& known) {
    absl::StrAppend(out, known.kind);
  });
}

// Where something stands.
struct Place {
  std::string file;
  size_t document = 0;  // from 1
  const YamlDocument* yaml = nullptr;
  std::string object;  // "ScaledObject default/worker"; "": not known (yet)
};

class Loader {
 public:
  void LoadFile(const std::string& file) {
    std::error_code ignored;
    const std::string canonical = std::filesystem::weakly_canonical(file, ignored).string();
    if (!files_.insert(canonical).second) {
      faults_.push_back(absl::StrCat(file, ": want each file once, got it twice"));
      return;
    }
    const absl::StatusOr<std::string> text = ReadFile(file);
    if (!text.ok()) return FileFault(file, text.status());
    const absl::StatusOr<std::vector<YamlDocument>> documents = ParseYaml(*text);
    if (!documents.ok()) return FileFault(file, documents.status());
    bool any = false;
    for (size_t i = 0; i < documents->size(); ++i) {
      const YamlDocument& yaml = (*documents)[i];
      if (yaml.value.is_null()) continue;  // nothing between two separators
      any = true;
      Add({.file = file, .document = i + 1, .yaml = &yaml});
    }
    if (!any) faults_.push_back(absl::StrCat(file, ": want at least one object, got none"));
  }

  absl::StatusOr<std::vector<ManifestObject>> Result() && {
    // What refers to an object that is wrong itself would only repeat it.
    if (faults_.empty()) CheckReferences();
    if (!faults_.empty()) return absl::InvalidArgumentError(absl::StrJoin(faults_, "\n"));
    return std::move(objects_);
  }

 private:
  void FileFault(const std::string& file, const absl::Status& status) {
    faults_.push_back(absl::StrCat(file, ": ", status.message()));
  }

  // `what` is "field: want …, got …".
  void Fault(const Place& place, const std::string& what) {
    const int line = place.yaml->LineOf(what.substr(0, what.find(": ")));
    faults_.push_back(absl::StrCat(place.file, ", document ", place.document, ", line ", line,
                                   place.object.empty() ? "" : ", ", place.object, ": ", what));
  }

  void Add(Place place) {
    const json::value& value = place.yaml->value;
    for (const std::string& fault : place.yaml->faults) Fault(place, fault);
    if (!value.is_object()) {
      Fault(place, absl::StrCat("the document: want an object with apiVersion and kind, got ",
                                api::DescribeJson(value)));
      return;
    }
    const KnownKind* known = FindKind(place);
    if (known == nullptr) return;
    const bool namespaced = known->resource().namespaced;
    const std::string given = TextAt(value, "/metadata/namespace");
    const std::string namespace_name = !namespaced ? "" : given.empty() ? "default" : given;
    const std::string name = TextAt(value, "/metadata/name");
    if (!name.empty()) {
      place.object = absl::StrCat(known->kind, " ", namespace_name, namespaced ? "/" : "", name);
    }
    const std::vector<std::string> wrong = CheckManifest(known->kind, value);
    for (const std::string& fault : wrong) Fault(place, fault);
    if (wrong.empty()) Keep(place, *known, namespace_name);
  }

  const KnownKind* FindKind(const Place& place) {
    const std::string kind = TextAt(place.yaml->value, "/kind");
    const std::string api_version = TextAt(place.yaml->value, "/apiVersion");
    for (const KnownKind& known : KnownKinds()) {
      if (kind != known.kind) continue;
      if (api_version == known.api_version) return &known;
      Fault(place, absl::StrCat("apiVersion: want ", known.api_version, " for a ", known.kind,
                                ", got ", Got(api_version)));
      return nullptr;
    }
    Fault(place, absl::StrCat("kind: want one of ", NamesOfKinds(), ", got ", Got(kind)));
    return nullptr;
  }

  static std::string Got(const std::string& text) {
    return text.empty() ? "nothing" : absl::StrCat("\"", absl::CHexEscape(text), "\"");
  }

  void Keep(const Place& place, const KnownKind& known, const std::string& namespace_name) {
    const std::string where = absl::StrCat(place.file, ", document ", place.document);
    const auto [first, is_new] = where_.try_emplace(place.object, where);
    if (!is_new) {
      Fault(place, absl::StrCat("metadata.name: want a name that no other ", known.kind,
                                " has, got that of ", first->second));
      return;
    }
    ManifestObject manifest{.resource = known.resource(),
                            .namespace_name = namespace_name,
                            .object = place.yaml->value,
                            .source = absl::StrCat(where, ", ", place.object)};
    json::object& object = manifest.object.get_object();
    json::object& metadata = object["metadata"].get_object();
    metadata.erase("namespace");
    if (!namespace_name.empty()) metadata["namespace"] = namespace_name;
    EncodeStringData(object);
    objects_.push_back(std::move(manifest));
  }

  void CheckReferences() {
    for (const ManifestObject& manifest : objects_) {
      if (!(manifest.resource == kube::ScaledObjects())) continue;
      const absl::StatusOr<api::ScaledObject> object = api::ParseScaledObject(manifest.object);
      if (object.ok()) CheckReferences(manifest, object->spec);
    }
  }

  // Files are all that there is: what they do not have never comes.
  void CheckReferences(const ManifestObject& manifest, const api::ScaledObjectSpec& spec) {
    Refer(manifest, "spec.scaleTargetRef.name", "Deployment", manifest.namespace_name,
          spec.scale_target_ref.name);
    for (size_t i = 0; i < spec.triggers.size(); ++i) {
      const std::optional<api::AuthenticationRef>& ref = spec.triggers[i].authentication_ref;
      if (!ref) continue;
      const std::string kind = ref->kind.empty() ? api::kTriggerAuthenticationKind : ref->kind;
      const bool cluster = kind == api::kClusterTriggerAuthenticationKind;
      Refer(manifest, absl::StrCat("spec.triggers[", i, "].authenticationRef.name"), kind,
            cluster ? "" : manifest.namespace_name, ref->name);
    }
  }

  void Refer(const ManifestObject& from, const std::string& field, const std::string& kind,
             const std::string& namespace_name, const std::string& name) {
    const std::string object =
        absl::StrCat(kind, " ", namespace_name, namespace_name.empty() ? "" : "/", name);
    if (where_.contains(object)) return;
    faults_.push_back(absl::StrCat(from.source, ": ", field, ": want a ", kind,
                                   " that one of the files has, got \"", name, "\""));
  }

  std::set<std::string> files_;
  std::map<std::string, std::string> where_;  // "ScaledObject default/worker": file and document
  std::vector<ManifestObject> objects_;
  std::vector<std::string> faults_;
};

}  // namespace

absl::StatusOr<std::vector<ManifestObject>> LoadManifests(const std::vector<std::string>& files) {
  Loader loader;
  for (const std::string& file : files) loader.LoadFile(file);
  return std::move(loader).Result();
}

}  // namespace outrigger::controller::local
