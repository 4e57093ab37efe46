// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>
#include <vector>

#include "host/base/deadline.h"
#include "host/base/event.h"
#include "host/base/logging.h"
#include "host/base/mutex.h"
#include "operator/kube/api.h"

namespace outrigger::controller::adapter {

// How the API server vouches for users: ConfigMap kube-system/extension-apiserver-authentication.
struct RequestHeaderConfig {
  std::string client_ca_pem;  // certificates of users who come directly; "" = none are accepted
  std::string proxy_ca_pem;   // of the front proxy
  std::vector<std::string>
      allowed_names;  // common names of the front proxy; empty: any that the CA signed
  std::vector<std::string> username_headers;
  std::vector<std::string> uid_headers;
  std::vector<std::string> group_headers;
  std::vector<std::string> extra_header_prefixes;

  friend bool operator==(const RequestHeaderConfig&, const RequestHeaderConfig&) = default;
};

// INVALID_ARGUMENT naming the key.
absl::StatusOr<RequestHeaderConfig> ParseRequestHeaderConfig(const boost::json::value& config_map);

// Reads that ConfigMap now and every two minutes (clusters change an authority by first trusting
// both for long), every 2 s while that fails. Current() is thread-safe and never blocks; nullptr:
// not read yet.
class RequestHeaderConfigLoader {
 public:
  RequestHeaderConfigLoader(host::Clock& clock, kube::Api& api, host::Logger log)
      : clock_(clock), api_(api), log_(std::move(log)) {}

  // Until Stop().
  host::Task<void> Run();
  void Stop();
  std::shared_ptr<const RequestHeaderConfig> Current() const;
  // Returns once Current() is there, or when stopped.
  host::Task<void> WaitForFirst();

 private:
  host::Task<absl::Status> Load();

  host::Clock& clock_;
  kube::Api& api_;
  const host::Logger log_;
  host::Event stop_;
  host::Event first_;
  mutable host::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::shared_ptr<const RequestHeaderConfig> current_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace outrigger::controller::adapter
