// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <string>

#include "host/base/secret.h"

namespace outrigger::controller::kube {

// A credential that a configuration holds as text, or as the name of a file that is read again when
// it changes. Neither: there is none.
struct CredentialRef {
  host::Secret text;
  std::string file;

  bool empty() const { return text.empty() && file.empty(); }
};

// Which API server, and as whom.
struct ApiConfig {
  std::string server;                   // "https://10.0.0.1:443", without a slash at the end
  std::string proxy_url;                // "" = HTTPS_PROXY and NO_PROXY of the environment
  CredentialRef certificate_authority;  // PEM; none = the system's
  CredentialRef client_certificate;     // PEM
  CredentialRef client_key;             // PEM
  CredentialRef token;
  std::string namespace_name = "default";  // of the context, or of the Pod
};

// Reads one kubeconfig file; `context` "" means its current-context. File names in it are relative
// to its folder. Does blocking I/O: at start only.
//
// NOT_FOUND: the file, or the context, cluster or user that is named. INVALID_ARGUMENT: a field is
// wrong. UNIMPLEMENTED: it asks for what is not supported (exec and auth-provider plugins, user and
// password, impersonation, tls-server-name, insecure-skip-tls-verify). Messages name file and
// field, never a secret. A plain http:// server is accepted on this machine only, so that no
// token travels unencrypted.
absl::StatusOr<ApiConfig> LoadKubeconfig(const std::string& path, absl::string_view context);

// The Pod's own: KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT and the files of its service
// account. FAILED_PRECONDITION: this is no Pod; names what is missing.
absl::StatusOr<ApiConfig> InClusterConfig();

}  // namespace outrigger::controller::kube
