// SPDX-License-Identifier: Apache-2.0
#include "host/kit/tls_files.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "host/base/status.h"

namespace outrigger::host::kit {
namespace {

struct ContextDeleter {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};

absl::Status CheckReadable(absl::string_view flag, const std::string& path) {
  if (access(path.c_str(), R_OK) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(flag, ": cannot read ", path, ": ", std::strerror(errno)));
}

// The first error that OpenSSL has noted says most.
absl::Status Refused(absl::string_view flag, absl::string_view wanted, const std::string& path) {
  const char* reason = ERR_reason_error_string(ERR_get_error());
  ERR_clear_error();
  return absl::InvalidArgumentError(absl::StrCat(flag, ": want ", wanted, ", got ", path, ": ",
                                                 reason == nullptr ? "unknown error" : reason));
}

// Else OpenSSL would ask the terminal for the password of an encrypted key.
int NoPassword(char*, int, int, void*) { return -1; }

}  // namespace

absl::Status CheckTlsFiles(const TlsFiles& files) {
  RETURN_IF_ERROR(CheckReadable("--tls-cert-file", files.certificate));
  RETURN_IF_ERROR(CheckReadable("--tls-key-file", files.key));
  RETURN_IF_ERROR(CheckReadable("--tls-client-ca-file", files.client_ca));
  ERR_clear_error();
  const std::unique_ptr<SSL_CTX, ContextDeleter> context(SSL_CTX_new(TLS_server_method()));
  if (context == nullptr) return absl::InternalError("OpenSSL gives no context");
  SSL_CTX_set_default_passwd_cb(context.get(), NoPassword);
  if (SSL_CTX_use_certificate_chain_file(context.get(), files.certificate.c_str()) != 1) {
    return Refused("--tls-cert-file", "a certificate chain (PEM)", files.certificate);
  }
  if (SSL_CTX_use_PrivateKey_file(context.get(), files.key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return Refused("--tls-key-file", "the key of --tls-cert-file (PEM)", files.key);
  }
  if (SSL_CTX_load_verify_locations(context.get(), files.client_ca.c_str(), nullptr) != 1) {
    return Refused("--tls-client-ca-file", "a CA certificate (PEM)", files.client_ca);
  }
  return absl::OkStatus();
}

}  // namespace outrigger::host::kit
