// SPDX-License-Identifier: Apache-2.0
#include "operator/adapter/authenticator.h"

#include <absl/strings/ascii.h>
#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <algorithm>

#include "host/base/status.h"
#include "operator/adapter/percent_encoding.h"

namespace outrigger::controller::adapter {
namespace {

constexpr char kAuthenticatedGroup[] = "system:authenticated";

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

// "Example.com%2fScopes" -> "example.com/scopes"; a key that is not well encoded stays as it is, as
// in Kubernetes.
std::string ExtraKey(absl::string_view encoded) {
  std::string lower = absl::AsciiStrToLower(encoded);
  absl::StatusOr<std::string> decoded = PercentDecode(lower, Plus::kIsPlus);
  return decoded.ok() ? *std::move(decoded) : std::move(lower);
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
  const std::vector<std::string> uids = ValuesOf(config.uid_headers, header);
  if (!uids.empty()) user.uid = uids.front();
  user.groups = ValuesOf(config.group_headers, header);
  for (const std::string& prefix : config.extra_header_prefixes) {
    for (auto& [key, value] : headers_with_prefix(prefix)) {
      user.extra[ExtraKey(key)].push_back(std::move(value));
    }
  }
  return user;
}

// As the API server does for everybody whose identity was proved.
UserInfo AddAuthenticatedGroup(UserInfo user) {
  if (user.name != "system:anonymous" &&
      std::find(user.groups.begin(), user.groups.end(), kAuthenticatedGroup) == user.groups.end())
    user.groups.emplace_back(kAuthenticatedGroup);
  return user;
}

// Why a request is refused that neither a proxy nor a certificate vouches for.
absl::Status Refusal(const PeerCertificate& peer, bool from_proxy, const HeaderLookup& header) {
  const std::string name = absl::CHexEscape(peer.common_name());
  if (from_proxy) {
    return absl::UnauthenticatedError(absl::StrCat(
        "a front proxy named \"", name, "\" is not allowed (requestheader-allowed-names)"));
  }
  if (peer.present()) {
    return absl::UnauthenticatedError(
        absl::StrCat("the client certificate of \"", name,
                     "\" is not signed by a CA of this cluster, or not in force"));
  }
  if (!header("Authorization").empty()) {
    return absl::UnauthenticatedError(
        "bearer tokens are not supported; come through the API server, or with a client "
        "certificate");
  }
  return absl::UnauthenticatedError("want a client certificate, got none");
}

}  // namespace

std::string UserInfo::CacheKey() const {
  std::vector<std::string> sorted = groups;
  std::sort(sorted.begin(), sorted.end());
  std::string key = absl::StrCat(name.size(), ":", name, uid.size(), ":", uid);
  for (const std::string& group : sorted) absl::StrAppend(&key, "|", group.size(), ":", group);
  for (const auto& [extra_key, values] : extra) {
    absl::StrAppend(&key, "&", extra_key.size(), ":", extra_key);
    for (const std::string& value : values) absl::StrAppend(&key, "=", value.size(), ":", value);
  }
  return key;
}

bool PeerCertificate::SignedBy(const std::string& authorities_pem, absl::Time now) const {
  if (authorities_pem.empty() || !present()) return false;
  const StorePtr store(X509_STORE_new());
  const BioPtr bio(
      BIO_new_mem_buf(authorities_pem.data(), static_cast<int>(authorities_pem.size())));
  while (const X509Ptr ca = X509Ptr(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr))) {
    X509_STORE_add_cert(store.get(), ca.get());
  }
  ERR_clear_error();  // the end of the text is one
  // As in Go, whatever is listed is an authority, also one that another one signed.
  X509_STORE_set_flags(store.get(), X509_V_FLAG_PARTIAL_CHAIN);
  const X509Ptr leaf = FromDer(chain_der_.front());
  const StackPtr untrusted(sk_X509_new_null());
  for (const std::string& der : chain_der_) {
    if (X509Ptr certificate = FromDer(der)) sk_X509_push(untrusted.get(), certificate.release());
  }
  const StoreContextPtr context(X509_STORE_CTX_new());
  if (leaf == nullptr ||
      X509_STORE_CTX_init(context.get(), store.get(), leaf.get(), untrusted.get()) != 1)
    return false;
  X509_STORE_CTX_set_default(context.get(), "ssl_client");
  X509_STORE_CTX_set_time(context.get(), 0, absl::ToTimeT(now));
  const bool trusted = X509_verify_cert(context.get()) == 1;
  ERR_clear_error();
  return trusted;
}

PeerCertificate::Trust PeerCertificate::TrustedBy(
    const std::shared_ptr<const RequestHeaderConfig>& config, absl::Time now) const {
  host::MutexLock lock(&mutex_);
  if (judged_by_ != config || now < judged_at_ || now >= judged_at_ + kRemembered) {
    trust_ = {.proxy = SignedBy(config->proxy_ca_pem, now),
              .client = SignedBy(config->client_ca_pem, now)};
    judged_by_ = config;
    judged_at_ = now;
  }
  return trust_;
}

std::shared_ptr<const PeerCertificate> ReadPeerCertificate(SSL* ssl) {
  const X509Ptr leaf(SSL_get1_peer_certificate(ssl));
  if (leaf == nullptr) return std::make_shared<const PeerCertificate>();
  std::vector<std::string> chain_der;
  STACK_OF(X509)* chain = SSL_get_peer_cert_chain(ssl);
  for (int i = 0; chain != nullptr && i < sk_X509_num(chain); ++i)
    chain_der.push_back(Der(sk_X509_value(chain, i)));
  if (chain_der.empty()) chain_der.push_back(Der(leaf.get()));
  std::vector<std::string> names = NameEntries(leaf.get(), NID_commonName);
  return std::make_shared<const PeerCertificate>(std::move(chain_der),
                                                 names.empty() ? "" : std::move(names.back()),
                                                 NameEntries(leaf.get(), NID_organizationName));
}

absl::StatusOr<UserInfo> Authenticate(const std::shared_ptr<const RequestHeaderConfig>& config,
                                      const PeerCertificate& peer, absl::Time now,
                                      const HeaderLookup& header,
                                      const HeaderPrefixLookup& headers_with_prefix) {
  if (config == nullptr)
    return absl::UnavailableError("the authentication configuration is not read yet");
  const PeerCertificate::Trust trust = peer.TrustedBy(config, now);
  if (trust.proxy && Allowed(*config, peer.common_name())) {
    ASSIGN_OR_RETURN(UserInfo user, FromProxy(*config, header, headers_with_prefix));
    return AddAuthenticatedGroup(std::move(user));
  }
  if (trust.client && !peer.common_name().empty()) {
    return AddAuthenticatedGroup(
        {.name = peer.common_name(), .groups = peer.organizations(), .extra = {}});
  }
  return Refusal(peer, trust.proxy, header);
}

}  // namespace outrigger::controller::adapter
