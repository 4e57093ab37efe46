// SPDX-License-Identifier: Apache-2.0
#include "host/kit/parameter.h"

#include <absl/strings/ascii.h>
#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "host/kit/value_syntax.h"

namespace outrigger::host::kit {
namespace {

constexpr size_t kMaxQuotedBytes = 64;
constexpr absl::string_view kHidden = "a value that is not shown";

[[noreturn]] void DieOfPluginBug(absl::string_view what, absl::string_view name) {
  std::fprintf(stderr, "bug: parameter \"%s\": %s\n", std::string(name).c_str(),
               std::string(what).c_str());
  std::abort();
}

absl::string_view SourceName(Source source) {
  switch (source) {
    case Source::kMetadata:
      return "metadata";
    case Source::kEnvironment:
      return "environment";
    case Source::kAuthentication:
      return "authentication";
  }
  return "";
}

const google::protobuf::Map<std::string, std::string>& MapOf(const scaler::v1::Trigger& trigger,
                                                             Source source) {
  switch (source) {
    case Source::kEnvironment:
      return trigger.environment();
    case Source::kAuthentication:
      return trigger.authentication();
    case Source::kMetadata:
      break;
  }
  return trigger.metadata();
}

struct Found {
  std::string text;
  Source source;
};

std::vector<std::string> NamesOf(const ParameterSpec& spec) {
  std::vector<std::string> names = {spec.name};
  names.insert(names.end(), spec.aliases.begin(), spec.aliases.end());
  return names;
}

// Sources in order, within a source the names in order; what is empty after trimming is not there.
std::optional<Found> LookUp(const ParameterSpec& spec, const scaler::v1::Trigger& trigger) {
  const std::vector<std::string> names = NamesOf(spec);
  for (const Source source : spec.sources) {
    const auto& map = MapOf(trigger, source);
    for (const std::string& name : names) {
      const auto it = map.find(name);
      if (it == map.end()) continue;
      const absl::string_view text = absl::StripAsciiWhitespace(it->second);
      if (!text.empty()) return Found{std::string(text), source};
    }
  }
  return std::nullopt;
}

// For an absent parameter whose `…FromEnv` was given: which variable gave nothing. "" otherwise.
std::string EmptyVariable(const ParameterSpec& spec, const scaler::v1::Trigger& trigger) {
  if (std::find(spec.sources.begin(), spec.sources.end(), Source::kEnvironment) ==
      spec.sources.end()) {
    return "";
  }
  for (const std::string& name : NamesOf(spec)) {
    const auto it = trigger.metadata().find(name + "FromEnv");
    if (it == trigger.metadata().end()) continue;
    return absl::StrCat(it->first, ": ", spec.secret ? "its variable" : Quoted(it->second),
                        " is missing or empty in the target's container");
  }
  return "";
}

std::string JoinSources(const std::vector<Source>& sources) {
  return absl::StrJoin(sources, ", ", [](std::string* out, Source source) {
    absl::StrAppend(out, SourceName(source));
  });
}

absl::string_view WantedText(ParameterType type) {
  switch (type) {
    case ParameterType::kString:
      return "a text";
    case ParameterType::kInteger:
      return "an integer";
    case ParameterType::kNumber:
      return "a number";
    case ParameterType::kBoolean:
      return "true or false";
    case ParameterType::kDuration:
      return "a duration such as 1m30s, or milliseconds, not negative";
    case ParameterType::kStringList:
      return "a comma separated list";
  }
  return "";
}

std::string GotText(const ParameterSpec& spec, absl::string_view text) {
  return spec.secret ? std::string(kHidden) : Quoted(text);
}

bool Contains(const std::vector<std::string>& set, const std::string& item) {
  return std::find(set.begin(), set.end(), item) != set.end();
}

void CheckItems(const ParameterSpec& spec, const std::string& text, Violations& violations) {
  const std::vector<std::string> items = SplitList(text);
  const auto legal = [&](const std::string& item) { return Contains(spec.enum_values, item); };
  if (!spec.enum_values.empty() && !std::all_of(items.begin(), items.end(), legal)) {
    violations.Add(spec.name, absl::StrCat("one of ", absl::StrJoin(spec.enum_values, ", ")),
                   GotText(spec, text));
  }
  const auto exclusive = [&](const std::string& item) {
    return Contains(spec.exclusive_values, item);
  };
  if (std::count_if(items.begin(), items.end(), exclusive) > 1) {
    violations.Add(spec.name,
                   absl::StrCat("at most one of ", absl::StrJoin(spec.exclusive_values, ", ")),
                   GotText(spec, text));
  }
}

}  // namespace

// Fills the entries of Parameters; a class so that it may.
class ParameterParser {
 public:
  ParameterParser(const scaler::v1::Trigger& trigger, Violations& violations)
      : trigger_(trigger), violations_(violations) {}

