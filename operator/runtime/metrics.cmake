# SPDX-License-Identifier: Apache-2.0
# outrigger_operator_metrics: the MetricsSink of production. Only its .cc files include prometheus-cpp.
find_package(prometheus-cpp CONFIG REQUIRED)
outrigger_library(outrigger_operator_metrics
  SRCS object_series.cc prometheus_metrics.cc
  DEPS outrigger_operator_runtime outrigger_operator_api absl::flat_hash_map prometheus-cpp::core)
