// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <memory>
#include <string>

#include "tests/support/certificates.h"
#include "tests/support/temp_dir.h"

namespace outrigger::tests {

// Paths of a certificate and its key (PEM).
struct KeyFiles {
  std::string certificate;
  std::string key;
};

// All keys and certificates of one test control plane, as files in its folder: two authorities, one
// for the cluster (API server, its clients, webhooks and aggregated APIs) and one for the
// aggregation layer's front proxy, as real clusters have. Immutable after Create(). INTERNAL:
// OpenSSL refused.
class Pki {
 public:
  static absl::StatusOr<std::unique_ptr<Pki>> Create(const TempDir& dir);

  const CertificateAuthority& authority() const { return *authority_; }
  const CertificateAuthority& front_proxy_authority() const { return *front_proxy_authority_; }
  const std::string& ca_file() const { return ca_file_; }
  const std::string& front_proxy_ca_file() const { return front_proxy_ca_file_; }

  const KeyFiles& api_server() const { return api_server_; }
  const KeyFiles& admin() const { return admin_; }  // group system:masters
  const KeyFiles& controller_manager() const { return controller_manager_; }
  const KeyFiles& front_proxy() const { return front_proxy_; }  // CN kFrontProxyName
  // What signs service-account tokens, and what checks them.
  const std::string& service_account_key_file() const { return service_account_key_file_; }
  const std::string& service_account_public_key_file() const {
    return service_account_public_key_file_;
  }

  // A certificate of the cluster's authority, for servers and clients; `file_name` is its name in
  // the folder, without ending.
  absl::StatusOr<KeyFiles> Issue(absl::string_view file_name,
                                 const CertificateAuthority::Subject& subject) const;

  static constexpr char kFrontProxyName[] = "front-proxy-client";

 private:
  explicit Pki(const TempDir& dir) : dir_(dir) {}
  absl::Status CreateAuthorities();
  absl::Status CreateLeaves();
  KeyFiles Write(absl::string_view file_name, const KeyPair& pair) const;

  const TempDir& dir_;
  std::unique_ptr<CertificateAuthority> authority_;
  std::unique_ptr<CertificateAuthority> front_proxy_authority_;
  std::string ca_file_;
  std::string front_proxy_ca_file_;
  std::string service_account_key_file_;
  std::string service_account_public_key_file_;
  KeyFiles api_server_;
  KeyFiles admin_;
  KeyFiles controller_manager_;
  KeyFiles front_proxy_;
};

}  // namespace outrigger::tests
