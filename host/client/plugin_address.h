// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <string>
#include <vector>

namespace outrigger::host {

// Where a plugin is, and under which name it goes. The name is its identity: the folder's, or the
// one that the flag gives; what the plugin calls itself does not matter.
struct PluginAddress {
  std::string name;
  std::string target;       // for gRPC: "unix:/path" or "host:port"
  std::string socket_path;  // of a Unix socket, else ""
  std::string host;         // of TCP, without brackets, else ""

  bool is_unix() const { return !socket_path.empty(); }
  // A loopback address: plain text, and no secret goes there.
  bool is_loopback() const;
};

// --plugin NAME=ADDRESS, where ADDRESS is unix:/absolute/path or host:port. INVALID_ARGUMENT names
// the flag, what was wanted and what came.
absl::StatusOr<PluginAddress> ParsePluginFlag(absl::string_view text);

// Outside Kubernetes whoever can write into the plugin folder could answer for our scalers and read
// our credentials: it must be ours and closed to others. OK if it does not exist (yet);
// FAILED_PRECONDITION names the folder, what is wrong with it and the command that helps.
absl::Status CheckPluginDir(const std::string& dir);

// The plugins below `dir`: one per folder, whether or not its socket is there already, sorted by
// name. Symbolic links and names that are no DNS label are left out. Empty if `dir` does not exist.
std::vector<PluginAddress> ListPluginFolders(const std::string& dir);

// Tells one bind of a socket file from the next ("" = there is no socket), so that a restarted
// plugin is dialled at once. Looks at the file itself: a link is no socket.
std::string SocketIdentity(const std::string& path);

}  // namespace outrigger::host
