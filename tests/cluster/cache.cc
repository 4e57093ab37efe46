// SPDX-License-Identifier: Apache-2.0
#include "tests/cluster/cache.h"

#include <absl/strings/str_cat.h>

#include <cstdlib>

namespace outrigger::tests {
namespace {

// The versions of build.sh, keda_crds.sh and tests/bench/peer/build_keda.sh.
constexpr char kKubernetesFolder[] = "kubernetes-1.36.3";
constexpr char kKedaFolder[] = "keda-2.21.0";

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string Cache() {
  std::string folder = Environment("OUTRIGGER_CACHE");
  return folder.empty() ? absl::StrCat(Environment("HOME"), "/.cache/outrigger") : folder;
}

}  // namespace

std::string KubernetesProgram(absl::string_view name) {
  return absl::StrCat(Cache(), "/", kKubernetesFolder, "/bin/", name);
}

std::string GoTool(absl::string_view name) { return absl::StrCat(Cache(), "/go-tools/", name); }

std::string KedaCrdFolder() { return absl::StrCat(Cache(), "/", kKedaFolder, "/crds"); }

std::string KedaProgram(absl::string_view name) {
  return absl::StrCat(Cache(), "/", kKedaFolder, "/bin/", name);
}

std::string SourcePath(absl::string_view path) {
  const std::string root = Environment("OUTRIGGER_SOURCE_DIR");
  return absl::StrCat(root.empty() ? "." : root, "/", path);
}

}  // namespace outrigger::tests
