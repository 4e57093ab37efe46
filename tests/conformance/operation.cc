// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/operation.h"

#include <absl/strings/str_cat.h>

#include "tests/conformance/normaliser.h"

namespace outrigger::conformance {
namespace {

const char* Name(Operation::Verb verb) {
  switch (verb) {
    case Operation::Verb::kGet:
      return "get";
    case Operation::Verb::kGetMetadata:
      return "get metadata of";
    case Operation::Verb::kList:
      return "list";
    case Operation::Verb::kContinue:
      return "continue";
    case Operation::Verb::kCreate:
      return "create";
    case Operation::Verb::kUpdate:
      return "update";
    case Operation::Verb::kPatch:
      return "patch";
    case Operation::Verb::kDelete:
      return "delete";
  }
  return "";
}

void AppendIf(std::string& text, const char* what, const std::string& value) {
  if (!value.empty()) absl::StrAppend(&text, " ", what, value);
}

}  // namespace

std::string Operation::ToString() const {
  std::string text = absl::StrCat(Name(verb), " ", ResourceOf(kind).ToString());
  AppendIf(text, "", name);
  AppendIf(text, "/", subresource);
  if (body != "{}") absl::StrAppend(&text, " ", body);
  AppendIf(text, "uid=", uid);
  AppendIf(text, "rv=", resource_version);
  AppendIf(text, "labels=", label_selector);
  if (limit > 0) absl::StrAppend(&text, " limit=", limit);
  return text;
}

std::string Outcome::ToString() const {
  return absl::StrCat(code, " ", message, " ", SortedText(body));
}

}  // namespace outrigger::conformance
