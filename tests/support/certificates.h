// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <memory>
#include <string>
#include <vector>

namespace outrigger::tests {

// A private key and its certificate as PEM text.
struct KeyPair {
  std::string certificate;
  std::string key;
};

// A certificate authority for tests (ECDSA P-256, valid from an hour ago for a day). Immutable
// after Create(), so thread-safe; does no I/O. INTERNAL: OpenSSL refused.
class CertificateAuthority {
 public:
  struct Subject {
    std::string common_name;
    std::vector<std::string> organizations;  // Kubernetes reads these as groups
    std::vector<std::string> dns_names;
    std::vector<std::string> ips;
  };

  static absl::StatusOr<std::unique_ptr<CertificateAuthority>> Create(
      absl::string_view common_name);
  ~CertificateAuthority();

  const std::string& certificate() const { return pair_.certificate; }  // PEM
  const std::string& key() const { return pair_.key; }                  // PEM

  // A leaf that may be used by servers and clients.
  absl::StatusOr<KeyPair> Issue(const Subject& subject) const;
  // The same, valid between the given seconds from now: for tests of expiry.
  absl::StatusOr<KeyPair> IssueValid(const Subject& subject, long from_seconds,
                                     long until_seconds) const;

 private:
  struct Handles;
  CertificateAuthority(std::unique_ptr<Handles> handles, KeyPair pair);

  const std::unique_ptr<const Handles> handles_;
  const KeyPair pair_;
};

// A key pair without a certificate (PEM, P-256), as kube-apiserver signs service-account tokens
// with.
struct SigningKey {
  std::string public_key;
  std::string private_key;
};
absl::StatusOr<SigningKey> NewSigningKey();

}  // namespace outrigger::tests
