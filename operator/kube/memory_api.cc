// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/memory_api.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <stop_token>
#include <utility>

#include "host/base/status.h"
#include "operator/kube/memory_errors.h"

namespace outrigger::controller::kube {
namespace {

namespace json = boost::json;
using host::Deadline;
using host::Task;
using memory::MemoryStore;
using ValueOr = absl::StatusOr<json::value>;

// Lets others run: what follows is a new turn of the executor.
Task<void> NextTurn() {
  const host::Executor executor = co_await boost::asio::this_coro::executor;
  co_await boost::asio::post(executor, boost::asio::use_awaitable);
}

absl::Status StatusOf(const absl::Status& result) { return result; }
template <typename T>
absl::Status StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

absl::Status CheckWrite(const WriteOptions& options) {
  return options.dry_run ? memory::NotModelled("dry run") : absl::OkStatus();
}

absl::Status DeadlinePassed(const MemoryCall& call) {
  return absl::DeadlineExceededError(absl::StrCat(call.verb, " ", call.resource.ToString(), " ",
                                                  call.namespace_name, "/", call.name,
                                                  ": no answer in time"));
}

}  // namespace

// One watch: what it selects and how far it has come. Registered for waking while it lives.
class MemoryApi::Watcher {
 public:
  Watcher(MemoryApi& api, memory::Selection selection, WatchOptions options, int64_t version,
          std::function<void(WatchEvent)> on_event)
      : selection(std::move(selection)),
        options(std::move(options)),
        version(version),
        on_event(std::move(on_event)),
        api_(api) {
    host::MutexLock lock(&api_.mutex_);
    place_ = api_.watchers_.insert(api_.watchers_.end(), wake);
    cuts = api_.cuts_;
  }
  ~Watcher() {
    host::MutexLock lock(&api_.mutex_);
    api_.watchers_.erase(place_);
  }
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  // What this watcher is told of a change: an object that starts or stops to match is added or
  // deleted for it, whatever happened in truth.
  std::optional<WatchEvent> EventOf(const MemoryStore::Change& change) const {
    const bool matches =
        change.type != WatchEventType::kDeleted && selection.Matches(*change.object);
    const bool matched = change.previous != nullptr && selection.Matches(*change.previous);
    if (!matches && !matched) return std::nullopt;
    WatchEvent event{.type = WatchEventType::kModified};
    if (!matched) event.type = WatchEventType::kAdded;
    if (!matches) event.type = WatchEventType::kDeleted;
    json::object object = matches ? *change.object : *change.previous;
    if (!matches) object["metadata"].as_object()["resourceVersion"] = absl::StrCat(change.version);
    event.object = options.metadata_only ? memory::MetadataOnly(object) : std::move(object);
    return event;
  }

  const host::Event wake;
  const memory::Selection selection;
  const WatchOptions options;
  int64_t version;
  uint64_t cuts = 0;
  const std::function<void(WatchEvent)> on_event;

