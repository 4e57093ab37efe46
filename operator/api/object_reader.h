// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>
#include <absl/time/time.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace outrigger::controller::api {

// Reads the members of one JSON object into fields, for the parsers of this room. The first fault
// is kept and names the path, what was wanted and what came; what is read afterwards is left as it
// was. A null member is an absent one, as in Kubernetes. Borrows the JSON value.
class ObjectReader {
 public:
  // `path` is "" for a whole object, else "spec.triggers[0]".
  ObjectReader(std::string path, const boost::json::value& value);

  void Read(absl::string_view key, std::string& out);
  void Read(absl::string_view key, bool& out);
  void Read(absl::string_view key, int32_t& out);
  void Read(absl::string_view key, int64_t& out);
  void Read(absl::string_view key, std::optional<int32_t>& out);
  void Read(absl::string_view key, std::optional<absl::Time>& out);
  void Read(absl::string_view key, std::vector<std::string>& out);
  void Read(absl::string_view key, std::map<std::string, std::string>& out);

  // The member as it is, or null when it is absent.
  const boost::json::value* Find(absl::string_view key) const;
  // The member, which must be an object or an array; null when it is absent or a fault was
  // recorded.
  const boost::json::value* FindObject(absl::string_view key);
  const boost::json::array* FindArray(absl::string_view key);

  // A fault when a string member that was read is empty.
  void Require(absl::string_view key, absl::string_view value);

  // Records a fault of a part that was read elsewhere; the first one stays.
  void Merge(const absl::Status& status);
  const absl::Status& status() const { return status_; }
  std::string PathOf(absl::string_view key) const;

 private:
  void Fail(absl::string_view key, absl::string_view wanted, const boost::json::value& got);

  const std::string path_;
  const boost::json::object* object_ = nullptr;  // null: nothing to read
  absl::Status status_;
};

// "\"text\"", "the number 5", "an object": what came, short enough for a message.
std::string DescribeJson(const boost::json::value& value);

// INVALID_ARGUMENT "path: want wanted, got …".
absl::Status WrongType(absl::string_view path, absl::string_view wanted,
                       const boost::json::value& got);

}  // namespace outrigger::controller::api
