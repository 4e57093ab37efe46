// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/strings/string_view.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <initializer_list>
#include <string>
#include <vector>

#include "operator/api/label_selector.h"

// What MemoryStore does to JSON objects. Pure.
namespace outrigger::controller::kube::memory {

// A member that is an object or an array; null when absent or something else.
boost::json::object* FindObject(boost::json::object& parent, absl::string_view key);
const boost::json::object* FindObject(const boost::json::object& parent, absl::string_view key);
boost::json::array* FindArray(boost::json::object& parent, absl::string_view key);
const boost::json::array* FindArray(const boost::json::object& parent, absl::string_view key);
// The same, created when absent.
boost::json::object& MakeObject(boost::json::object& parent, absl::string_view key);

// A string member, "" when absent.
std::string StringOf(const boost::json::object& parent, absl::string_view key);
// A whole number, 0 when absent.
int64_t IntOf(const boost::json::object& parent, absl::string_view key);
// A member of metadata.
std::string MetaString(const boost::json::object& object, absl::string_view key);
api::Labels LabelsOf(const boost::json::object& object);
std::vector<std::string> FinalizersOf(const boost::json::object& object);
int64_t GenerationOf(const boost::json::object& object);
bool IsBeingDeleted(const boost::json::object& object);

// `to`[key] becomes `from`[key], absent included.
void CopyMember(const boost::json::object& from, boost::json::object& to, absl::string_view key);

void EraseZeros(boost::json::object& parent, std::initializer_list<absl::string_view> keys);
// Members that are null, at any depth of objects.
void EraseNulls(boost::json::value& value);
// What Go's omitempty leaves out of metadata, and managedFields, which are not modelled.
void EraseEmptyMetadata(boost::json::object& object);

// RFC 7386.
void MergePatch(boost::json::value& target, const boost::json::value& patch);

// Why a name cannot be an object's name, in the API server's words, or "".
std::string NameFault(absl::string_view name);

}  // namespace outrigger::controller::kube::memory
