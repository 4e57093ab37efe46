// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "host/client/plugin_address.h"

namespace outrigger::controller::ctl {

inline constexpr char kOperatorAddress[] = "127.0.0.1:9666";  // of its gRPC port

struct LocalFlags {
  std::vector<std::string> files;
  std::vector<host::PluginAddress> plugins;
  std::string plugin_bin_dir;  // "": where we are
  std::string log_dir;         // "": what plugins and replicas print is dropped at the end
  std::string address = "127.0.0.1:0";
  std::string log_level = "error";
  std::optional<absl::Duration> exit_after_idle;
  std::optional<absl::Duration> timeout;
};

struct ExplainFlags {
  std::string namespace_name;  // "": all
  std::string name;            // "": all
  std::string address = kOperatorAddress;
};

struct PluginListFlags {
  std::string address = kOperatorAddress;
};

// A text to print: help, version.
struct PrintText {
  std::string text;
};

using Command = std::variant<PrintText, LocalFlags, ExplainFlags, PluginListFlags>;

// What the command line asks for. INVALID_ARGUMENT, one line with a hint: what was wanted and what
// came, and where the help is.
absl::StatusOr<Command> ParseCommandLine(const std::vector<std::string>& arguments);

}  // namespace outrigger::controller::ctl