 private:
  MemoryApi& api_;
  std::list<host::Event>::iterator place_;
};

MemoryApi::MemoryApi(host::Clock& clock, Options options)
    : clock_(clock), options_(std::move(options)), store_(options_.store) {}

Task<absl::Status> MemoryApi::Apply(FaultInjector::Fault fault, Deadline deadline) {
  if (fault.delay > absl::ZeroDuration()) {
    co_await clock_.SleepUntil(std::min(clock_.SteadyNow() + fault.delay, deadline.time()));
  }
  co_return fault.error;
}

template <typename Result>
Task<Result> MemoryApi::Run(MemoryCall call, std::function<Result(MemoryStore&)> operation,
                            Deadline deadline) {
  co_await NextTurn();
  if (options_.faults != nullptr) {
    FaultInjector::Fault fault = options_.faults->BeforeCall(call);
    CO_RETURN_IF_ERROR(co_await Apply(std::move(fault), deadline));
  }
  if (deadline.Expired(clock_)) co_return DeadlinePassed(call);
  std::optional<Result> result;
  {
    host::MutexLock lock(&mutex_);
    result = operation(store_);
    if (call.IsWrite() && options_.collect_garbage) store_.CollectGarbage(clock_.WallNow());
  }
  if (call.IsWrite()) WakeWatchers();
  if (options_.faults != nullptr) {
    FaultInjector::Fault fault = options_.faults->AfterCall(call, StatusOf(*result));
    CO_RETURN_IF_ERROR(co_await Apply(std::move(fault), deadline));
    if (deadline.Expired(clock_)) co_return DeadlinePassed(call);
  }
  co_await NextTurn();
  co_return *std::move(result);
}

Task<ValueOr> MemoryApi::Get(Resource resource, std::string namespace_name, std::string name,
                             std::string subresource, Deadline deadline) {
  MemoryCall call{"get", resource, namespace_name, name, subresource};
  std::function<ValueOr(MemoryStore&)> operation = [call](MemoryStore& store) {
    return store.Get(call.resource, call.namespace_name, call.name, call.subresource);
  };
  co_return co_await Run<ValueOr>(std::move(call), std::move(operation), deadline);
}

Task<ValueOr> MemoryApi::GetMetadata(Resource resource, std::string namespace_name,
                                     std::string name, Deadline deadline) {
  MemoryCall call{"get", resource, namespace_name, name, ""};
  std::function<ValueOr(MemoryStore&)> operation = [call](MemoryStore& store) {
    return store.GetMetadata(call.resource, call.namespace_name, call.name);
  };
  co_return co_await Run<ValueOr>(std::move(call), std::move(operation), deadline);
}

Task<ValueOr> MemoryApi::Discover(std::string group, std::string version, Deadline deadline) {
  MemoryCall call{"get", {group, version, "*", false}, "", "", ""};
  std::function<ValueOr(MemoryStore&)> operation = [call](MemoryStore& store) {
    return store.Discover(call.resource.group, call.resource.version);
  };
  co_return co_await Run<ValueOr>(std::move(call), std::move(operation), deadline);
}

Task<absl::StatusOr<ObjectList>> MemoryApi::List(Resource resource, std::string namespace_name,
                                                 ListOptions options, Deadline deadline) {
  MemoryCall call{"list", resource, namespace_name, "", ""};
  std::function<absl::StatusOr<ObjectList>(MemoryStore&)> operation =
      [call, options = std::move(options)](MemoryStore& store) {
        return store.List(call.resource, call.namespace_name, options);
      };
  co_return co_await Run<absl::StatusOr<ObjectList>>(std::move(call), std::move(operation),
                                                     deadline);
}

Task<ValueOr> MemoryApi::Create(Resource resource, std::string namespace_name, json::value object,
                                WriteOptions options, Deadline deadline) {
  CO_RETURN_IF_ERROR(CheckWrite(options));
  MemoryCall call{"create", resource, namespace_name, "", options.subresource};
  std::function<ValueOr(MemoryStore&)> operation =
      [this, call, object = std::move(object)](MemoryStore& store) {
        return store.Create(call.resource, call.namespace_name, object, call.subresource,
                            clock_.WallNow());
      };
  co_return co_await Run<ValueOr>(std::move(call), std::move(operation), deadline);
}

Task<ValueOr> MemoryApi::Update(Resource resource, std::string namespace_name, std::string name,
                                json::value object, WriteOptions options, Deadline deadline) {
  CO_RETURN_IF_ERROR(CheckWrite(options));
  MemoryCall call{"update", resource, namespace_name, name, options.subresource};
  std::function<ValueOr(MemoryStore&)> operation = [call, object = std::move(object)](
                                                       MemoryStore& store) {
    return store.Update(call.resource, call.namespace_name, call.name, object, call.subresource);
  };
  co_return co_await Run<ValueOr>(std::move(call), std::move(operation), deadline);
}

Task<ValueOr> MemoryApi::Patch(Resource resource, std::string namespace_name, std::string name,
                               PatchType type, json::value patch, WriteOptions options,
                               Deadline deadline) {
  CO_RETURN_IF_ERROR(CheckWrite(options));
  if (type != PatchType::kMerge) {
    co_return memory::NotModelled(type == PatchType::kJson ? "JSON patch" : "server-side apply");
  }
  MemoryCall call{"patch", resource, namespace_name, name, options.subresource};
  std::function<ValueOr(MemoryStore&)> operation = [call,
                                                    patch = std::move(patch)](MemoryStore& store) {
    return store.MergePatch(call.resource, call.namespace_name, call.name, patch, call.subresource);
  };
  co_return co_await Run<ValueOr>(std::move(call), std::move(operation), deadline);
}

Task<absl::Status> MemoryApi::Delete(Resource resource, std::string namespace_name,
                                     std::string name, DeleteOptions options, Deadline deadline) {
  MemoryCall call{"delete", resource, namespace_name, name, ""};
  std::function<absl::Status(MemoryStore&)> operation = [this, call, options = std::move(options)](
                                                            MemoryStore& store) {
    return store.Delete(call.resource, call.namespace_name, call.name, options, clock_.WallNow());
  };
  co_return co_await Run<absl::Status>(std::move(call), std::move(operation), deadline);
}

Task<absl::Status> MemoryApi::Watch(Resource resource, std::string namespace_name,
                                    WatchOptions options, std::function<void(WatchEvent)> on_event,
                                    Deadline stop) {
  const MemoryCall call{"watch", resource, namespace_name, "", ""};
  co_await NextTurn();
  if (options_.faults != nullptr) {
    FaultInjector::Fault fault = options_.faults->BeforeCall(call);
    CO_RETURN_IF_ERROR(co_await Apply(std::move(fault), stop));
  }
  int64_t version = 0;
  if (!absl::SimpleAtoi(options.resource_version, &version) || version <= 0 ||
      version > resource_version()) {
    co_return memory::NotModelled(
        absl::StrCat("a watch from resourceVersion \"", options.resource_version, "\""));
  }
  CO_ASSIGN_OR_RETURN(
      memory::Selection selection,
      memory::Selection::Parse(namespace_name, options.label_selector, options.field_selector));
  Watcher watcher(*this, std::move(selection), std::move(options), version, std::move(on_event));

  const std::stop_callback on_cancel(watcher.options.cancel,
                                     [wake = watcher.wake] { wake.Notify(); });

  host::SteadyTime next_bookmark = clock_.SteadyNow() + options_.bookmark_period;
  while (true) {
    const absl::Status delivered = co_await DeliverChanges(call, watcher, stop);
    if (!delivered.ok() || stop.Expired(clock_) || watcher.options.cancel.stop_requested()) {
      co_return absl::IsCancelled(delivered) ? absl::OkStatus() : delivered;
    }
    if (clock_.SteadyNow() >= next_bookmark) {
      next_bookmark = clock_.SteadyNow() + options_.bookmark_period;
      json::object metadata{{"resourceVersion", absl::StrCat(watcher.version)}};
      watcher.on_event({.type = WatchEventType::kBookmark,
                        .object = json::object{{"metadata", std::move(metadata)}}});
    }
    co_await watcher.wake.WaitUntil(clock_, std::min(stop.time(), next_bookmark));
  }
}

// OK: all that has happened was delivered. CANCELLED: the server closes the watch. Else how it
// ends.
Task<absl::Status> MemoryApi::DeliverChanges(const MemoryCall& call, Watcher& watcher,
                                             Deadline stop) {
  absl::StatusOr<std::vector<MemoryStore::Change>> changes;
  int64_t latest = 0;
  bool cut = false;
  {
    host::MutexLock lock(&mutex_);
    changes = store_.ChangesSince(call.resource, watcher.version);
    latest = store_.version();
    cut = cuts_ != watcher.cuts;
  }
  if (cut) co_return absl::UnavailableError("watch: the API server closed the connection");
  CO_RETURN_IF_ERROR(changes.status());
  for (const MemoryStore::Change& change : *changes) {
    std::optional<WatchEvent> event = watcher.EventOf(change);
    if (event.has_value()) {
      FaultInjector::WatchFault fault;
      if (options_.faults != nullptr) fault = options_.faults->BeforeEvent(call, *event);
      if (fault.end.has_value()) {
        co_return fault.end->ok() ? absl::CancelledError("closed") : *fault.end;
      }
      if (fault.lag > absl::ZeroDuration()) {
        co_await clock_.SleepUntil(std::min(clock_.SteadyNow() + fault.lag, stop.time()));
      } else {
        co_await NextTurn();
      }
      if (stop.Expired(clock_) || watcher.options.cancel.stop_requested()) {
        co_return absl::OkStatus();
      }
      event->received_at = clock_.SteadyNow();
      watcher.on_event(*std::move(event));
    }
    watcher.version = change.version;
  }
  watcher.version = latest;
  co_return absl::OkStatus();
}

void MemoryApi::WakeWatchers() {
  std::vector<host::Event> watchers;
  {
    host::MutexLock lock(&mutex_);
    watchers.assign(watchers_.begin(), watchers_.end());
  }
  for (const host::Event& watcher : watchers) watcher.Notify();
}

void MemoryApi::CutWatches() {
  {
    host::MutexLock lock(&mutex_);
    ++cuts_;
  }
  WakeWatchers();
}

void MemoryApi::Compact() {
  host::MutexLock lock(&mutex_);
  store_.Compact();
}

size_t MemoryApi::CollectGarbage() {
  size_t collected = 0;
  {
    host::MutexLock lock(&mutex_);
    collected = store_.CollectGarbage(clock_.WallNow());
  }
  WakeWatchers();
  return collected;
}

int64_t MemoryApi::resource_version() const {
  host::MutexLock lock(&mutex_);
  return store_.version();
}

std::vector<json::value> MemoryApi::Objects(const Resource& resource) const {
  host::MutexLock lock(&mutex_);
  absl::StatusOr<ObjectList> list = store_.List(resource, "", {.limit = 0});
  return list.ok() ? std::move(list->items) : std::vector<json::value>();
}

}  // namespace outrigger::controller::kube
