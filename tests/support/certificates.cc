// SPDX-License-Identifier: Apache-2.0
#include "tests/support/certificates.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <cstdint>
#include <utility>

#include "host/base/status.h"

namespace outrigger::tests {
namespace {

constexpr long kHourSeconds = 3600;
constexpr long kDaySeconds = 24 * kHourSeconds;

struct FreeKey {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
struct FreeCertificate {
  void operator()(X509* certificate) const { X509_free(certificate); }
};
struct FreeBio {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
struct FreeExtension {
  void operator()(X509_EXTENSION* extension) const { X509_EXTENSION_free(extension); }
};
using KeyHandle = std::unique_ptr<EVP_PKEY, FreeKey>;
using CertificateHandle = std::unique_ptr<X509, FreeCertificate>;
using BioHandle = std::unique_ptr<BIO, FreeBio>;
using ExtensionHandle = std::unique_ptr<X509_EXTENSION, FreeExtension>;

absl::Status OpenSslError(absl::string_view step) {
  char text[256];
  ERR_error_string_n(ERR_get_error(), text, sizeof(text));
  return absl::InternalError(absl::StrCat(step, ": ", text));
}

absl::StatusOr<KeyHandle> MakeKey() {
  KeyHandle key(EVP_EC_gen("P-256"));
  if (key == nullptr) return OpenSslError("make a P-256 key");
  return key;
}

std::string Text(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return std::string(data, static_cast<size_t>(size));
}

std::string KeyPem(EVP_PKEY* key) {
  const BioHandle bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr);
  return Text(bio.get());
}

std::string CertificatePem(X509* certificate) {
  const BioHandle bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(bio.get(), certificate);
  return Text(bio.get());
}

void AddNameEntry(X509_NAME* name, const char* field, absl::string_view value) {
  X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(value.data()),
                             static_cast<int>(value.size()), -1, 0);
}

absl::Status AddExtension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const ExtensionHandle extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  if (extension == nullptr) return OpenSslError(absl::StrCat("extension ", value));
  X509_add_ext(certificate, extension.get(), -1);
  return absl::OkStatus();
}

std::string AlternativeNames(const CertificateAuthority::Subject& subject) {
  std::vector<std::string> names;
  names.reserve(subject.dns_names.size() + subject.ips.size());
  for (const std::string& dns : subject.dns_names) names.push_back(absl::StrCat("DNS:", dns));
  for (const std::string& ip : subject.ips) names.push_back(absl::StrCat("IP:", ip));
  return absl::StrJoin(names, ",");
}

// A certificate for `key` that lacks issuer, extensions and signature.
CertificateHandle Draft(const CertificateAuthority::Subject& subject, EVP_PKEY* key,
                        long from_seconds, long until_seconds) {
  CertificateHandle certificate(X509_new());
  X509_set_version(certificate.get(), X509_VERSION_3);
  uint32_t serial = 0;
  RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof(serial));
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate.get()), uint64_t{serial} + 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), from_seconds);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), until_seconds);
  X509_set_pubkey(certificate.get(), key);
  X509_NAME* const name = X509_get_subject_name(certificate.get());
  for (const std::string& organization : subject.organizations) {
    AddNameEntry(name, "O", organization);
  }
  AddNameEntry(name, "CN", subject.common_name);
  return certificate;
}

absl::Status Sign(X509* certificate, X509* issuer, EVP_PKEY* issuer_key) {
  X509_set_issuer_name(certificate, X509_get_subject_name(issuer));
  RETURN_IF_ERROR(AddExtension(certificate, issuer, NID_subject_key_identifier, "hash"));
  RETURN_IF_ERROR(AddExtension(certificate, issuer, NID_authority_key_identifier, "keyid"));
  if (X509_sign(certificate, issuer_key, EVP_sha256()) == 0) return OpenSslError("sign");
  return absl::OkStatus();
}

}  // namespace

struct CertificateAuthority::Handles {
  KeyHandle key;
  CertificateHandle certificate;
};

CertificateAuthority::CertificateAuthority(std::unique_ptr<Handles> handles, KeyPair pair)
    : handles_(std::move(handles)), pair_(std::move(pair)) {}

CertificateAuthority::~CertificateAuthority() = default;

absl::StatusOr<std::unique_ptr<CertificateAuthority>> CertificateAuthority::Create(
    absl::string_view common_name) {
  auto handles = std::make_unique<Handles>();
  ASSIGN_OR_RETURN(handles->key, MakeKey());
  const Subject subject{.common_name = std::string(common_name)};
  handles->certificate = Draft(subject, handles->key.get(), -kHourSeconds, kDaySeconds);
  X509* const certificate = handles->certificate.get();
  X509_set_issuer_name(certificate, X509_get_subject_name(certificate));
  RETURN_IF_ERROR(
      AddExtension(certificate, certificate, NID_basic_constraints, "critical,CA:TRUE"));
  RETURN_IF_ERROR(AddExtension(certificate, certificate, NID_key_usage,
                               "critical,digitalSignature,keyCertSign,cRLSign"));
  RETURN_IF_ERROR(Sign(certificate, certificate, handles->key.get()));
  KeyPair pair{.certificate = CertificatePem(certificate), .key = KeyPem(handles->key.get())};
  return std::unique_ptr<CertificateAuthority>(
      new CertificateAuthority(std::move(handles), std::move(pair)));
}

absl::StatusOr<KeyPair> CertificateAuthority::Issue(const Subject& subject) const {
  return IssueValid(subject, -kHourSeconds, kDaySeconds);
}

absl::StatusOr<KeyPair> CertificateAuthority::IssueValid(const Subject& subject, long from_seconds,
                                                         long until_seconds) const {
  ASSIGN_OR_RETURN(const KeyHandle key, MakeKey());
  const CertificateHandle certificate = Draft(subject, key.get(), from_seconds, until_seconds);
  X509* const issuer = handles_->certificate.get();
  RETURN_IF_ERROR(
      AddExtension(certificate.get(), issuer, NID_basic_constraints, "critical,CA:FALSE"));
  RETURN_IF_ERROR(AddExtension(certificate.get(), issuer, NID_key_usage,
                               "critical,digitalSignature,keyEncipherment"));
  RETURN_IF_ERROR(
      AddExtension(certificate.get(), issuer, NID_ext_key_usage, "serverAuth,clientAuth"));
  if (const std::string names = AlternativeNames(subject); !names.empty()) {
    RETURN_IF_ERROR(AddExtension(certificate.get(), issuer, NID_subject_alt_name, names));
  }
  RETURN_IF_ERROR(Sign(certificate.get(), issuer, handles_->key.get()));
  return KeyPair{.certificate = CertificatePem(certificate.get()), .key = KeyPem(key.get())};
}

absl::StatusOr<SigningKey> NewSigningKey() {
  ASSIGN_OR_RETURN(const KeyHandle key, MakeKey());
  const BioHandle bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_PUBKEY(bio.get(), key.get());
  return SigningKey{.public_key = Text(bio.get()), .private_key = KeyPem(key.get())};
}

}  // namespace outrigger::tests
