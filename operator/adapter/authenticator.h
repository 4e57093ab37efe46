// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/time/time.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "host/base/mutex.h"
#include "operator/adapter/request_header_config.h"

typedef struct ssl_st SSL;

namespace outrigger::controller::adapter {

// Who asks, as the API server names users.
struct UserInfo {
  std::string name;
  std::string uid;  // may be empty
  std::vector<std::string> groups;
  std::map<std::string, std::vector<std::string>> extra;

  // One text per user: the key of the authoriser's cache.
  std::string CacheKey() const;
};

// The client certificate of one connection, read after the handshake. Its chain is judged for each
// request by the authorities of that moment, so that one that is withdrawn counts at once; the
// judgement is remembered for kRemembered, for it costs as much as the rest of a request.
// Thread-safe.
class PeerCertificate {
 public:
  static constexpr absl::Duration kRemembered = absl::Seconds(10);

  PeerCertificate() = default;  // none was shown
  PeerCertificate(std::vector<std::string> chain_der, std::string common_name,
                  std::vector<std::string> organizations)
      : chain_der_(std::move(chain_der)),
        common_name_(std::move(common_name)),
        organizations_(std::move(organizations)) {}

  bool present() const { return !chain_der_.empty(); }
  const std::string& common_name() const { return common_name_; }
  const std::vector<std::string>& organizations() const { return organizations_; }

  // Whose certificate it is, in force at `now`, for use by clients.
  struct Trust {
    bool proxy = false;   // signed by the authority of the front proxy
    bool client = false;  // signed by the authority of the cluster's clients
  };
  Trust TrustedBy(const std::shared_ptr<const RequestHeaderConfig>& config, absl::Time now) const;

 private:
  bool SignedBy(const std::string& authorities_pem, absl::Time now) const;

  const std::vector<std::string> chain_der_;  // as sent, the leaf first
  const std::string common_name_;
  const std::vector<std::string> organizations_;
  mutable host::Mutex mutex_;
  mutable std::shared_ptr<const RequestHeaderConfig> judged_by_ ABSL_GUARDED_BY(mutex_);
  mutable absl::Time judged_at_ ABSL_GUARDED_BY(mutex_);
  mutable Trust trust_ ABSL_GUARDED_BY(mutex_);
};
std::shared_ptr<const PeerCertificate> ReadPeerCertificate(SSL* ssl);

// All values of a header, in order; names are matched without regard to case.
using HeaderLookup = std::function<std::vector<std::string>(absl::string_view name)>;
// All headers whose name starts with a prefix (without regard to case): rest of the name, value.
using HeaderPrefixLookup =
    std::function<std::vector<std::pair<std::string, std::string>>(absl::string_view prefix)>;

// Says who asks. The front proxy (a certificate of the request-header CA with an allowed name)
// speaks for the user in its headers; any other certificate of the client CA speaks for itself (CN,
// O), and belongs to system:authenticated. Headers without the proxy's certificate mean nothing.
//
// UNAUTHENTICATED: no certificate, one that nobody of them signed or that is not in force, a proxy
// that is not allowed or names no user, and bearer tokens (not supported yet). UNAVAILABLE:
// `config` is nullptr, not read yet. Source: design.md section 5; k8s.io/apiserver, request-header
// authentication.
absl::StatusOr<UserInfo> Authenticate(const std::shared_ptr<const RequestHeaderConfig>& config,
                                      const PeerCertificate& peer, absl::Time now,
                                      const HeaderLookup& header,
                                      const HeaderPrefixLookup& headers_with_prefix);

}  // namespace outrigger::controller::adapter
