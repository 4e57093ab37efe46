// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/strings/str_cat.h>

#include <compare>
#include <string>
#include <utility>

namespace outrigger::controller::api {

// Who an object is, within its kind. Cluster-scoped kinds have an empty namespace_name. The key of
// queues, indexes and maps. A value: copy it freely.
struct NamespacedName {
  std::string namespace_name;
  std::string name;

  // "ns/name", or "name" alone for a cluster-scoped object: what logs and messages print.
  std::string ToString() const {
    return namespace_name.empty() ? name : absl::StrCat(namespace_name, "/", name);
  }

  friend bool operator==(const NamespacedName&, const NamespacedName&) = default;
  friend auto operator<=>(const NamespacedName&, const NamespacedName&) = default;

  template <typename H>
  friend H AbslHashValue(H state, const NamespacedName& key) {
    return H::combine(std::move(state), key.namespace_name, key.name);
  }
};

}  // namespace outrigger::controller::api
