// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>

#include <string>
#include <vector>

namespace outrigger::tests {

// Moves this program, and with it every child that it starts later, into a network of its own: a
// loopback interface that has `addresses` (IPv4) besides 127.0.0.1, and nothing else. So servers
// may have addresses that Kubernetes takes for those of Pods, and well-known ports.
//
// Call it first in main(): a program with threads cannot be moved. Needs root or user namespaces.
// PERMISSION_DENIED: neither is there; INTERNAL: which call failed.
absl::Status EnterNetworkNamespace(const std::vector<std::string>& addresses);

}  // namespace outrigger::tests
