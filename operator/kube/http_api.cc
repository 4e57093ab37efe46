// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/http_api.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/json/object.hpp>
#include <cstddef>
#include <deque>
#include <iterator>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "host/base/event.h"
#include "host/base/mutex.h"
#include "host/base/status.h"
#include "operator/kube/request_path.h"
#include "operator/kube/watch_framer.h"

namespace outrigger::controller::kube {
namespace {

namespace json = boost::json;

constexpr size_t kEventsPerTurn = 64;  // then others on the consumer's strand get their turn
constexpr absl::Duration kLongestWatch = absl::Minutes(10);

std::string AcceptHeader(bool metadata_only, absl::string_view kind) {
  if (!metadata_only) return "Accept: application/json";
  return absl::StrCat("Accept: application/json;as=", kind, ";g=meta.k8s.io;v=v1");
}

absl::string_view PatchContentType(PatchType type) {
  switch (type) {
    case PatchType::kMerge:
      return "application/merge-patch+json";
    case PatchType::kApply:
      return "application/apply-patch+yaml";  // JSON is YAML
    case PatchType::kJson:
      return "application/json-patch+json";
  }
  return "";
}

std::string WriteQuery(const WriteOptions& options, absl::string_view force) {
  return QueryString({{"fieldManager", options.field_manager},
                      {"dryRun", options.dry_run ? "All" : ""},
                      {"force", std::string(force)}});
}

bool IsWrite(absl::string_view verb) {
  return verb == "create" || verb == "update" || verb == "patch" || verb == "delete";
}

bool IsReview(const Resource& resource) {
  return resource.group == "authorization.k8s.io" || resource.group == "authentication.k8s.io";
}

}  // namespace

// Between the thread of the watches, which feeds it, and the coroutine in Watch(), which empties
// it.
class HttpApi::WatchStream {
 public:
  WatchStream(const HttpApi& api, ApiCall call)
      : api_(api), call_(std::move(call)), framer_(call_.resource.ToString()) {}

  // On the loop's thread.
  bool OnBytes(absl::string_view bytes) {
    const absl::Status fed =
        framer_.Feed(bytes, [this](WatchEvent event) { Push(std::move(event)); });
    if (!fed.ok()) End(fed);
    host::MutexLock lock(&mutex_);
    return !ended_;
  }

  void OnDone(const HttpAnswer& answer) {
    api_.Record(call_, answer);
    // An API server sends no bookmark before a kind's first event, so silence is no fault: the next
    // watch will tell.
    if (answer.silent && answer.code == 200 && framer_.Finish().ok()) return End(absl::OkStatus());
    if (!answer.transport.ok()) return End(call_.Explain(answer.transport));
    if (answer.code != 200) return End(call_.Explain(ErrorOf(answer)));
    End(framer_.Finish());
  }

  // On any thread. What is queued is dropped: the consumer goes on from what it has seen.
  void Cancel() {
    End(absl::OkStatus());
    host::MutexLock lock(&mutex_);
    events_.clear();
  }

  // The next events, at most kEventsPerTurn; `end` is set when no more will come.
  std::vector<WatchEvent> Take(std::optional<absl::Status>& end) {
    host::MutexLock lock(&mutex_);
    const auto count = static_cast<std::ptrdiff_t>(std::min(events_.size(), kEventsPerTurn));
    std::vector<WatchEvent> taken(std::make_move_iterator(events_.begin()),
                                  std::make_move_iterator(events_.begin() + count));
    events_.erase(events_.begin(), events_.begin() + count);
    if (ended_ && events_.empty()) end = result_;
    return taken;
  }

  const host::Event& changed() const { return changed_; }

