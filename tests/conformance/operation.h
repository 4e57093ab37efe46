// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json/value.hpp>
#include <string>

#include "tests/conformance/kinds.h"

namespace outrigger::conformance {

// One request, written so that it means the same on two servers. In texts $UID, $RV and $OLDRV
// stand for the uid, the resourceVersion and an earlier resourceVersion of the object, as this
// server told them.
struct Operation {
  enum class Verb { kGet, kGetMetadata, kList, kContinue, kCreate, kUpdate, kPatch, kDelete };

  Verb verb = Verb::kGet;
  Kind kind = Kind::kConfigMap;
  std::string name;
  std::string subresource;
  // JSON. Create: merged into the kind's sample object. Update: merged into the object as it was
  // last seen. Patch: the patch.
  std::string body = "{}";
  std::string uid;               // of delete's preconditions
  std::string resource_version;  // likewise
  std::string label_selector;    // of list
  int limit = 0;                 // of list; continue takes the next page of the last list

  std::string ToString() const;
};

// What came back, with symbols in place of uids, versions and times.
struct Outcome {
  std::string code;  // "OK", "409 Conflict", or the absl code of an error that is no answer
  std::string message;
  boost::json::value body;  // null for delete

  std::string ToString() const;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

}  // namespace outrigger::conformance
