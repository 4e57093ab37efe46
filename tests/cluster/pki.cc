// SPDX-License-Identifier: Apache-2.0
#include "tests/cluster/pki.h"

#include <absl/strings/str_cat.h>

#include "host/base/status.h"

namespace outrigger::tests {

absl::StatusOr<std::unique_ptr<Pki>> Pki::Create(const TempDir& dir) {
  std::unique_ptr<Pki> pki(new Pki(dir));
  RETURN_IF_ERROR(pki->CreateAuthorities());
  RETURN_IF_ERROR(pki->CreateLeaves());
  return pki;
}

absl::Status Pki::CreateAuthorities() {
  ASSIGN_OR_RETURN(authority_, CertificateAuthority::Create("test cluster CA"));
  ASSIGN_OR_RETURN(front_proxy_authority_, CertificateAuthority::Create("test front-proxy CA"));
  ca_file_ = dir_.Write("pki/ca.crt", authority_->certificate());
  front_proxy_ca_file_ =
      dir_.Write("pki/front-proxy-ca.crt", front_proxy_authority_->certificate());
  return absl::OkStatus();
}

absl::Status Pki::CreateLeaves() {
  ASSIGN_OR_RETURN(
      api_server_,
      Issue("api-server", {.common_name = "kube-apiserver",
                           .dns_names = {"localhost", "kubernetes", "kubernetes.default.svc"},
                           .ips = {"127.0.0.1", "10.0.0.1"}}));
  ASSIGN_OR_RETURN(admin_,
                   Issue("admin", {.common_name = "admin", .organizations = {"system:masters"}}));
  ASSIGN_OR_RETURN(controller_manager_,
                   Issue("controller-manager", {.common_name = "system:kube-controller-manager"}));
  ASSIGN_OR_RETURN(const KeyPair front_proxy,
                   front_proxy_authority_->Issue({.common_name = kFrontProxyName}));
  front_proxy_ = Write("front-proxy", front_proxy);
  ASSIGN_OR_RETURN(const SigningKey signing, NewSigningKey());
  service_account_key_file_ = dir_.Write("pki/service-account.key", signing.private_key);
  service_account_public_key_file_ = dir_.Write("pki/service-account.pub", signing.public_key);
  return absl::OkStatus();
}

absl::StatusOr<KeyFiles> Pki::Issue(absl::string_view file_name,
                                    const CertificateAuthority::Subject& subject) const {
  ASSIGN_OR_RETURN(const KeyPair pair, authority_->Issue(subject));
  return Write(file_name, pair);
}

KeyFiles Pki::Write(absl::string_view file_name, const KeyPair& pair) const {
  return {.certificate = dir_.Write(absl::StrCat("pki/", file_name, ".crt"), pair.certificate),
          .key = dir_.Write(absl::StrCat("pki/", file_name, ".key"), pair.key)};
}

}  // namespace outrigger::tests