 private:
  void Push(WatchEvent event) {
    event.received_at = api_.clock_.SteadyNow();
    {
      host::MutexLock lock(&mutex_);
      if (ended_) return;
      if (events_.size() < api_.options_.watch_queue_events) {
        events_.push_back(std::move(event));
        changed_.Notify();
        return;
      }
    }
    // As if the server had closed it: what is queued is delivered, then the consumer goes on from
    // the last version that it saw.
    api_.log_.Warning("watch was faster than its consumer; it is dropped and resumed",
                      {{"resource", call_.resource.ToString()}, {"namespace", call_.target}});
    End(absl::OkStatus());
  }

  // The first end counts.
  void End(const absl::Status& result) {
    host::MutexLock lock(&mutex_);
    if (ended_) return;
    ended_ = true;
    result_ = result;
    changed_.Notify();
  }

  const HttpApi& api_;
  const ApiCall call_;
  WatchFramer framer_;  // the loop's thread only
  const host::Event changed_;
  host::Mutex mutex_;
  std::deque<WatchEvent> events_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status result_ ABSL_GUARDED_BY(mutex_);
};

HttpApi::HttpApi(host::Clock& clock, host::Logger log, Options options)
    : clock_(clock),
      log_(std::move(log)),
      options_(std::move(options)),
      lease_(clock_,
             {.config = options_.config, .user_agent = options_.user_agent, .multiplex = false}),
      calls_(clock_, {.config = options_.config, .user_agent = options_.user_agent}),
      watches_(clock_, {.config = options_.config, .user_agent = options_.user_agent}) {}

HttpApi::~HttpApi() { Stop(); }

void HttpApi::Stop() {
  watches_.Stop();
  calls_.Stop();
  lease_.Stop();
}

CurlLoop& HttpApi::LoopFor(const Resource& resource) {
  return resource == Leases() ? lease_ : calls_;
}

void HttpApi::Record(const ApiCall& call, const HttpAnswer& answer) const {
  const bool accepted = answer.transport.ok() && answer.code >= 200 && answer.code < 300;
  if (options_.after_write && accepted && IsWrite(call.verb) && call.resource != Leases() &&
      !IsReview(call.resource)) {
    options_.after_write();
  }
  if (!options_.on_request) return;
  options_.on_request({.verb = call.verb,
                       .resource = call.resource.ToString(),
                       .code = answer.code,
                       .duration = clock_.SteadyNow() - call.started});
}

template <typename T>
host::Task<T> HttpApi::Send(ApiCall call, T (*decode)(const ApiCall&, const HttpAnswer&)) {
  call.started = clock_.SteadyNow();
  auto initiate = [this, decode, call = std::move(call)](auto handler) mutable {
    // std::function must be copyable, a handler is not.
    auto shared = std::make_shared<decltype(handler)>(std::move(handler));
    CurlLoop& loop = LoopFor(call.resource);
    HttpRequest request = std::move(call.request);
    loop.Start(std::move(request), nullptr,
               [this, decode, shared, call = std::move(call)](const HttpAnswer& answer) mutable {
                 Record(call, answer);
                 auto result = std::make_shared<T>(decode(call, answer));
                 auto executor = boost::asio::get_associated_executor(*shared);
                 // The handler goes along: nothing of the caller may die on this thread.
                 boost::asio::post(executor, [shared = std::move(shared), result]() mutable {
                   std::move (*shared)(std::move(*result));
                 });
               });
  };
  co_return co_await boost::asio::async_initiate<const boost::asio::use_awaitable_t<>, void(T)>(
      std::move(initiate), boost::asio::use_awaitable);
}

host::Task<absl::StatusOr<json::value>> HttpApi::SendForObject(absl::StatusOr<ApiCall> call) {
  if (!call.ok()) co_return call.status();
  absl::StatusOr<json::value> answer = co_await Send(*std::move(call), &DecodeValue);
  co_return answer;
}

host::Task<absl::StatusOr<json::value>> HttpApi::Get(Resource resource, std::string namespace_name,
                                                     std::string name, std::string subresource,
                                                     host::Deadline deadline) {
  absl::StatusOr<ApiCall> call =
      ApiCall::MakeFor("get", "GET", resource, namespace_name, name, subresource, "", deadline);
  if (call.ok()) call->request.headers.push_back(AcceptHeader(false, ""));
  return SendForObject(std::move(call));
}

host::Task<absl::StatusOr<json::value>> HttpApi::GetMetadata(Resource resource,
                                                             std::string namespace_name,
                                                             std::string name,
                                                             host::Deadline deadline) {
  absl::StatusOr<ApiCall> call =
      ApiCall::MakeFor("get", "GET", resource, namespace_name, name, "", "", deadline);
  if (call.ok()) call->request.headers.push_back(AcceptHeader(true, "PartialObjectMetadata"));
  return SendForObject(std::move(call));
}

host::Task<absl::StatusOr<json::value>> HttpApi::Discover(std::string group, std::string version,
                                                          host::Deadline deadline) {
  absl::StatusOr<std::string> path = GroupVersionPath(group, version);
  if (!path.ok()) co_return path.status();
  ApiCall call;
  call.verb = "get";
  call.resource = {group, version, "*", false};  // for messages and metrics
  call.request.method = "GET";
  call.request.path = *std::move(path);
  call.request.deadline = deadline;
  call.request.headers.push_back(AcceptHeader(false, ""));
  co_return co_await SendForObject(std::move(call));
}

host::Task<absl::StatusOr<ObjectList>> HttpApi::List(Resource resource, std::string namespace_name,
                                                     ListOptions options, host::Deadline deadline) {
  const std::string query =
      QueryString({{"limit", options.limit > 0 ? absl::StrCat(options.limit) : ""},
                   {"continue", options.continue_token},
                   // Refused together: a page is of the version of the first one.
                   {"resourceVersion",
                    options.continue_token.empty() ? options.resource_version : std::string()},
                   {"labelSelector", options.label_selector},
                   {"fieldSelector", options.field_selector}});
  absl::StatusOr<ApiCall> call =
      ApiCall::Make("list", "GET", resource, namespace_name, "", "", query, deadline);
  CO_RETURN_IF_ERROR(call.status());
  call->request.headers.push_back(AcceptHeader(options.metadata_only, "PartialObjectMetadataList"));
  absl::StatusOr<ObjectList> list = co_await Send(*std::move(call), &DecodeList);
  co_return list;
}

host::Task<absl::StatusOr<json::value>> HttpApi::Create(Resource resource,
                                                        std::string namespace_name,
                                                        json::value object, WriteOptions options,
                                                        host::Deadline deadline) {
  const std::string query = WriteQuery(options, "");
  absl::StatusOr<ApiCall> call =
      options.subresource.empty()
          ? ApiCall::Make("create", "POST", resource, namespace_name, "", "", query, deadline)
          : ApiCall::MakeFor("create", "POST", resource, namespace_name,
                             MetadataText(object, "name"), options.subresource, query, deadline);
  if (call.ok()) call->SetBody("application/json", object);
  return SendForObject(std::move(call));
}

host::Task<absl::StatusOr<json::value>> HttpApi::Update(Resource resource,
                                                        std::string namespace_name,
                                                        std::string name, json::value object,
                                                        WriteOptions options,
                                                        host::Deadline deadline) {
  absl::StatusOr<ApiCall> call =
      ApiCall::MakeFor("update", "PUT", resource, namespace_name, name, options.subresource,
                       WriteQuery(options, ""), deadline);
  if (call.ok()) call->SetBody("application/json", object);
  return SendForObject(std::move(call));
}

host::Task<absl::StatusOr<json::value>> HttpApi::Patch(Resource resource,
                                                       std::string namespace_name, std::string name,
                                                       PatchType type, json::value patch,
                                                       WriteOptions options,
                                                       host::Deadline deadline) {
  const absl::string_view force = type == PatchType::kApply ? "true" : "";
  absl::StatusOr<ApiCall> call =
      ApiCall::MakeFor("patch", "PATCH", resource, namespace_name, name, options.subresource,
                       WriteQuery(options, force), deadline);
  if (call.ok()) call->SetBody(PatchContentType(type), patch);
  return SendForObject(std::move(call));
}

host::Task<absl::Status> HttpApi::Delete(Resource resource, std::string namespace_name,
                                         std::string name, DeleteOptions options,
                                         host::Deadline deadline) {
  json::object body = {{"kind", "DeleteOptions"}, {"apiVersion", "v1"}};
  if (!options.propagation_policy.empty()) body["propagationPolicy"] = options.propagation_policy;
  json::object preconditions;
  if (!options.uid.empty()) preconditions["uid"] = options.uid;
  if (!options.resource_version.empty()) {
    preconditions["resourceVersion"] = options.resource_version;
  }
  if (!preconditions.empty()) body["preconditions"] = std::move(preconditions);
  absl::StatusOr<ApiCall> call =
      ApiCall::MakeFor("delete", "DELETE", resource, namespace_name, name, "", "", deadline);
  CO_RETURN_IF_ERROR(call.status());
  call->SetBody("application/json", std::move(body));
  absl::StatusOr<json::value> answer = co_await Send(*std::move(call), &DecodeValue);
  co_return answer.status();
}

absl::StatusOr<ApiCall> HttpApi::MakeWatch(const Resource& resource,
                                           const std::string& namespace_name,
                                           const WatchOptions& options, host::Deadline stop) const {
  if (options.resource_version.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "watch ", resource.ToString(), ": resource_version: want that of a list, got \"\""));
  }
  // The server closes it cleanly at about the time when we would.
  const absl::Duration life = std::min(stop.Remaining(clock_), kLongestWatch);
  const int64_t seconds =
      std::max<int64_t>(absl::ToInt64Seconds(absl::Ceil(life, absl::Seconds(1))), 1);
  const std::string query = QueryString({{"watch", "true"},
                                         {"allowWatchBookmarks", "true"},
                                         {"resourceVersion", options.resource_version},
                                         {"timeoutSeconds", absl::StrCat(seconds)},
                                         {"labelSelector", options.label_selector},
                                         {"fieldSelector", options.field_selector}});
  ASSIGN_OR_RETURN(ApiCall call, ApiCall::Make("watch", "GET", resource, namespace_name, "", "",
                                               query, host::Deadline::Never()));
  call.request.headers.push_back(AcceptHeader(options.metadata_only, "PartialObjectMetadata"));
  call.request.longest_silence = options_.watch_silence;
  call.started = clock_.SteadyNow();
  return call;
}

