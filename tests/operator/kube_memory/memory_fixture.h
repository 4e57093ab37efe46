// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <optional>
#include <string>
#include <utility>

#include "host/base/fake_clock.h"
#include "operator/kube/memory_api.h"
#include "tests/simulation/seeded_executor.h"

namespace outrigger::controller::kube {

inline boost::json::value Json(absl::string_view text) {
  return boost::json::parse(boost::json::string_view(text.data(), text.size()));
}

// A MemoryApi on one thread under virtual time, whose calls a test makes as if they were blocking.
class MemoryFixture {
 public:
  explicit MemoryFixture(MemoryApi::Options options = {}) : api(clock, std::move(options)) {}

  template <typename T>
  T Await(host::Task<T> task) {
    std::optional<T> result;
    boost::asio::co_spawn(executor.executor(), std::move(task),
                          [&result](const std::exception_ptr& error, T value) {
                            if (error == nullptr) result = std::move(value);
                          });
    const bool done = executor.RunUntil([&result] { return result.has_value(); }, absl::Hours(1));
    EXPECT_TRUE(done) << "the call did not end within an hour";
    return *std::move(result);
  }

  host::Deadline Soon() const { return host::Deadline::After(clock, absl::Seconds(10)); }

  absl::StatusOr<boost::json::value> Get(const Resource& resource, std::string name,
                                         std::string subresource = "") {
    return Await(
        api.Get(resource, NamespaceOf(resource), std::move(name), std::move(subresource), Soon()));
  }
  absl::StatusOr<boost::json::value> Create(const Resource& resource, absl::string_view object) {
    return Await(api.Create(resource, NamespaceOf(resource), Json(object), {}, Soon()));
  }
  absl::StatusOr<boost::json::value> Update(const Resource& resource, std::string name,
                                            boost::json::value object,
                                            std::string subresource = "") {
    return Await(api.Update(resource, NamespaceOf(resource), std::move(name), std::move(object),
                            {.subresource = std::move(subresource)}, Soon()));
  }
  absl::StatusOr<boost::json::value> Patch(const Resource& resource, std::string name,
                                           absl::string_view patch, std::string subresource = "") {
    return Await(api.Patch(resource, NamespaceOf(resource), std::move(name), PatchType::kMerge,
                           Json(patch), {.subresource = std::move(subresource)}, Soon()));
  }
  absl::Status Delete(const Resource& resource, std::string name, DeleteOptions options = {}) {
    return Await(
        api.Delete(resource, NamespaceOf(resource), std::move(name), std::move(options), Soon()));
  }

  host::FakeClock clock;
  MemoryApi api;
  simulation::SeededExecutor executor{clock, 1};

 private:
  static std::string NamespaceOf(const Resource& resource) {
    return resource.namespaced ? "ns" : "";
  }
};

// A member by path, as text: At(object, "/metadata/name"). "" when absent.
inline std::string At(const boost::json::value& value, absl::string_view pointer) {
  boost::json::error_code error;
  const boost::json::value* found =
      value.find_pointer(boost::json::string_view(pointer.data(), pointer.size()), error);
  if (found == nullptr) return "";
  if (found->is_string()) return std::string(found->get_string());
  return boost::json::serialize(*found);
}

// HTTP code and reason of an error answer: "409 Conflict".
inline std::string CodeAndReason(const absl::Status& status) {
  const std::optional<ApiError> error = GetApiError(status);
  if (!error.has_value()) return std::string(absl::StatusCodeToString(status.code()));
  return absl::StrCat(error->http_code, " ", error->reason);
}

}  // namespace outrigger::controller::kube
