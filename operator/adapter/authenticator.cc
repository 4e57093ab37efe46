// SPDX-License-Identifier: Apache-2.0
#include "operator/adapter/authenticator.h"

#include <absl/strings/ascii.h>
#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <algorithm>

namespace outrigger::controller::adapter {
namespace {

template <auto Free>
struct Deleter {
  template <typename T>
  void operator()(T* pointer) const {
    Free(pointer);
  }
};
using X509Ptr = std::unique_ptr<X509, Deleter<X509_free>>;
using StorePtr = std::unique_ptr<X509_STORE, Deleter<X509_STORE_free>>;
using StoreContextPtr = std::unique_ptr<X509_STORE_CTX, Deleter<X509_STORE_CTX_free>>;
using BioPtr = std::unique_ptr<BIO, Deleter<BIO_free>>;

void FreeStack(STACK_OF(X509) * stack) { sk_X509_pop_free(stack, X509_free); }
using StackPtr = std::unique_ptr<STACK_OF(X509), Deleter<FreeStack>>;

std::string Der(const X509* certificate) {
  unsigned char* bytes = nullptr;
  const int size = i2d_X509(certificate, &bytes);
  if (size <= 0) return "";
  std::string der(reinterpret_cast<char*>(bytes), static_cast<size_t>(size));
  OPENSSL_free(bytes);
  return der;
}

X509Ptr FromDer(const std::string& der) {
  const unsigned char* data = reinterpret_cast<const unsigned char*>(der.data());
  return X509Ptr(d2i_X509(nullptr, &data, static_cast<long>(der.size())));
}

std::vector<std::string> NameEntries(const X509* certificate, int nid) {
  std::vector<std::string> values;
  X509_NAME* subject = X509_get_subject_name(certificate);
  for (int i = X509_NAME_get_index_by_NID(subject, nid, -1); i >= 0;
       i = X509_NAME_get_index_by_NID(subject, nid, i)) {
    unsigned char* text = nullptr;
    const int size =
        ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, i)));
    if (size < 0) continue;
    values.emplace_back(reinterpret_cast<char*>(text), static_cast<size_t>(size));
    OPENSSL_free(text);
  }
  return values;
}

// Whether the chain leads to one of the CAs in `pem`, is in force and may be used by a client.
bool SignedBy(const PeerCertificate& peer, const std::string& pem) {
  if (pem.empty() || !peer.present()) return false;
  StorePtr store(X509_STORE_new());
  BioPtr bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  while (X509Ptr ca = X509Ptr(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr))) {
    X509_STORE_add_cert(store.get(), ca.get());
  }
  const X509Ptr leaf = FromDer(peer.leaf_der);
  StackPtr untrusted(sk_X509_new_null());
  for (const std::string& der : peer.chain_der) {
    if (X509Ptr certificate = FromDer(der)) sk_X509_push(untrusted.get(), certificate.release());
  }
  StoreContextPtr context(X509_STORE_CTX_new());
  if (leaf == nullptr ||
      X509_STORE_CTX_init(context.get(), store.get(), leaf.get(), untrusted.get()) != 1)
    return false;
  X509_STORE_CTX_set_default(context.get(), "ssl_client");
  return X509_verify_cert(context.get()) == 1;
}

bool Allowed(const RequestHeaderConfig& config, const std::string& name) {
  return config.allowed_names.empty() ||
         std::find(config.allowed_names.begin(), config.allowed_names.end(), name) !=
             config.allowed_names.end();
}

std::vector<std::string> ValuesOf(const std::vector<std::string>& names,
                                  const HeaderLookup& header) {
  std::vector<std::string> values;
  for (const std::string& name : names) {
    for (std::string& value : header(name)) {
      if (!value.empty()) values.push_back(std::move(value));
    }
  }
  return values;
}

absl::StatusOr<UserInfo> FromProxy(const RequestHeaderConfig& config, const HeaderLookup& header,
                                   const HeaderPrefixLookup& headers_with_prefix) {
  UserInfo user;
  const std::vector<std::string> names = ValuesOf(config.username_headers, header);
  if (names.empty()) {
    return absl::UnauthenticatedError(absl::StrCat("the front proxy names no user: want a header ",
                                                   absl::StrJoin(config.username_headers, " or ")));
  }
  user.name = names.front();
  user.groups = ValuesOf(config.group_headers, header);
  for (const std::string& prefix : config.extra_header_prefixes) {
    for (auto& [key, value] : headers_with_prefix(prefix)) {
      user.extra[absl::AsciiStrToLower(key)].push_back(std::move(value));
    }
  }
  return user;
}

}  // namespace

std::string UserInfo::CacheKey() const {
  std::vector<std::string> sorted = groups;
  std::sort(sorted.begin(), sorted.end());
  std::string key = absl::StrCat(name.size(), ":", name);
  for (const std::string& group : sorted) absl::StrAppend(&key, "|", group.size(), ":", group);
  for (const auto& [name_of_extra, values] : extra) {
    for (const std::string& value : values)
      absl::StrAppend(&key, "&", name_of_extra, "=", value.size(), ":", value);
  }
  return key;
}

PeerCertificate ReadPeerCertificate(SSL* ssl) {
  PeerCertificate peer;
  const X509Ptr leaf(SSL_get1_peer_certificate(ssl));
  if (leaf == nullptr) return peer;
  peer.leaf_der = Der(leaf.get());
  const std::vector<std::string> names = NameEntries(leaf.get(), NID_commonName);
  if (!names.empty()) peer.common_name = names.back();
  peer.organizations = NameEntries(leaf.get(), NID_organizationName);
  STACK_OF(X509)* chain = SSL_get_peer_cert_chain(ssl);
  for (int i = 0; chain != nullptr && i < sk_X509_num(chain); ++i)
    peer.chain_der.push_back(Der(sk_X509_value(chain, i)));
  return peer;
}

absl::StatusOr<UserInfo> Authenticate(const RequestHeaderConfig* config,
                                      const PeerCertificate& peer, const HeaderLookup& header,
                                      const HeaderPrefixLookup& headers_with_prefix) {
  if (config == nullptr)
    return absl::UnavailableError("the authentication configuration is not read yet");
  if (SignedBy(peer, config->proxy_ca_pem)) {
    if (Allowed(*config, peer.common_name)) return FromProxy(*config, header, headers_with_prefix);
    if (!SignedBy(peer, config->client_ca_pem)) {
      return absl::UnauthenticatedError(
          absl::StrCat("a front proxy named \"", absl::CHexEscape(peer.common_name),
                       "\" is not allowed (requestheader-allowed-names)"));
    }
  }
  if (SignedBy(peer, config->client_ca_pem) && !peer.common_name.empty()) {
    return UserInfo{.name = peer.common_name, .groups = peer.organizations, .extra = {}};
  }
  if (peer.present()) {
    return absl::UnauthenticatedError(
        absl::StrCat("the client certificate of \"", absl::CHexEscape(peer.common_name),
                     "\" is not signed by a CA of this cluster, or not in force"));
  }
  if (!header("Authorization").empty()) {
    return absl::UnauthenticatedError(
        "bearer tokens are not supported; come through the API server, or with a client "
        "certificate");
  }
  return absl::UnauthenticatedError("want a client certificate, got none");
}

}  // namespace outrigger::controller::adapter
