// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/lease_record.h"

#include <boost/json/object.hpp>
#include <utility>

namespace outrigger::controller::kube {
namespace {

namespace json = boost::json;

std::string Text(const json::object& object, const char* key) {
  const json::value* member = object.if_contains(key);
  const json::string* text = member == nullptr ? nullptr : member->if_string();
  return text == nullptr ? "" : std::string(*text);
}

int64_t Integer(const json::object& object, const char* key) {
  const json::value* member = object.if_contains(key);
  const int64_t* number = member == nullptr ? nullptr : member->if_int64();
  return number == nullptr ? 0 : *number;
}

// metav1.MicroTime.
std::string FormatMicroTime(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", time, absl::UTCTimeZone());
}

absl::Time ParseMicroTime(const std::string& text) {
  absl::Time time;
  return absl::ParseTime(absl::RFC3339_full, text, &time, nullptr) ? time : absl::InfinitePast();
}

json::object Spec(const LeaseRecord& record) {
  return {{"holderIdentity", record.holder},
          {"leaseDurationSeconds", absl::ToInt64Seconds(record.duration)},
          {"acquireTime", FormatMicroTime(record.acquired)},
          {"renewTime", FormatMicroTime(record.renewed)},
          {"leaseTransitions", record.transitions}};
}

}  // namespace

LeaseRecord ParseLease(const json::value& lease) {
  const json::object* root = lease.if_object();
  const json::value* member = root == nullptr ? nullptr : root->if_contains("spec");
  const json::object* spec = member == nullptr ? nullptr : member->if_object();
  if (spec == nullptr) return {};
  return {.holder = Text(*spec, "holderIdentity"),
          .duration = absl::Seconds(Integer(*spec, "leaseDurationSeconds")),
          .acquired = ParseMicroTime(Text(*spec, "acquireTime")),
          .renewed = ParseMicroTime(Text(*spec, "renewTime")),
          .transitions = Integer(*spec, "leaseTransitions")};
}

json::value MakeLease(absl::string_view namespace_name, absl::string_view name,
                      const LeaseRecord& record) {
  return {{"apiVersion", "coordination.k8s.io/v1"},
          {"kind", "Lease"},
          {"metadata", {{"namespace", std::string(namespace_name)}, {"name", std::string(name)}}},
          {"spec", Spec(record)}};
}

json::value WithRecord(json::value lease, const LeaseRecord& record) {
  if (json::object* root = lease.if_object()) (*root)["spec"] = Spec(record);
  return lease;
}

}  // namespace outrigger::controller::kube
