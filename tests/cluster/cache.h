// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/strings/string_view.h>

#include <string>

namespace outrigger::tests {

// Where the scripts of this folder put what they build and download, and where the sources stand.
// Environment: OUTRIGGER_CACHE (default ~/.cache/outrigger), OUTRIGGER_SOURCE_DIR (default: the
// current folder).
std::string KubernetesProgram(absl::string_view name);  // kube-apiserver, kubectl, …
std::string GoTool(absl::string_view name);             // grpcurl, grpc_health_probe
std::string KedaCrdFolder();
std::string KedaProgram(absl::string_view name);  // keda, keda-adapter: tests/bench/peer
std::string SourcePath(absl::string_view path);  // of a file of the repository

}  // namespace outrigger::tests
