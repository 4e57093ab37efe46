// SPDX-License-Identifier: Apache-2.0
#include "operator/local/yaml_documents.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <yaml-cpp/yaml.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cmath>
#include <utility>

namespace outrigger::controller::local {
namespace {

namespace json = boost::json;

constexpr int kDeepest = 100;        // an alias may stand for what it is in
constexpr int kMostNodes = 100'000;  // ten aliases of ten aliases of … are many

bool IsOneOf(const std::string& text, std::initializer_list<const char*> words) {
  for (const char* word : words) {
    if (text == word) return true;
  }
  return false;
}

json::value ScalarToJson(const YAML::Node& node) {
  const std::string& text = node.Scalar();
  if (IsOneOf(node.Tag(), {"!", "tag:yaml.org,2002:str"})) return json::value(text);
  if (text.empty() || IsOneOf(text, {"~", "null", "Null", "NULL"})) return nullptr;
  if (IsOneOf(text, {"true", "True", "TRUE"})) return true;
  if (IsOneOf(text, {"false", "False", "FALSE"})) return false;
  int64_t integer = 0;
  if (absl::SimpleAtoi(text, &integer)) return integer;
  double number = 0;
  // "nan", "inf" and "infinity" are names like any other.
  if (absl::SimpleAtod(text, &number) && std::isfinite(number)) return number;
  return json::value(text);
}

// JSON, and so every object of the API server, is UTF-8.
bool IsUtf8(const std::string& text) {
  boost::system::error_code error;
  json::parse(json::serialize(json::value(text)), error);
  return !error;
}

class Converter {
 public:
  YamlDocument Convert(const YAML::Node& root) && {
    document_.value = ToJson(root, "", 0);
    return std::move(document_);
  }

 private:
  json::value ToJson(const YAML::Node& node, const std::string& path, int depth) {
    if (++nodes_ > kMostNodes) {
      if (nodes_ == kMostNodes + 1) {
        Fault(path, absl::StrCat("want at most ", kMostNodes,
                                 " values with what aliases stand for, "
                                 "got more"));
      }
      return nullptr;
    }
    document_.lines.try_emplace(path, node.Mark().line + 1);
    if (depth > kDeepest) {
      Fault(path, absl::StrCat("want at most ", kDeepest, " levels, got more"));
      return nullptr;
    }
    if (node.IsMap()) return MapToJson(node, path, depth);
    if (node.IsScalar() && !IsUtf8(node.Scalar())) {
      Fault(path, "want text in UTF-8, got other bytes");
      return "";  // text still, so that nothing else is said of it
    }
    if (!node.IsSequence()) return node.IsScalar() ? ScalarToJson(node) : json::value(nullptr);
    json::array array;
    for (size_t i = 0; i < node.size(); ++i) {
      array.push_back(ToJson(node[i], absl::StrCat(path, "[", i, "]"), depth + 1));
    }
    return array;
  }

  json::value MapToJson(const YAML::Node& node, const std::string& path, int depth) {
    json::object object;
    json::object merged;
    for (const auto& entry : node) {
      const std::string& key = entry.first.Scalar();
      const std::string member = path.empty() ? key : absl::StrCat(path, ".", key);
      if (!entry.first.IsScalar()) {
        Fault(path, "want a word as key, got a map or a list");
        continue;
      }
      if (!IsUtf8(key)) {
        Fault(path, "want a key in UTF-8, got other bytes");
        continue;
      }
      if (object.contains(key)) {
        document_.lines[member] = entry.first.Mark().line + 1;
        Fault(member, "want each key once, got it twice");
        continue;
      }
      document_.lines.try_emplace(member, entry.first.Mark().line + 1);
      json::value value = ToJson(entry.second, member, depth + 1);
      if (key == "<<" && value.is_object()) {
        merged = std::move(value.get_object());
      } else {
        object[key] = std::move(value);
      }
    }
    // What stands in the map itself wins, wherever the merge stands.
    for (json::key_value_pair& member : merged) {
      if (!object.contains(member.key())) object[member.key()] = std::move(member.value());
    }
    return object;
  }

  void Fault(const std::string& path, const std::string& what) {
    document_.faults.push_back(absl::StrCat(path.empty() ? "the document" : path, ": ", what));
  }

  YamlDocument document_;
  int nodes_ = 0;
};

}  // namespace

int YamlDocument::LineOf(const std::string& path) const {
  std::string known = path;
  while (true) {
    const auto found = lines.find(known);
    if (found != lines.end()) return found->second;
    const size_t end = known.find_last_of(".[");
    known.resize(end == std::string::npos ? 0 : end);
    if (known.empty()) break;
  }
  const auto root = lines.find("");
  return root == lines.end() ? 1 : root->second;
}

absl::StatusOr<std::vector<YamlDocument>> ParseYaml(const std::string& text) {
  try {
    std::vector<YamlDocument> documents;
    for (const YAML::Node& node : YAML::LoadAll(text)) {
      documents.push_back(Converter().Convert(node));
    }
    return documents;
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("line ", error.mark.line + 1, ", column ",
                                                   error.mark.column + 1, ": ", error.msg));
  }
}

}  // namespace outrigger::controller::local
