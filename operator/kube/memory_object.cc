// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/memory_object.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <algorithm>

namespace outrigger::controller::kube::memory {
namespace {

namespace json = boost::json;

json::string_view Key(absl::string_view key) { return {key.data(), key.size()}; }

bool IsEmpty(const json::value& value) {
  return value.is_null() || (value.is_object() && value.get_object().empty()) ||
         (value.is_array() && value.get_array().empty()) ||
         (value.is_string() && value.get_string().empty());
}

bool IsDnsLabel(absl::string_view label) {
  if (label.empty() || label.front() == '-' || label.back() == '-') return false;
  return std::all_of(label.begin(), label.end(), [](char c) {
    return absl::ascii_islower(static_cast<unsigned char>(c)) ||
           absl::ascii_isdigit(static_cast<unsigned char>(c)) || c == '-';
  });
}

}  // namespace

const json::object* FindObject(const json::object& parent, absl::string_view key) {
  const json::value* value = parent.if_contains(Key(key));
  return value == nullptr ? nullptr : value->if_object();
}

json::object* FindObject(json::object& parent, absl::string_view key) {
  json::value* value = parent.if_contains(Key(key));
  return value == nullptr ? nullptr : value->if_object();
}

json::array* FindArray(json::object& parent, absl::string_view key) {
  json::value* value = parent.if_contains(Key(key));
  return value == nullptr ? nullptr : value->if_array();
}

const json::array* FindArray(const json::object& parent, absl::string_view key) {
  const json::value* value = parent.if_contains(Key(key));
  return value == nullptr ? nullptr : value->if_array();
}

json::object& MakeObject(json::object& parent, absl::string_view key) {
  json::value& value = parent[Key(key)];
  if (!value.is_object()) value = json::object();
  return value.get_object();
}

std::string StringOf(const json::object& parent, absl::string_view key) {
  const json::value* value = parent.if_contains(Key(key));
  if (value == nullptr || !value->is_string()) return "";
  return std::string(value->get_string());
}

int64_t IntOf(const json::object& parent, absl::string_view key) {
  const json::value* value = parent.if_contains(Key(key));
  if (value == nullptr) return 0;
  if (value->is_int64()) return value->get_int64();
  return value->is_uint64() ? static_cast<int64_t>(value->get_uint64()) : 0;
}

std::string MetaString(const json::object& object, absl::string_view key) {
  const json::object* metadata = FindObject(object, "metadata");
  return metadata == nullptr ? "" : StringOf(*metadata, key);
}

api::Labels LabelsOf(const json::object& object) {
  api::Labels labels;
  const json::object* metadata = FindObject(object, "metadata");
  const json::object* members = metadata == nullptr ? nullptr : FindObject(*metadata, "labels");
  if (members == nullptr) return labels;
  for (const json::key_value_pair& member : *members) {
    if (member.value().is_string()) {
      labels.emplace(member.key(), member.value().get_string());
    }
  }
  return labels;
}

std::vector<std::string> FinalizersOf(const json::object& object) {
  std::vector<std::string> finalizers;
  const json::object* metadata = FindObject(object, "metadata");
  const json::array* list = metadata == nullptr ? nullptr : FindArray(*metadata, "finalizers");
  if (list == nullptr) return finalizers;
  for (const json::value& finalizer : *list) {
    if (finalizer.is_string()) finalizers.emplace_back(finalizer.get_string());
  }
  return finalizers;
}

int64_t GenerationOf(const json::object& object) {
  const json::object* metadata = FindObject(object, "metadata");
  return metadata == nullptr ? 0 : IntOf(*metadata, "generation");
}

bool IsBeingDeleted(const json::object& object) {
  return !MetaString(object, "deletionTimestamp").empty();
}

void CopyMember(const json::object& from, json::object& to, absl::string_view key) {
  const json::value* value = from.if_contains(Key(key));
  if (value == nullptr) {
    to.erase(Key(key));
  } else {
    to[Key(key)] = *value;
  }
}

void EraseZeros(json::object& parent, std::initializer_list<absl::string_view> keys) {
  for (absl::string_view key : keys) {
    const json::value* value = parent.if_contains(Key(key));
    if (value != nullptr && value->is_number() && *value == 0) parent.erase(Key(key));
  }
}

void EraseNulls(json::value& value) {
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

void EraseEmptyMetadata(json::object& object) {
  json::object& metadata = MakeObject(object, "metadata");
  metadata.erase("managedFields");
  metadata.erase("selfLink");
  for (auto it = metadata.begin(); it != metadata.end();) {
    it = IsEmpty(it->value()) ? metadata.erase(it) : it + 1;
  }
}

void MergePatch(json::value& target, const json::value& patch) {
  if (!patch.is_object()) {
    target = patch;
    return;
  }
  if (!target.is_object()) target = json::object();
  json::object& members = target.get_object();
  for (const json::key_value_pair& member : patch.get_object()) {
    if (member.value().is_null()) {
      members.erase(member.key());
    } else {
      MergePatch(members[member.key()], member.value());
    }
  }
}

std::string NameFault(absl::string_view name) {
  constexpr size_t kLongestName = 253;
  if (name.size() > kLongestName) return "must be no more than 253 characters";
  for (absl::string_view label : absl::StrSplit(name, '.')) {
    if (IsDnsLabel(label)) continue;
    return "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' "
           "or '.', and must start and end with an alphanumeric character (e.g. 'example.com', "
           "regex used for validation is "
           "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
  }
  return "";
}

}  // namespace outrigger::controller::kube::memory
