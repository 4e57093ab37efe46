// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json/value.hpp>
#include <map>
#include <string>

namespace outrigger::conformance {

// Replaces what two servers cannot have in common: uids and resourceVersions by symbols ("uid-1",
// "rv-3") in the order in which they are first seen, times by "T". managedFields and null members
// are left out: MemoryApi has none, and a nil slice of Go is printed as null by some types only.
class Normaliser {
 public:
  boost::json::value Object(boost::json::value object);
  // A message of the server.
  std::string Text(std::string text);

 private:
  std::string Symbol(const char* prefix, std::map<std::string, std::string>& known,
                     const std::string& value);
  void Metadata(boost::json::object& metadata);
  void EraseNulls(boost::json::value& value);

  std::map<std::string, std::string> uids_;
  std::map<std::string, std::string> versions_;
};

// JSON with the members of each object sorted: equal values have equal text.
std::string SortedText(const boost::json::value& value);

}  // namespace outrigger::conformance
