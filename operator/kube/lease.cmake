# SPDX-License-Identifier: Apache-2.0
outrigger_library(outrigger_operator_kube_lease
  SRCS fenced_api.cc lease.cc lease_record.cc serving_label.cc
  DEPS outrigger_operator_kube_api Boost::json)
