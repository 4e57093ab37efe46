// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>

#include <string>

namespace outrigger::host::kit {

// Files of a server's mutual TLS, PEM. Re-read when they change.
struct TlsFiles {
  std::string certificate;
  std::string key;
  std::string client_ca;  // a client must show a certificate of this CA

  bool empty() const { return certificate.empty() && key.empty() && client_ca.empty(); }
  bool complete() const { return !certificate.empty() && !key.empty() && !client_ca.empty(); }
};

// Whether complete files are what their flags want and belong together: gRPC would start with any
// and then fail every handshake in silence. INVALID_ARGUMENT names flag, file and reason. Blocks on
// the local file system; for main().
absl::Status CheckTlsFiles(const TlsFiles& files);

}  // namespace outrigger::host::kit
