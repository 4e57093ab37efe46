// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/registered_totals.h"

#include <set>

namespace outrigger::controller::reconcile {

void RegisteredTotals::Count(const api::NamespacedName& key, const api::ScaledObject* object) {
  auto it = trigger_types_.find(key);
  if (it == trigger_types_.end() && object == nullptr) return;
  std::set<std::string> changed;
  if (it != trigger_types_.end()) {
    for (const std::string& type : it->second) {
      --count_by_type_[type];
      changed.insert(type);
    }
    --count_by_namespace_[key.namespace_name];
    trigger_types_.erase(it);
  }
  if (object != nullptr) {
    std::vector<std::string>& types = trigger_types_[key];
    for (const api::Trigger& trigger : object->spec.triggers) {
      types.push_back(trigger.type);
      ++count_by_type_[trigger.type];
      changed.insert(trigger.type);
    }
    ++count_by_namespace_[key.namespace_name];
  }
  for (const std::string& type : changed) metrics_.TriggersRegistered(type, count_by_type_[type]);
  metrics_.ResourcesRegistered("scaled_object", key.namespace_name,
                               count_by_namespace_[key.namespace_name]);
}

}  // namespace outrigger::controller::reconcile
