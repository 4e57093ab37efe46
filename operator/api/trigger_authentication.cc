// SPDX-License-Identifier: Apache-2.0
#include "operator/api/trigger_authentication.h"

#include <absl/strings/str_cat.h>

#include <utility>

#include "host/base/status.h"
#include "operator/api/object_reader.h"

namespace outrigger::controller::api {
namespace {

namespace json = boost::json;

// Every source of spec/authentication.md section 3 but secretTargetRef and podIdentity.
constexpr const char* kOtherSources[] = {"configMapTargetRef",
                                         "env",
                                         "filePath",
                                         "hashiCorpVault",
                                         "azureKeyVault",
                                         "gcpSecretManager",
                                         "awsSecretManager",
                                         "boundServiceAccountToken",
                                         "oauth2"};

absl::StatusOr<SecretTargetRef> ParseSecretTargetRef(std::string path, const json::value& value) {
  SecretTargetRef ref;
  ObjectReader reader(std::move(path), value);
  reader.Read("parameter", ref.parameter);
  reader.Require("parameter", ref.parameter);
  reader.Read("name", ref.name);
  reader.Require("name", ref.name);
  reader.Read("key", ref.key);
  reader.Require("key", ref.key);
  RETURN_IF_ERROR(reader.status());
  return ref;
}

bool IsGiven(const json::value* value) {
  if (value == nullptr) return false;
  if (value->is_array()) return !value->get_array().empty();
  if (value->is_string()) return !value->get_string().empty();
  return true;
}

absl::Status ReadPodIdentity(ObjectReader& spec, std::vector<std::string>& other_sources) {
  const json::value* value = spec.FindObject("podIdentity");
  if (value == nullptr) return spec.status();
  std::string provider;
  ObjectReader reader(spec.PathOf("podIdentity"), *value);
  reader.Read("provider", provider);
  if (!provider.empty() && provider != "none") other_sources.push_back("podIdentity");
  return reader.status();
}

absl::Status ReadSpec(ObjectReader& spec, TriggerAuthentication& out) {
  if (const json::array* items = spec.FindArray("secretTargetRef"); items != nullptr) {
    for (size_t i = 0; i < items->size(); ++i) {
      ASSIGN_OR_RETURN(
          SecretTargetRef ref,
          ParseSecretTargetRef(spec.PathOf(absl::StrCat("secretTargetRef[", i, "]")), (*items)[i]));
      out.secret_target_refs.push_back(std::move(ref));
    }
  }
  spec.Merge(ReadPodIdentity(spec, out.other_sources));
  for (const char* source : kOtherSources) {
    if (IsGiven(spec.Find(source))) out.other_sources.push_back(source);
  }
  return spec.status();
}

}  // namespace

absl::StatusOr<TriggerAuthentication> ParseTriggerAuthentication(const json::value& object) {
  TriggerAuthentication authentication;
  ASSIGN_OR_RETURN(authentication.meta, ParseObjectMeta(object));
  ObjectReader reader("", object);
  reader.Read("kind", authentication.kind);
  const json::value* spec = reader.FindObject("spec");
  RETURN_IF_ERROR(reader.status());
  if (authentication.kind != kTriggerAuthenticationKind &&
      authentication.kind != kClusterTriggerAuthenticationKind) {
    return absl::InvalidArgumentError(absl::StrCat("kind: want ", kTriggerAuthenticationKind,
                                                   " or ", kClusterTriggerAuthenticationKind,
                                                   ", got \"", authentication.kind, "\""));
  }
  if (spec == nullptr) return authentication;  // every source is optional
  ObjectReader spec_reader("spec", *spec);
  RETURN_IF_ERROR(ReadSpec(spec_reader, authentication));
  return authentication;
}

}  // namespace outrigger::controller::api
