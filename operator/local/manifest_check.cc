// SPDX-License-Identifier: Apache-2.0
#include "operator/local/manifest_check.h"

#include <absl/strings/escaping.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <unistd.h>

#include <boost/json/object.hpp>
#include <cstdlib>
#include <filesystem>

#include "operator/api/object_meta.h"
#include "operator/api/object_reader.h"
#include "operator/api/scaled_object.h"
#include "operator/api/trigger_authentication.h"
#include "operator/api/validation.h"
#include "operator/api/workload.h"
#include "operator/local/container_command.h"
#include "operator/local/hpa_behavior.h"

namespace outrigger::controller::local {
namespace {

namespace json = boost::json;
using Faults = std::vector<std::string>;

constexpr char kContainer[] = "spec.template.spec.containers[0]";
constexpr char kBehavior[] = "spec.advanced.horizontalPodAutoscalerConfig.behavior";

void AddStatus(const absl::Status& status, Faults& faults) {
  if (!status.ok()) faults.emplace_back(status.message());
}

// RFC 1123, as the API server wants names.
bool IsDnsName(absl::string_view name) {
  if (name.empty() || name.size() > 253) return false;
  for (const absl::string_view label : absl::StrSplit(name, '.')) {
    if (label.empty() || label.front() == '-' || label.back() == '-') return false;
    for (const char c : label) {
      if (!absl::ascii_islower(c) && !absl::ascii_isdigit(c) && c != '-') return false;
    }
  }
  return true;
}

Faults CheckMeta(const json::value& object) {
  const absl::StatusOr<api::ObjectMeta> meta = api::ParseObjectMeta(object);
  if (!meta.ok()) return {std::string(meta.status().message())};
  Faults faults;
  const auto check = [&](absl::string_view field, const std::string& name) {
    if (name.empty() || IsDnsName(name)) return;
    faults.push_back(absl::StrCat(field,
                                  ": want lower-case letters, digits, - and . between them, "
                                  "got \"",
                                  absl::CHexEscape(name), "\""));
  };
  check("metadata.name", meta->name);
  check("metadata.namespace", meta->namespace_name);
  return faults;
}

void CheckScaledObject(const json::value& object, Faults& faults) {
  const absl::StatusOr<api::ScaledObject> parsed = api::ParseScaledObject(object);
  if (!parsed.ok()) return AddStatus(parsed.status(), faults);
  for (const api::Violation& violation : api::ValidateScaledObject(*parsed)) {
    faults.push_back(violation.ToString());
  }
  if (const auto field = api::UnsupportedField(*parsed)) {
    faults.push_back(absl::StrCat(*field, ": want nothing (it is not supported yet), got a value"));
  }
  // It is copied into the HPA: in a cluster the API server would refuse that.
  const json::value& behavior = parsed->spec.advanced.hpa_behavior;
  if (!behavior.is_null()) {
    AddStatus(ParseHpaBehavior(behavior, absl::ZeroDuration(), kBehavior).status(), faults);
  }
  const std::string& kind = parsed->spec.scale_target_ref.kind;
  if (!kind.empty() && kind != "Deployment") {
    faults.push_back(
        absl::StrCat("spec.scaleTargetRef.kind: want Deployment (nothing else becomes "
                     "local processes), got \"",
                     absl::CHexEscape(kind), "\""));
  }
}

bool IsProgram(const std::string& path) {
  std::error_code ignored;
  return access(path.c_str(), X_OK) == 0 && !std::filesystem::is_directory(path, ignored);
}

// As execvp will look for it.
bool CanBeFound(const std::string& program, const std::string& working_dir) {
  if (absl::StrContains(program, "/")) {
    const bool relative = program.front() != '/' && !working_dir.empty();
    return IsProgram(relative ? absl::StrCat(working_dir, "/", program) : program);
  }
  const char* path = std::getenv("PATH");
  for (const absl::string_view folder : absl::StrSplit(path == nullptr ? "" : path, ':')) {
    if (IsProgram(absl::StrCat(folder, folder.empty() ? "" : "/", program))) return true;
  }
  return false;
}

void CheckCommand(const ContainerCommand& command, Faults& faults) {
  std::error_code ignored;
  if (!command.working_dir.empty() &&
      !std::filesystem::is_directory(command.working_dir, ignored)) {
    faults.push_back(absl::StrCat(kContainer, ".workingDir: want a folder of this machine, got \"",
                                  absl::CHexEscape(command.working_dir), "\""));
    return;
  }
  if (CanBeFound(command.argv.front(), command.working_dir)) return;
  faults.push_back(absl::StrCat(kContainer,
                                ".command[0]: want a program that can be run on this machine, got "
                                "\"",
                                absl::CHexEscape(command.argv.front()), "\""));
}

void CheckDeployment(const json::value& object, Faults& faults) {
  AddStatus(api::ParseWorkload(object).status(), faults);
  json::error_code ignored;
  const json::value* spec = object.find_pointer("/spec", ignored);
  if (spec == nullptr || !spec->is_object()) {
    faults.emplace_back("spec: want an object, got nothing of that kind");
    return;
  }
  const absl::StatusOr<ContainerCommand> command = ParseContainerCommand(spec->get_object());
  if (command.ok()) return CheckCommand(*command, faults);
  // The two read the same fields: one fault is told once.
  if (faults.empty()) AddStatus(command.status(), faults);
}

void CheckTexts(const json::value& object, const char* member, bool base64, Faults& faults) {
  const json::value* texts = object.get_object().if_contains(member);
  if (texts == nullptr || texts->is_null()) return;
  if (!texts->is_object()) {
    faults.push_back(absl::StrCat(member, ": want an object, got ", api::DescribeJson(*texts)));
    return;
  }
  for (const auto& [key, value] : texts->get_object()) {
    const std::string field = absl::StrCat(member, ".", absl::string_view(key.data(), key.size()));
    std::string decoded;
    // A value of a Secret is never shown.
    if (!value.is_string()) {
      faults.push_back(absl::StrCat(field, ": want a text in quotes, got something else"));
    } else if (base64 && !absl::Base64Unescape(std::string(value.get_string()), &decoded)) {
      faults.push_back(absl::StrCat(field,
                                    ": want base64 (plain text belongs in stringData), got "
                                    "something else"));
    }
  }
}

}  // namespace

const std::vector<KnownKind>& KnownKinds() {
  static const auto* const kKinds = new std::vector<KnownKind>{
      {"apps/v1", "Deployment", kube::Deployments},
      {api::kKedaApiVersion, api::kScaledObjectKind, kube::ScaledObjects},
      {api::kKedaApiVersion, api::kTriggerAuthenticationKind, kube::TriggerAuthentications},
      {api::kKedaApiVersion, api::kClusterTriggerAuthenticationKind,
       kube::ClusterTriggerAuthentications},
      {"v1", "Secret", kube::Secrets},
      {"v1", "ConfigMap", kube::ConfigMaps},
  };
  return *kKinds;
}

std::vector<std::string> CheckManifest(const std::string& kind, const json::value& object) {
  Faults faults = CheckMeta(object);
  if (!faults.empty()) return faults;  // the checks below would say the same again
  if (kind == api::kScaledObjectKind) {
    CheckScaledObject(object, faults);
  } else if (kind == "Deployment") {
    CheckDeployment(object, faults);
  } else if (kind == "Secret" || kind == "ConfigMap") {
    CheckTexts(object, "data", /*base64=*/kind == "Secret", faults);
    CheckTexts(object, "stringData", /*base64=*/false, faults);
  } else {
    AddStatus(api::ParseTriggerAuthentication(object).status(), faults);
  }
  return faults;
}

}  // namespace outrigger::controller::local
