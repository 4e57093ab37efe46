# SPDX-License-Identifier: Apache-2.0
# Only grpc_channel.cc and grpc_poller.cc include grpcpp: everything else runs against PluginChannel.
outrigger_library(outrigger_host_client_grpc
  SRCS answer_check.cc backoff.cc batch_plan.cc breaker.cc grpc_channel.cc grpc_poller.cc plugin_address.cc plugin_bindings.cc
       plugin_channel.cc plugin_connection.cc plugin_directory.cc scaler_client.cc
  DEPS outrigger_host_client outrigger_host_base outrigger_proto_grpc absl::str_format gRPC::grpc++)
