// SPDX-License-Identifier: Apache-2.0
#include "operator/adapter/request_header_config.h"

#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <map>
#include <utility>

#include "host/base/status.h"
#include "operator/api/object_reader.h"

namespace outrigger::controller::adapter {
namespace {

constexpr absl::Duration kReloadInterval = absl::Minutes(2);
constexpr absl::Duration kRetryInterval = absl::Seconds(2);
constexpr absl::Duration kLoadTimeout = absl::Seconds(10);

// Lists stand in the ConfigMap as JSON text: ["X-Remote-User"].
absl::Status ReadList(const std::map<std::string, std::string>& data, const std::string& key,
                      std::vector<std::string>& out) {
  auto it = data.find(key);
  if (it == data.end() || it->second.empty()) return absl::OkStatus();
  boost::json::error_code error;
  const boost::json::value value = boost::json::parse(it->second, error);
  const auto fault = [&] {
    return absl::InvalidArgumentError(absl::StrCat(
        "data.", key, ": want a JSON list of strings, got \"", absl::CHexEscape(it->second), "\""));
  };
  if (error || !value.is_array()) return fault();
  for (const boost::json::value& item : value.get_array()) {
    if (!item.is_string()) return fault();
    out.emplace_back(item.get_string());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RequestHeaderConfig> ParseRequestHeaderConfig(const boost::json::value& config_map) {
  std::map<std::string, std::string> data;
  api::ObjectReader reader("", config_map);
  reader.Read("data", data);
  RETURN_IF_ERROR(reader.status());
  RequestHeaderConfig config;
  config.client_ca_pem = data["client-ca-file"];
  config.proxy_ca_pem = data["requestheader-client-ca-file"];
  RETURN_IF_ERROR(ReadList(data, "requestheader-allowed-names", config.allowed_names));
  RETURN_IF_ERROR(ReadList(data, "requestheader-username-headers", config.username_headers));
  RETURN_IF_ERROR(ReadList(data, "requestheader-uid-headers", config.uid_headers));
  RETURN_IF_ERROR(ReadList(data, "requestheader-group-headers", config.group_headers));
  RETURN_IF_ERROR(
      ReadList(data, "requestheader-extra-headers-prefix", config.extra_header_prefixes));
  return config;
}

host::Task<absl::Status> RequestHeaderConfigLoader::Load() {
  absl::StatusOr<boost::json::value> found =
      co_await api_.Get(kube::ConfigMaps(), "kube-system", "extension-apiserver-authentication", "",
                        host::Deadline::After(clock_, kLoadTimeout));
  if (!found.ok()) co_return found.status();
  absl::StatusOr<RequestHeaderConfig> config = ParseRequestHeaderConfig(*found);
  if (!config.ok()) co_return config.status();
  auto next = std::make_shared<const RequestHeaderConfig>(*std::move(config));
  {
    host::MutexLock lock(&mutex_);
    if (current_ == nullptr || !(*current_ == *next)) current_ = std::move(next);
  }
  first_.NotifyAll();
  co_return absl::OkStatus();
}

host::Task<void> RequestHeaderConfigLoader::Run() {
  std::string last_error;
  while (true) {
    const absl::Status loaded = co_await Load();
    if (!loaded.ok() && loaded.message() != last_error) {
      log_.Warning("ConfigMap kube-system/extension-apiserver-authentication could not be read",
                   {{"error", host::Describe(loaded)}});
    }
    last_error = std::string(loaded.message());
    {
      host::MutexLock lock(&mutex_);
      if (stopping_) co_return;
    }
    co_await stop_.WaitUntil(clock_,
                             clock_.SteadyNow() + (loaded.ok() ? kReloadInterval : kRetryInterval));
  }
}

void RequestHeaderConfigLoader::Stop() {
  {
    host::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  stop_.Notify();
  first_.NotifyAll();
}

std::shared_ptr<const RequestHeaderConfig> RequestHeaderConfigLoader::Current() const {
  host::MutexLock lock(&mutex_);
  return current_;
}

host::Task<void> RequestHeaderConfigLoader::WaitForFirst() {
  while (true) {
    {
      host::MutexLock lock(&mutex_);
      if (current_ != nullptr || stopping_) co_return;
    }
    co_await first_.Wait(clock_);
  }
}

}  // namespace outrigger::controller::adapter
