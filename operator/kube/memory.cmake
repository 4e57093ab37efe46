# SPDX-License-Identifier: Apache-2.0
outrigger_library(outrigger_operator_kube_memory
  SRCS memory_api.cc memory_errors.cc memory_kind.cc memory_object.cc memory_rules.cc memory_scale.cc
       memory_store.cc
  DEPS outrigger_operator_kube_api outrigger_operator_api outrigger_host_base Boost::json absl::strings)
