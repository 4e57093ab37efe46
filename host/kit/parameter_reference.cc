// SPDX-License-Identifier: Apache-2.0
// The two ways in which a schema is told to others: Describe, and a table for people.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_replace.h>

#include "host/kit/parameter.h"

namespace outrigger::host::kit {
namespace {

using Proto = scaler::v1::Parameter;

Proto::Type ProtoType(ParameterType type) {
  switch (type) {
    case ParameterType::kString:
      return Proto::STRING;
    case ParameterType::kInteger:
      return Proto::INTEGER;
    case ParameterType::kNumber:
      return Proto::NUMBER;
    case ParameterType::kBoolean:
      return Proto::BOOLEAN;
    case ParameterType::kDuration:
      return Proto::DURATION;
    case ParameterType::kStringList:
      return Proto::STRING_LIST;
  }
  return Proto::TYPE_UNSPECIFIED;
}

Proto::Source ProtoSource(Source source) {
  switch (source) {
    case Source::kMetadata:
      return Proto::METADATA;
    case Source::kEnvironment:
      return Proto::ENVIRONMENT;
    case Source::kAuthentication:
      return Proto::AUTHENTICATION;
  }
  return Proto::SOURCE_UNSPECIFIED;
}

absl::string_view TypeText(ParameterType type) {
  switch (type) {
    case ParameterType::kString:
      return "text";
    case ParameterType::kInteger:
      return "integer";
    case ParameterType::kNumber:
      return "number";
    case ParameterType::kBoolean:
      return "boolean";
    case ParameterType::kDuration:
      return "duration";
    case ParameterType::kStringList:
      return "list";
  }
  return "";
}

std::string SourceText(const ParameterSpec& spec) {
  return absl::StrJoin(spec.sources, ", ", [&](std::string* out, Source source) {
    switch (source) {
      case Source::kMetadata:
        return absl::StrAppend(out, "metadata");
      case Source::kEnvironment:
        return absl::StrAppend(out, "`", spec.name, "FromEnv`");
      case Source::kAuthentication:
        return absl::StrAppend(out, "authentication");
    }
  });
}

std::string NameText(const ParameterSpec& spec) {
  std::string text = absl::StrCat("`", spec.name, "`");
  for (const std::string& alias : spec.aliases) absl::StrAppend(&text, " (`", alias, "`)");
  return text;
}

std::string DefaultText(const ParameterSpec& spec) {
  if (spec.required) return "required";
  return spec.default_value ? absl::StrCat("`", *spec.default_value, "`") : "";
}

std::string DescriptionText(const ParameterSpec& spec) {
  std::string text = spec.description;
  if (!spec.enum_values.empty()) {
    absl::StrAppend(&text, " One of `", absl::StrJoin(spec.enum_values, "`, `"), "`.");
  }
  if (spec.secret) absl::StrAppend(&text, " Secret.");
  return absl::StrReplaceAll(text, {{"|", "\\|"}});
}

}  // namespace

scaler::v1::TriggerType DescribeSchema(const TriggerSchema& schema) {
  scaler::v1::TriggerType type;
  type.set_name(schema.type);
  type.set_description(schema.description);
  type.set_open(schema.open);
  type.set_per_object(schema.per_object);
  type.set_stateful(schema.stateful);
  for (const ParameterSpec& spec : schema.parameters) {
    Proto& parameter = *type.add_parameters();
    parameter.set_name(spec.name);
    for (const std::string& alias : spec.aliases) parameter.add_aliases(alias);
    parameter.set_type(ProtoType(spec.type));
    parameter.set_required(spec.required);
    if (spec.default_value) parameter.set_default_value(*spec.default_value);
    for (const std::string& value : spec.enum_values) parameter.add_enum_values(value);
    parameter.set_secret(spec.secret);
    parameter.set_connection(spec.connection);
    for (const Source source : spec.sources) parameter.add_sources(ProtoSource(source));
    parameter.set_description(spec.description);
  }
  return type;
}

std::string PrintReference(const TriggerSchema& schema) {
  std::string text = absl::StrCat("## Trigger type `", schema.type, "`\n\n", schema.description,
                                  "\n\n| parameter | type | default | where, first found wins | "
                                  "meaning |\n| --- | --- | --- | --- | --- |\n");
  for (const ParameterSpec& spec : schema.parameters) {
    absl::StrAppend(&text, "| ", NameText(spec), " | ", TypeText(spec.type), " | ",
                    DefaultText(spec), " | ", SourceText(spec), " | ", DescriptionText(spec),
                    " |\n");
  }
  return text;
}

}  // namespace outrigger::host::kit
