// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/strings/string_view.h>
#include <absl/time/time.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <memory>
#include <string>
#include <utility>

#include "host/base/logging.h"
#include "host/base/real_clock.h"
#include "operator/kube/http_api.h"
#include "tests/operator/kube/task_runner.h"

namespace outrigger::controller::kube {

// What the tests of HttpApi share: a clock, a thread to run Tasks on, and clients.
class HttpFixture {
 public:
  std::unique_ptr<HttpApi> Client(HttpApi::Options options) {
    return std::make_unique<HttpApi>(clock_, host::Logger(host::MakeNullSink()),
                                     std::move(options));
  }
  host::Deadline Soon() { return host::Deadline::After(clock_, absl::Seconds(20)); }
  template <typename T>
  T Await(host::Task<T> task) {
    return runner_.Run(std::move(task));
  }
  static boost::json::value Json(absl::string_view text) {
    return boost::json::parse(std::string(text));
  }
  static boost::json::value ConfigMap(const std::string& name, const std::string& value) {
    return {{"apiVersion", "v1"},
            {"kind", "ConfigMap"},
            {"metadata", {{"name", name}}},
            {"data", {{"key", value}}}};
  }

  host::RealClock clock_;
  tests::TaskRunner runner_;
};

// metadata.<key> of an object, "" when it is not there.
inline std::string Meta(const boost::json::value& object, absl::string_view key) {
  boost::json::error_code error;
  const boost::json::value* found = object.find_pointer("/metadata/" + std::string(key), error);
  return found == nullptr || !found->is_string() ? "" : std::string(found->get_string());
}

}  // namespace outrigger::controller::kube
