// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/rest_mapper.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <set>
#include <utility>

namespace outrigger::controller::kube {
namespace {

namespace json = boost::json;

constexpr absl::Duration kOldest = absl::Minutes(10);
constexpr absl::Duration kOldestWithoutScale = absl::Seconds(5);

std::string Text(const json::object& object, const char* key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : "";
}

// Of an APIResourceList. What is no resource of it is passed over.
std::map<std::string, RestMapper::Mapping> KindsOf(const json::value& list,
                                                   const std::string& group,
                                                   const std::string& version) {
  std::map<std::string, RestMapper::Mapping> kinds;
  std::set<std::string> scaled;  // plurals
  const json::value* resources =
      list.is_object() ? list.get_object().if_contains("resources") : nullptr;
  if (resources == nullptr || !resources->is_array()) return kinds;
  for (const json::value& entry : resources->get_array()) {
    if (!entry.is_object()) continue;
    const std::string name = Text(entry.get_object(), "name");
    const std::string kind = Text(entry.get_object(), "kind");
    absl::string_view plural = name;
    if (absl::ConsumeSuffix(&plural, "/scale")) scaled.emplace(plural);
    if (name.empty() || kind.empty() || absl::StrContains(name, "/")) continue;
    const json::value* namespaced = entry.get_object().if_contains("namespaced");
    kinds[kind].resource = {
        group, version, name,
        namespaced != nullptr && namespaced->is_bool() && namespaced->get_bool()};
  }
  for (auto& [kind, mapping] : kinds) mapping.has_scale = scaled.contains(mapping.resource.plural);
  return kinds;
}

}  // namespace

host::Task<absl::Status> RestMapper::Refresh(std::string group, std::string version,
                                             absl::Duration oldest, host::Deadline deadline) {
  const std::string key = absl::StrCat(group, "/", version);
  const auto found = known_.find(key);
  if (found != known_.end() && clock_.SteadyNow() - found->second.asked_at <= oldest) {
    co_return absl::OkStatus();
  }
  const host::SteadyTime asked_at = clock_.SteadyNow();
  const absl::StatusOr<json::value> list = co_await api_.Discover(group, version, deadline);
  if (!list.ok() && !absl::IsNotFound(list.status())) co_return list.status();
  Known& known = known_[key];
  if (known.asked_at > asked_at) co_return absl::OkStatus();  // another call knows better
  known.asked_at = asked_at;
  known.served = list.ok();
  known.kinds = list.ok() ? KindsOf(*list, group, version) : std::map<std::string, Mapping>();
  co_return absl::OkStatus();
}

host::Task<absl::StatusOr<RestMapper::Mapping>> RestMapper::Find(std::string group,
                                                                 std::string version,
                                                                 std::string kind,
                                                                 host::Deadline deadline) {
  const std::string key = absl::StrCat(group, "/", version);
  absl::Status asked;
  for (const absl::Duration oldest : {kOldest, kOldestWithoutScale}) {
    asked = co_await Refresh(group, version, oldest, deadline);
    const auto known = known_.find(key);
    if (known == known_.end()) co_return asked;
    const auto mapping = known->second.kinds.find(kind);
    if (mapping == known->second.kinds.end()) continue;
    // One without may have got it meanwhile.
    if (mapping->second.has_scale || oldest == kOldestWithoutScale) co_return mapping->second;
  }
  if (!asked.ok()) co_return asked;
  if (!known_.at(key).served) {
    co_return absl::NotFoundError(
        absl::StrCat("the API server does not serve ", group.empty() ? version : key));
  }
  co_return absl::NotFoundError(absl::StrCat(group.empty() ? version : key, " has no kind ", kind));
}

}  // namespace outrigger::controller::kube
