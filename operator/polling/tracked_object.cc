// SPDX-License-Identifier: Apache-2.0
#include "operator/polling/tracked_object.h"

#include <algorithm>

namespace outrigger::controller::polling {

std::vector<host::HealthKey> TrackedObject::HealthKeysOf(const TrackedTrigger& trigger) const {
  std::vector<host::HealthKey> keys;
  for (const scaling::MetricSpec& spec : trigger.specs)
    keys.push_back(HealthKeyOf(trigger, spec.name));
  if (keys.empty()) keys.push_back(HealthKeyOf(trigger, ""));
  return keys;
}

std::vector<api::NamespacedName> ObjectRegistry::Keys() const {
  std::vector<api::NamespacedName> keys;
  keys.reserve(objects_.size());
  for (const auto& [key, object] : objects_) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  return keys;
}

}  // namespace outrigger::controller::polling
