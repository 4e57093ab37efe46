// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/strings/string_view.h>
#include <absl/time/time.h>

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "outrigger/scaler/v1/scaler.pb.h"

namespace outrigger::host::kit {

enum class ParameterType { kString, kInteger, kNumber, kBoolean, kDuration, kStringList };
enum class Source { kMetadata, kEnvironment, kAuthentication };

// One parameter of a trigger type, declared once: the parser, Describe and the printed reference
// all come from it.
struct ParameterSpec {
  std::string name;
  std::vector<std::string> aliases = {};  // other names, looked up after `name` in each source
  ParameterType type = ParameterType::kString;
  bool required = false;
  std::optional<std::string> default_value = std::nullopt;
  // Empty: any. Each comma-separated item must be one of these, case-sensitive.
  std::vector<std::string> enum_values = {};
  // Of these at most one item may appear in the value, and once.
  std::vector<std::string> exclusive_values = {};
  bool secret = false;      // its value is never printed, not even in a violation
  bool connection = false;  // part of the identity of the connection to the source
  std::vector<Source> sources = {Source::kMetadata};  // in order of precedence
  // Not empty: the parameter is gone; giving it is a violation that says this.
  std::string removed = "";
  std::string description = "";  // one line, with the unit
};

struct TriggerSchema {
  std::string type;         // as in triggers[].type
  std::string description;  // one line
  std::vector<ParameterSpec> parameters;
  bool open = false;        // wants every key of the metadata
  bool per_object = false;  // equal triggers of different objects are not the same question
  bool stateful = false;    // the answer depends on the poll before

  // nullptr: no such parameter (aliases do not count).
  const ParameterSpec* Find(absl::string_view name) const;
};

// What is wrong with a trigger, collected so that all of it can be named at once. Texts of users
// are cut and escaped; values of secret parameters never get in.
class Violations {
 public:
  // Prints as `field: want <wanted>, got <got>`. `got` is taken verbatim: see Quoted().
  void Add(absl::string_view field, absl::string_view wanted, absl::string_view got);
  bool empty() const { return list_.empty(); }
  const std::vector<scaler::v1::Violation>& list() const { return list_; }
  // All of them on one line, separated by "; ".
  std::string ToString() const;

 private:
  std::vector<scaler::v1::Violation> list_;
};

// `text` in quotes, escaped and cut to 64 bytes, for a violation or an error message.
std::string Quoted(absl::string_view text);

// The typed values of one trigger. A getter of a name that the schema does not declare, or of
// another type, ends the process: that is a bug of the plugin, not of its user. A parameter that is
// absent, or had a violation, reads as "" / 0 / false / empty; ask Has() where that matters.
class Parameters {
 public:
  bool Has(absl::string_view name) const;
  // Which source gave the value; nullopt: the default, or absent.
  std::optional<Source> SourceOf(absl::string_view name) const;

  const std::string& String(absl::string_view name) const;
  int64_t Integer(absl::string_view name) const;
  double Number(absl::string_view name) const;
  bool Boolean(absl::string_view name) const;
  absl::Duration Duration(absl::string_view name) const;
  const std::vector<std::string>& List(absl::string_view name) const;
  // The trimmed text as it was found, for violations of rules between parameters.
  const std::string& Text(absl::string_view name) const;
  // "nothing", for a violation about `names` being absent; with the variable of the target's
  // container that was to give one of them, if such was named.
  std::string Nothing(std::initializer_list<absl::string_view> names) const;

 private:
  friend class ParameterParser;
  using Value =
      std::variant<std::string, int64_t, double, bool, absl::Duration, std::vector<std::string>>;
  struct Entry {
    std::string text;
    std::optional<Source> source;
    bool present = false;
    std::string empty_variable;
    Value value;
  };
  const Entry& Find(absl::string_view name) const;

  std::map<std::string, Entry, std::less<>> entries_;
};

// Applies a schema to a trigger: looks each parameter up in its sources in order, trims it, takes
// the default, checks type, enum and presence. Never touches a source of data; never stops at the
// first violation. Pure. Source: spec/authentication.md section 7.
Parameters ParseParameters(const TriggerSchema& schema, const scaler::v1::Trigger& trigger,
                           Violations& violations);

// The schema as Describe tells it.
scaler::v1::TriggerType DescribeSchema(const TriggerSchema& schema);

// The schema as a Markdown table, for people: `outrigger-scaler-… --print-reference`.
std::string PrintReference(const TriggerSchema& schema);

}  // namespace outrigger::host::kit
