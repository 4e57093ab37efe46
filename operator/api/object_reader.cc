// SPDX-License-Identifier: Apache-2.0
#include "operator/api/object_reader.h"

#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>

#include <boost/json/serialize.hpp>
#include <limits>
#include <utility>

#include "operator/api/object_meta.h"

namespace outrigger::controller::api {
namespace {

namespace json = boost::json;

constexpr size_t kLongestQuote = 64;

std::string Text(const json::string& text) { return std::string(text.data(), text.size()); }

// Go's decoder takes "5" for an integer field, but not "5.0"; neither do we.
std::optional<int64_t> AsInteger(const json::value& value) {
  if (!value.is_int64()) return std::nullopt;  // a uint64 is beyond the range of int64
  return value.get_int64();
}

}  // namespace

std::string DescribeJson(const json::value& value) {
  switch (value.kind()) {
    case json::kind::null:
      return "null";
    case json::kind::object:
      return "an object";
    case json::kind::array:
      return "an array";
    case json::kind::string: {
      const std::string text = Text(value.get_string());
      if (text.size() <= kLongestQuote) return absl::StrCat("\"", absl::CHexEscape(text), "\"");
      return absl::StrCat("\"", absl::CHexEscape(text.substr(0, kLongestQuote)), "…\" (",
                          text.size(), " bytes)");
    }
    default:
      return json::serialize(value);
  }
}

absl::Status WrongType(absl::string_view path, absl::string_view wanted, const json::value& got) {
  return absl::InvalidArgumentError(
      absl::StrCat(path.empty() ? "object" : path, ": want ", wanted, ", got ", DescribeJson(got)));
}

ObjectReader::ObjectReader(std::string path, const json::value& value) : path_(std::move(path)) {
  if (value.is_object()) {
    object_ = &value.get_object();
  } else {
    status_ = WrongType(path_, "an object", value);
  }
}

std::string ObjectReader::PathOf(absl::string_view key) const {
  return path_.empty() ? std::string(key) : absl::StrCat(path_, ".", key);
}

const json::value* ObjectReader::Find(absl::string_view key) const {
  if (object_ == nullptr) return nullptr;
  const json::value* member = object_->if_contains(json::string_view(key.data(), key.size()));
  return member == nullptr || member->is_null() ? nullptr : member;
}

void ObjectReader::Fail(absl::string_view key, absl::string_view wanted, const json::value& got) {
  Merge(WrongType(PathOf(key), wanted, got));
}

void ObjectReader::Merge(const absl::Status& status) {
  if (status_.ok()) status_ = status;
}

void ObjectReader::Require(absl::string_view key, absl::string_view value) {
  if (status_.ok() && value.empty()) {
    status_ = absl::InvalidArgumentError(
        absl::StrCat(PathOf(key), ": want a non-empty string, got nothing"));
  }
}

void ObjectReader::Read(absl::string_view key, std::string& out) {
  const json::value* member = Find(key);
  if (member == nullptr) return;
  if (!member->is_string()) return Fail(key, "a string", *member);
  out = Text(member->get_string());
}

void ObjectReader::Read(absl::string_view key, bool& out) {
  const json::value* member = Find(key);
  if (member == nullptr) return;
  if (!member->is_bool()) return Fail(key, "true or false", *member);
  out = member->get_bool();
}

void ObjectReader::Read(absl::string_view key, int32_t& out) {
  std::optional<int32_t> read;
  Read(key, read);
  if (read.has_value()) out = *read;
}

void ObjectReader::Read(absl::string_view key, int64_t& out) {
  const json::value* member = Find(key);
  if (member == nullptr) return;
  const std::optional<int64_t> number = AsInteger(*member);
  if (!number.has_value()) return Fail(key, "an integer", *member);
  out = *number;
}

void ObjectReader::Read(absl::string_view key, std::optional<int32_t>& out) {
  const json::value* member = Find(key);
  if (member == nullptr) return;
  const std::optional<int64_t> number = AsInteger(*member);
  if (!number.has_value() || *number < std::numeric_limits<int32_t>::min() ||
      *number > std::numeric_limits<int32_t>::max()) {
    return Fail(key, "an integer of 32 bits", *member);
  }
  out = static_cast<int32_t>(*number);
}

void ObjectReader::Read(absl::string_view key, std::optional<absl::Time>& out) {
  std::string text;
  Read(key, text);
  if (text.empty()) return;
  absl::StatusOr<absl::Time> time = ParseTimestamp(PathOf(key), text);
  if (!time.ok()) return Merge(time.status());
  out = *time;
}

void ObjectReader::Read(absl::string_view key, std::vector<std::string>& out) {
  const json::array* items = FindArray(key);
  if (items == nullptr) return;
  for (size_t i = 0; i < items->size(); ++i) {
    const json::value& item = (*items)[i];
    if (!item.is_string()) return Fail(absl::StrCat(key, "[", i, "]"), "a string", item);
    out.push_back(Text(item.get_string()));
  }
}

void ObjectReader::Read(absl::string_view key, std::map<std::string, std::string>& out) {
  const json::value* member = FindObject(key);
  if (member == nullptr) return;
  for (const json::key_value_pair& entry : member->get_object()) {
    const std::string name(entry.key().data(), entry.key().size());
    if (entry.value().is_null()) {
      out[name].clear();  // as Go's decoder reads it
    } else if (entry.value().is_string()) {
      out[name] = Text(entry.value().get_string());
    } else {
      return Fail(absl::StrCat(key, "[", name, "]"), "a string", entry.value());
    }
  }
}

const json::value* ObjectReader::FindObject(absl::string_view key) {
  const json::value* member = Find(key);
  if (member == nullptr || member->is_object()) return member;
  Fail(key, "an object", *member);
  return nullptr;
}

const json::array* ObjectReader::FindArray(absl::string_view key) {
  const json::value* member = Find(key);
  if (member == nullptr) return nullptr;
  if (member->is_array()) return &member->get_array();
  Fail(key, "an array", *member);
  return nullptr;
}

}  // namespace outrigger::controller::api
