# SPDX-License-Identifier: Apache-2.0
outrigger_library(outrigger_operator_kube_informer
  SRCS reflector.cc
  DEPS outrigger_operator_kube_api outrigger_operator_api absl::btree)
