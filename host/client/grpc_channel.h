// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "host/base/clock.h"
#include "host/base/task.h"
#include "host/client/plugin_channel.h"

namespace outrigger::host {

// PluginChannel over gRPC. A plugin on a Unix socket or on loopback is spoken to in plain text (who
// may open the socket is decided by its folder); any other address needs mutual TLS.
//
// A channel has its own connection (gRPC would share one between channels to the same address),
// does not retry on its own, and does not look at proxy variables. A GrpcPoller only stores what
// came and posts; contexts, messages and channels die on `strand` or with the caller.
struct GrpcChannelOptions {
  int max_receive_bytes = 256 * 1024;  // of one message from a plugin
  // PEM files of mutual TLS, read at each dial so that a rotation needs no restart.
  std::string ca_file;
  std::string cert_file;
  std::string key_file;
};
PluginConnector MakeGrpcConnector(Clock& clock, Executor strand, GrpcChannelOptions options);

}  // namespace outrigger::host