host::Task<absl::Status> HttpApi::Watch(Resource resource, std::string namespace_name,
                                        WatchOptions options,
                                        std::function<void(WatchEvent)> on_event,
                                        host::Deadline stop) {
  absl::StatusOr<ApiCall> call = MakeWatch(resource, namespace_name, options, stop);
  CO_RETURN_IF_ERROR(call.status());
  HttpRequest request = std::move(call->request);
  auto stream = std::make_shared<WatchStream>(*this, *std::move(call));
  const std::stop_callback on_cancel(options.cancel, [stream] { stream->Cancel(); });
  const uint64_t id = watches_.Start(
      std::move(request), [stream](absl::string_view bytes) { return stream->OnBytes(bytes); },
      [stream](const HttpAnswer& answer) { stream->OnDone(answer); });
  const host::Executor executor = co_await boost::asio::this_coro::executor;
  while (true) {
    if (stop.Expired(clock_)) stream->Cancel();
    std::optional<absl::Status> end;
    std::vector<WatchEvent> events = stream->Take(end);
    for (WatchEvent& event : events) {
      if (!options.cancel.stop_requested()) on_event(std::move(event));
    }
    if (end) {
      watches_.Cancel(id);
      co_return *end;
    }
    if (events.empty()) {
      co_await stream->changed().WaitUntil(clock_, stop.time());
    } else {
      co_await boost::asio::post(executor, boost::asio::use_awaitable);
    }
  }
}

}  // namespace outrigger::controller::kube