  void Parse(const ParameterSpec& spec, Parameters& parameters) {
    Parameters::Entry& entry = parameters.entries_[spec.name];
    entry.value = ZeroOf(spec.type);
    const std::optional<Found> found = LookUp(spec, trigger_);
    if (found && !spec.removed.empty()) {
      return violations_.Add(spec.name, absl::StrCat("nothing: ", spec.removed),
                             GotText(spec, found->text));
    }
    if (found) {
      entry.text = found->text;
      entry.source = found->source;
    } else if (spec.default_value) {
      entry.text = *spec.default_value;
    } else {
      entry.empty_variable = EmptyVariable(spec, trigger_);
      if (spec.required) AddMissing(spec, parameters);
      return;
    }
    std::optional<Parameters::Value> value = Convert(spec.type, entry.text);
    if (!value) return violations_.Add(spec.name, WantedText(spec.type), GotText(spec, entry.text));
    entry.value = *std::move(value);
    entry.present = true;
    CheckItems(spec, entry.text, violations_);
  }

 private:
  using Value = Parameters::Value;

  void AddMissing(const ParameterSpec& spec, const Parameters& parameters) {
    violations_.Add(absl::StrJoin(NamesOf(spec), ","),
                    absl::StrCat("a value in ", JoinSources(spec.sources)),
                    parameters.Nothing({spec.name}));
  }

  static Value ZeroOf(ParameterType type) {
    switch (type) {
      case ParameterType::kString:
        return std::string();
      case ParameterType::kInteger:
        return int64_t{0};
      case ParameterType::kNumber:
        return 0.0;
      case ParameterType::kBoolean:
        return false;
      case ParameterType::kDuration:
        return absl::ZeroDuration();
      case ParameterType::kStringList:
        return std::vector<std::string>();
    }
    return std::string();
  }

  template <typename T>
  static std::optional<Value> Wrap(std::optional<T> value) {
    if (!value) return std::nullopt;
    return Value(*std::move(value));
  }

  static std::optional<Value> Convert(ParameterType type, const std::string& text) {
    switch (type) {
      case ParameterType::kString:
        return Value(text);
      case ParameterType::kInteger:
        return Wrap(ParseInteger(text));
      case ParameterType::kNumber:
        return Wrap(ParseNumber(text));
      case ParameterType::kBoolean:
        return Wrap(ParseBoolean(text));
      case ParameterType::kDuration:
        return Wrap(ParseDuration(text));
      case ParameterType::kStringList:
        return Value(SplitList(text));
    }
    return std::nullopt;
  }

  const scaler::v1::Trigger& trigger_;
  Violations& violations_;
};

const ParameterSpec* TriggerSchema::Find(absl::string_view name) const {
  for (const ParameterSpec& spec : parameters) {
    if (spec.name == name) return &spec;
  }
  return nullptr;
}

void Violations::Add(absl::string_view field, absl::string_view wanted, absl::string_view got) {
  scaler::v1::Violation violation;
  violation.set_field(std::string(field));
  violation.set_wanted(std::string(wanted));
  violation.set_got(std::string(got));
  list_.push_back(std::move(violation));
}

std::string Violations::ToString() const {
  return absl::StrJoin(list_, "; ", [](std::string* out, const scaler::v1::Violation& v) {
    absl::StrAppend(out, v.field(), ": want ", v.wanted(), ", got ", v.got());
  });
}

std::string Quoted(absl::string_view text) {
  const bool cut = text.size() > kMaxQuotedBytes;
  return absl::StrCat("\"", absl::Utf8SafeCEscape(text.substr(0, kMaxQuotedBytes)),
                      cut ? "…\"" : "\"");
}

const Parameters::Entry& Parameters::Find(absl::string_view name) const {
  const auto it = entries_.find(name);
  if (it == entries_.end()) DieOfPluginBug("not in the schema", name);
  return it->second;
}

bool Parameters::Has(absl::string_view name) const { return Find(name).present; }

std::optional<Source> Parameters::SourceOf(absl::string_view name) const {
  return Find(name).source;
}

const std::string& Parameters::Text(absl::string_view name) const { return Find(name).text; }

std::string Parameters::Nothing(std::initializer_list<absl::string_view> names) const {
  std::vector<std::string> variables;
  for (const absl::string_view name : names) {
    if (!Find(name).empty_variable.empty()) variables.push_back(Find(name).empty_variable);
  }
  if (variables.empty()) return "nothing";
  return absl::StrCat("nothing (", absl::StrJoin(variables, ", "), ")");
}

namespace {
template <typename T, typename Value>
const T& Get(const Value& value, absl::string_view name) {
  const T* typed = std::get_if<T>(&value);
  if (typed == nullptr) DieOfPluginBug("read as another type than the schema says", name);
  return *typed;
}
}  // namespace

const std::string& Parameters::String(absl::string_view name) const {
  return Get<std::string>(Find(name).value, name);
}
int64_t Parameters::Integer(absl::string_view name) const {
  return Get<int64_t>(Find(name).value, name);
}
double Parameters::Number(absl::string_view name) const {
  return Get<double>(Find(name).value, name);
}
bool Parameters::Boolean(absl::string_view name) const { return Get<bool>(Find(name).value, name); }
absl::Duration Parameters::Duration(absl::string_view name) const {
  return Get<absl::Duration>(Find(name).value, name);
}
const std::vector<std::string>& Parameters::List(absl::string_view name) const {
  return Get<std::vector<std::string>>(Find(name).value, name);
}

Parameters ParseParameters(const TriggerSchema& schema, const scaler::v1::Trigger& trigger,
                           Violations& violations) {
  Parameters parameters;
  ParameterParser parser(trigger, violations);
  for (const ParameterSpec& spec : schema.parameters) parser.Parse(spec, parameters);
  return parameters;
}

}  // namespace outrigger::host::kit
