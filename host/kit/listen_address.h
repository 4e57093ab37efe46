// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>

#include <string>

#include "host/kit/tls_files.h"

namespace outrigger::host::kit {

// Whether a server may listen on `address` (host:port). Without mutual TLS only loopback addresses
// are allowed, so that a scaler's secrets never cross a network in the clear. INVALID_ARGUMENT
// names the flag, what was wanted and what came.
absl::Status CheckListenAddress(absl::string_view address, const TlsFiles& tls);

// Makes room for a Unix socket at `path`: removes a socket file that nobody answers on.
// FAILED_PRECONDITION: somebody does. INVALID_ARGUMENT: too long, no such folder, or something else
// than a socket stands there. Blocks only on the local file system; for main().
absl::Status PrepareSocketPath(const std::string& path);

}  // namespace outrigger::host::kit
