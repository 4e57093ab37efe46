// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "operator/api/scaled_object.h"
#include "operator/runtime/metrics_sink.h"

namespace outrigger::controller::reconcile {

// The registered-totals gauges: how many objects there are by namespace, and triggers by type. On
// the core strand.
class RegisteredTotals {
 public:
  explicit RegisteredTotals(runtime::MetricsSink& metrics) : metrics_(metrics) {}

  // The object as it is now, counted before or not; nullptr: it is gone.
  void Count(const api::NamespacedName& key, const api::ScaledObject* object);

 private:
  runtime::MetricsSink& metrics_;
  std::map<api::NamespacedName, std::vector<std::string>> trigger_types_;
  std::map<std::string, int> count_by_type_;
  std::map<std::string, int> count_by_namespace_;
};

}  // namespace outrigger::controller::reconcile
