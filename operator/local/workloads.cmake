# SPDX-License-Identifier: Apache-2.0
outrigger_library(outrigger_operator_local_workloads
  SRCS child_process.cc container_command.cc deployment_controller.cc process_runner.cc
  DEPS outrigger_operator_kube_informer outrigger_operator_kube_api outrigger_operator_api outrigger_host_base
       Boost::json absl::strings)
