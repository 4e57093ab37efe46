// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "host/base/clock.h"
#include "outrigger/introspection/v1/introspection.pb.h"

namespace outrigger::controller::ctl {

// Asks the gRPC port of a running operator, or of `outriggerctl local`. Blocks for at most 5 s.
// `address` is host:port or unix:/path, in plain text (the port is a loopback one).
//
// INVALID_ARGUMENT: the address; UNAVAILABLE: nobody listens there, or it is no gRPC server;
// DEADLINE_EXCEEDED: no answer; UNIMPLEMENTED: another gRPC server than ours; NOT_FOUND: no such
// object. All name the address or the object, and say what may help.
absl::StatusOr<outrigger::introspection::v1::ListObjectsResponse> ListObjects(
    const host::Clock& clock, const std::string& address, const std::string& namespace_name,
    const std::string& name);
absl::StatusOr<outrigger::introspection::v1::ListPluginsResponse> ListPlugins(
    const host::Clock& clock, const std::string& address);

}  // namespace outrigger::controller::ctl
