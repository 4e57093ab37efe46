// SPDX-License-Identifier: Apache-2.0
#include "host/client/batch_plan.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <map>
#include <string>

namespace outrigger::host {
namespace {

using scaler::v1::BatchEntry;
using SortedMap = std::map<std::string, std::string>;

// Tag, length and index of a repeated message never need more.
constexpr size_t kFieldOverhead = 16;

void SetTimeout(absl::Duration timeout, google::protobuf::Duration& out) {
  out.set_seconds(absl::ToInt64Seconds(timeout));
  out.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(timeout % absl::Seconds(1))));
}

// One call under construction.
class CallBuilder {
 public:
  explicit CallBuilder(const BatchLimits& limits) : limits_(limits) {}

  // False: it is full, start another. An entry goes into an empty call whatever its size.
  bool Add(size_t item, BatchEntry entry, const SortedMap& credentials) {
    const bool shared = credentials.empty() || index_.count(credentials) != 0;
    const size_t cost = Cost(entry) + (shared ? 0 : Cost(ToMessage(credentials)));
    const size_t count = call_.items.size();
    if (count > 0 && (count >= limits_.max_entries || bytes_ + cost > limits_.max_bytes)) {
      return false;
    }
    bytes_ += cost;
    if (!credentials.empty()) {
      entry.mutable_request()->mutable_trigger()->set_credentials_index(IndexOf(credentials));
    }
    *call_.request.add_entries() = std::move(entry);
    call_.items.push_back(item);
    return true;
  }

  bool too_big() const { return bytes_ > limits_.max_bytes; }
  size_t bytes() const { return bytes_; }
  bool empty() const { return call_.items.empty(); }
  PlannedCall Take() { return std::move(call_); }

 private:
  static scaler::v1::Credentials ToMessage(const SortedMap& credentials) {
    scaler::v1::Credentials message;
    message.mutable_authentication()->insert(credentials.begin(), credentials.end());
    return message;
  }
  template <typename Message>
  static size_t Cost(const Message& message) {
    return message.ByteSizeLong() + kFieldOverhead;
  }
  uint32_t IndexOf(const SortedMap& credentials) {
    const auto [it, is_new] =
        index_.emplace(credentials, static_cast<uint32_t>(call_.request.credentials_size()));
    if (is_new) *call_.request.add_credentials() = ToMessage(credentials);
    return it->second;
  }

  const BatchLimits limits_;
  PlannedCall call_;
  std::map<SortedMap, uint32_t> index_;
  size_t bytes_ = 0;
};

}  // namespace

BatchLimits LimitsOf(const scaler::v1::Limits& announced) {
  BatchLimits limits;
  if (announced.max_batch_entries() != 0) {
    limits.max_entries = std::min<size_t>(limits.max_entries, announced.max_batch_entries());
  }
  if (announced.max_message_bytes() != 0) {
    limits.max_bytes = std::min<size_t>(limits.max_bytes, announced.max_message_bytes());
  }
  return limits;
}

scaler::v1::GetMetricsRequest MakeRequest(const BatchItem& item) {
  scaler::v1::GetMetricsRequest request;
  *request.mutable_trigger() = *item.trigger;
  if (!item.query.metric_name.empty()) request.set_metric_name(item.query.metric_name);
  request.set_selector(item.query.selector);
  request.set_poll(item.query.poll);
  return request;
}

BatchPlan PlanBatch(const std::vector<BatchItem>& items,
                    const std::vector<absl::Duration>& timeouts, const BatchLimits& limits) {
  BatchPlan plan;
  auto builder = std::make_unique<CallBuilder>(limits);
  const auto flush = [&] {
    if (!builder->empty()) plan.calls.push_back(builder->Take());
    builder = std::make_unique<CallBuilder>(limits);
  };
  for (size_t i = 0; i < items.size(); ++i) {
    BatchEntry entry;
    *entry.mutable_request() = MakeRequest(items[i]);
    SetTimeout(timeouts[i], *entry.mutable_timeout());
    auto& authentication = *entry.mutable_request()->mutable_trigger()->mutable_authentication();
    const SortedMap credentials(authentication.begin(), authentication.end());
    authentication.clear();
    if (!builder->Add(i, entry, credentials)) {
      flush();
      builder->Add(i, std::move(entry), credentials);
    }
    if (builder->too_big()) {  // alone in its call: nothing makes it smaller
      plan.refused.emplace_back(
          i, absl::ResourceExhaustedError(absl::StrCat("trigger: want at most ", limits.max_bytes,
                                                       " bytes, got ", builder->bytes())));
      builder = std::make_unique<CallBuilder>(limits);
    }
  }
  flush();
  return plan;
}

}  // namespace outrigger::host
