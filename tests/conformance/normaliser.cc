// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/normaliser.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_replace.h>

#include <boost/json/serialize.hpp>
#include <regex>

namespace outrigger::conformance {

namespace json = boost::json;

std::string SortedText(const json::value& value) {
  if (value.is_array()) {
    std::string text = "[";
    for (const json::value& item : value.get_array()) absl::StrAppend(&text, SortedText(item), ",");
    return text + "]";
  }
  if (!value.is_object()) return json::serialize(value);
  std::map<std::string, std::string> members;
  for (const json::key_value_pair& member : value.get_object()) {
    members[std::string(member.key())] = SortedText(member.value());
  }
  std::string text = "{";
  for (const auto& [key, member] : members) absl::StrAppend(&text, key, ":", member, ",");
  return text + "}";
}

std::string Normaliser::Symbol(const char* prefix, std::map<std::string, std::string>& known,
                               const std::string& value) {
  const auto [it, added] = known.try_emplace(value);
  if (added) it->second = absl::StrCat(prefix, known.size());
  return it->second;
}

void Normaliser::EraseNulls(json::value& value) {
  if (value.is_array()) {
    for (json::value& item : value.get_array()) EraseNulls(item);
  }
  if (!value.is_object()) return;
  json::object& object = value.get_object();
  for (auto it = object.begin(); it != object.end();) {
    if (it->value().is_null()) {
      it = object.erase(it);
    } else {
      EraseNulls(it->value());
      ++it;
    }
  }
}

void Normaliser::Metadata(json::object& metadata) {
  metadata.erase("managedFields");
  for (const char* time : {"creationTimestamp", "deletionTimestamp"}) {
    if (metadata.contains(time)) metadata[time] = "T";
  }
  if (json::value* uid = metadata.if_contains("uid")) {
    *uid = Symbol("uid-", uids_, std::string(uid->as_string()));
  }
  if (json::value* version = metadata.if_contains("resourceVersion")) {
    *version = Symbol("rv-", versions_, std::string(version->as_string()));
  }
}

json::value Normaliser::Object(json::value object) {
  EraseNulls(object);
  if (json::object* members = object.if_object()) {
    if (json::value* metadata = members->if_contains("metadata")) Metadata(metadata->as_object());
  }
  return object;
}

std::string Normaliser::Text(std::string text) {
  for (const auto& [uid, symbol] : uids_) text = absl::StrReplaceAll(text, {{uid, symbol}});
  static const std::regex* const kVersion = new std::regex("\\((\\d+)\\)");
  std::string result;
  std::smatch match;
  while (std::regex_search(text, match, *kVersion)) {
    absl::StrAppend(&result, match.prefix().str(), "(", Symbol("rv-", versions_, match[1]), ")");
    text = match.suffix();
  }
  return result + text;
}

}  // namespace outrigger::conformance
