// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace outrigger::tests {

// From now on each RPC that comes to a gRPC server of this process is counted, before anything of
// ours sees it. Call it once, before the first server is built.
void CountRpcs();
// By full method name, "/grpc.health.v1.Health/Check". Thread-safe.
std::map<std::string, int64_t> RpcCounts();

}  // namespace outrigger::tests
