// SPDX-License-Identifier: Apache-2.0
#include "tests/operator/adapter/review_api.h"

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

namespace outrigger::controller::adapter {
namespace {

namespace json = boost::json;

absl::Status NotScripted() { return absl::UnimplementedError("not scripted"); }

}  // namespace

void ReviewApi::SetJudge(Judge judge) {
  host::MutexLock lock(&mutex_);
  judge_ = std::move(judge);
}

ReviewApi::Judge ReviewApi::judge() const {
  host::MutexLock lock(&mutex_);
  return judge_;
}

void ReviewApi::SetConfigMap(absl::StatusOr<json::value> config_map) {
  host::MutexLock lock(&mutex_);
  config_map_ = std::move(config_map);
}

void ReviewApi::Hold() {
  host::MutexLock lock(&mutex_);
  held_ = true;
}

void ReviewApi::Release() {
  std::vector<std::function<void()>> waiting;
  {
    host::MutexLock lock(&mutex_);
    held_ = false;
    waiting.swap(waiting_);
  }
  for (const std::function<void()>& resume : waiting) resume();
}

std::vector<std::string> ReviewApi::reviews() const {
  host::MutexLock lock(&mutex_);
  return reviews_;
}

host::Task<absl::StatusOr<json::value>> ReviewApi::Get(kube::Resource, std::string, std::string,
                                                       std::string, host::Deadline) {
  ++config_map_reads_;
  host::MutexLock lock(&mutex_);
  co_return config_map_;
}

host::Task<absl::StatusOr<json::value>> ReviewApi::Create(kube::Resource, std::string,
                                                          json::value object, kube::WriteOptions,
                                                          host::Deadline) {
  const json::value spec = object.as_object().at("spec");
  auto initiate = [this](auto handler) {
    auto shared = std::make_shared<decltype(handler)>(std::move(handler));
    auto resume = [shared] {
      boost::asio::post(boost::asio::get_associated_executor(*shared),
                        [shared] { std::move (*shared)(); });
    };
    host::MutexLock lock(&mutex_);
    if (held_) {
      waiting_.push_back(resume);
    } else {
      resume();
    }
  };
  {
    host::MutexLock lock(&mutex_);
    reviews_.push_back(json::serialize(spec));
  }
  co_await boost::asio::async_initiate<const boost::asio::use_awaitable_t<>, void()>(
      std::move(initiate), boost::asio::use_awaitable);
  const Judge judge = this->judge();
  absl::StatusOr<bool> allowed = judge == nullptr ? absl::StatusOr<bool>(true) : judge(spec);
  if (!allowed.ok()) co_return allowed.status();
  object.as_object()["status"] = json::object{{"allowed", *allowed}};
  co_return object;
}

host::Task<absl::StatusOr<json::value>> ReviewApi::GetMetadata(kube::Resource, std::string,
                                                               std::string, host::Deadline) {
  co_return NotScripted();
}
host::Task<absl::StatusOr<json::value>> ReviewApi::Discover(std::string, std::string,
                                                            host::Deadline) {
  co_return NotScripted();
}
host::Task<absl::StatusOr<kube::ObjectList>> ReviewApi::List(kube::Resource, std::string,
                                                             kube::ListOptions, host::Deadline) {
  co_return NotScripted();
}
host::Task<absl::StatusOr<json::value>> ReviewApi::Update(kube::Resource, std::string, std::string,
                                                          json::value, kube::WriteOptions,
                                                          host::Deadline) {
  co_return NotScripted();
}
host::Task<absl::StatusOr<json::value>> ReviewApi::Patch(kube::Resource, std::string, std::string,
                                                         kube::PatchType, json::value,
                                                         kube::WriteOptions, host::Deadline) {
  co_return NotScripted();
}
host::Task<absl::Status> ReviewApi::Delete(kube::Resource, std::string, std::string,
                                           kube::DeleteOptions, host::Deadline) {
  co_return NotScripted();
}
host::Task<absl::Status> ReviewApi::Watch(kube::Resource, std::string, kube::WatchOptions,
                                          std::function<void(kube::WatchEvent)>, host::Deadline) {
  co_return NotScripted();
}

}  // namespace outrigger::controller::adapter
