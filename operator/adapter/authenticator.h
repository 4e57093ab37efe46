// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "operator/adapter/request_header_config.h"

typedef struct ssl_st SSL;

namespace outrigger::controller::adapter {

// Who asks, as the API server names users.
struct UserInfo {
  std::string name;
  std::vector<std::string> groups;
  std::map<std::string, std::vector<std::string>> extra;

  // One text per user: the key of the authoriser's cache.
  std::string CacheKey() const;
};

// The client certificate of one connection, read after the handshake. The chain is checked against
// the CAs of the current RequestHeaderConfig at each request, so that a CA that is withdrawn counts
// at once.
struct PeerCertificate {
  std::string leaf_der;
  std::vector<std::string> chain_der;  // as sent, leaf included
  std::string common_name;
  std::vector<std::string> organizations;

  bool present() const { return !leaf_der.empty(); }
};
PeerCertificate ReadPeerCertificate(SSL* ssl);

// All values of a header, in order; names are matched without regard to case.
using HeaderLookup = std::function<std::vector<std::string>(absl::string_view name)>;
// All headers whose name starts with a prefix (without regard to case): rest of the name, value.
using HeaderPrefixLookup =
    std::function<std::vector<std::pair<std::string, std::string>>(absl::string_view prefix)>;

// Says who asks. The front proxy (a certificate of the request-header CA with an allowed name)
// speaks for the user in its headers; any other certificate of the client CA speaks for itself (CN,
// O). Headers without the proxy's certificate mean nothing. UNAUTHENTICATED: no certificate, one
// that nobody of them signed or that has expired, a proxy that is not allowed or names no user, and
// bearer tokens (not supported yet). UNAVAILABLE: `config` is nullptr, not read yet. Source:
// design.md section 5; k8s.io/apiserver request-header authentication.
absl::StatusOr<UserInfo> Authenticate(const RequestHeaderConfig* config,
                                      const PeerCertificate& peer, const HeaderLookup& header,
                                      const HeaderPrefixLookup& headers_with_prefix);

}  // namespace outrigger::controller::adapter
