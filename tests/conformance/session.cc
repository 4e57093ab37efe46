// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/session.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_replace.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <cstdio>
#include <cstdlib>

#include "operator/kube/memory_object.h"

namespace outrigger::conformance {
namespace {

namespace json = boost::json;
namespace kube = controller::kube;
using kube::memory::MetaString;
using Verb = Operation::Verb;

constexpr char kSentinel[] = "zz-end";

const char* Name(kube::WatchEventType type) {
  switch (type) {
    case kube::WatchEventType::kAdded:
      return "ADDED";
    case kube::WatchEventType::kModified:
      return "MODIFIED";
    case kube::WatchEventType::kDeleted:
      return "DELETED";
    case kube::WatchEventType::kBookmark:
      return "BOOKMARK";
  }
  return "";
}

}  // namespace

Session::Session(Server& server, std::string namespace_name, std::vector<Kind> kinds)
    : server_(server), namespace_(std::move(namespace_name)), kinds_(std::move(kinds)) {
  const absl::Status created = server_.CreateNamespace(namespace_);
  if (!created.ok()) {
    std::fprintf(stderr, "namespace %s: %s\n", namespace_.c_str(), created.ToString().c_str());
    std::abort();
  }
  for (Kind kind : kinds_) {
    StartWatch(kind, "");
    StartWatch(kind, "team=x");
  }
}

Session::~Session() {
  cancel_.request_stop();
  server_.Until([this] {
    return std::all_of(watches_.begin(), watches_.end(),
                       [](const Watch& watch) { return watch.end.has_value(); });
  });
}

template <typename T>
T Session::Await(host::Task<T> task) {
  std::optional<T> result;
  auto wait = [](host::Task<T> inner, std::optional<T>& out) -> host::Task<void> {
    T value = co_await std::move(inner);
    out.emplace(std::move(value));
  };
  server_.Spawn(wait(std::move(task), result));
  if (!server_.Until([&] { return result.has_value(); })) {
    std::fprintf(stderr, "a call did not end\n");
    std::abort();
  }
  return *std::move(result);
}

host::Deadline Session::Soon() { return host::Deadline::After(server_.clock(), absl::Seconds(10)); }

void Session::StartWatch(Kind kind, std::string label_selector) {
  const auto list = Await(server_.api().List(ResourceOf(kind), namespace_, {}, Soon()));
  if (!list.ok()) {
    std::fprintf(stderr, "list before a watch: %s\n", list.status().ToString().c_str());
    std::abort();
  }
  Watch& watch = watches_.emplace_back();
  watch.kind = kind;
  watch.label_selector = std::move(label_selector);
  server_.Spawn(RunWatch(watch, list->resource_version));
}

host::Task<void> Session::RunWatch(Watch& watch, std::string resource_version) {
  kube::WatchOptions options{.label_selector = watch.label_selector,
                             .resource_version = std::move(resource_version),
                             .cancel = cancel_.get_token()};
  std::function<void(kube::WatchEvent)> on_event = [&watch](kube::WatchEvent event) {
    if (event.type != kube::WatchEventType::kBookmark) watch.events.push_back(std::move(event));
  };
  watch.end = co_await server_.api().Watch(ResourceOf(watch.kind), namespace_, std::move(options),
                                           std::move(on_event), host::Deadline::Never());
}

std::string Session::UidOf(Kind kind, const std::string& name) const {
  const auto seen = last_seen_.find({kind, name});
  return seen == last_seen_.end() ? "" : MetaString(seen->second.get_object(), "uid");
}

std::string Session::Resolve(const Operation& operation, const std::string& text) const {
  const Key key{operation.kind, operation.name};
  const auto seen = last_seen_.find(key);
  const auto versions = versions_.find(key);
  const bool known = versions != versions_.end();
  const std::string uid =
      seen == last_seen_.end() ? "nobody" : MetaString(seen->second.get_object(), "uid");
  // Older than any object: a version that is none of this one's.
  const std::string now = known ? versions->second.back() : "1";
  const std::string before =
      known && versions->second.size() > 1 ? versions->second[versions->second.size() - 2] : "1";
  return absl::StrReplaceAll(text, {{"$UID", uid}, {"$RV", now}, {"$OLDRV", before}});
}

void Session::Remember(const Operation& operation, const json::value& object) {
  if (!object.is_object() || object.get_object().contains("items")) return;
  const std::string version = MetaString(object.get_object(), "resourceVersion");
  if (version.empty()) return;
  const Key key{operation.kind, MetaString(object.get_object(), "name")};
  std::vector<std::string>& versions = versions_[key];
  if (versions.empty() || versions.back() != version) versions.push_back(version);
  const bool whole = operation.subresource != "scale" && operation.verb != Verb::kGetMetadata;
  if (whole) last_seen_[key] = object;
}

absl::StatusOr<json::value> Session::List(const Operation& operation) {
  kube::ListOptions options{.label_selector = operation.label_selector};
  if (operation.limit > 0) options.limit = operation.limit;
  if (operation.verb == Verb::kContinue) {
    options.continue_token = continue_tokens_[operation.kind];
  }
  auto list =
      Await(server_.api().List(ResourceOf(operation.kind), namespace_, std::move(options), Soon()));
  if (!list.ok()) return list.status();
  continue_tokens_[operation.kind] = list->continue_token;
  json::array items;
  for (json::value& item : list->items) items.push_back(normaliser_.Object(std::move(item)));
  return json::object{{"items", std::move(items)}, {"more", !list->continue_token.empty()}};
}

absl::StatusOr<json::value> Session::Call(const Operation& operation) {
  kube::Api& api = server_.api();
  const kube::Resource& resource = ResourceOf(operation.kind);
  json::value body = json::parse(Resolve(operation, operation.body));
  kube::WriteOptions options{.subresource = operation.subresource};
  switch (operation.verb) {
    case Verb::kGet:
      return Await(api.Get(resource, namespace_, operation.name, operation.subresource, Soon()));
    case Verb::kGetMetadata:
      return Await(api.GetMetadata(resource, namespace_, operation.name, Soon()));
    case Verb::kList:
    case Verb::kContinue:
      return List(operation);
    case Verb::kCreate: {
      json::value object = Sample(operation.kind, operation.name);
      kube::memory::MergePatch(object, body);
      return Await(api.Create(resource, namespace_, std::move(object), options, Soon()));
    }
    case Verb::kUpdate: {
      const auto seen = last_seen_.find({operation.kind, operation.name});
      json::value object =
          seen == last_seen_.end() ? Sample(operation.kind, operation.name) : seen->second;
      kube::memory::MergePatch(object, body);
      return Await(
          api.Update(resource, namespace_, operation.name, std::move(object), options, Soon()));
    }
    case Verb::kPatch:
      return Await(api.Patch(resource, namespace_, operation.name, kube::PatchType::kMerge,
                             std::move(body), options, Soon()));
    case Verb::kDelete: {
      kube::DeleteOptions preconditions{
          .uid = Resolve(operation, operation.uid),
          .resource_version = Resolve(operation, operation.resource_version)};
      absl::Status deleted =
          Await(api.Delete(resource, namespace_, operation.name, std::move(preconditions), Soon()));
      if (!deleted.ok()) return deleted;
      return json::value(nullptr);
    }
  }
  return absl::InternalError("no such verb");
}

Outcome Session::OutcomeOf(const absl::Status& status) {
  const std::optional<kube::ApiError> error = kube::GetApiError(status);
  return {.code = error.has_value() ? absl::StrCat(error->http_code, " ", error->reason)
                                    : absl::StatusCodeToString(status.code()),
          .message =
              normaliser_.Text(error.has_value() ? error->message : std::string(status.message())),
          .body = nullptr};
}

Outcome Session::Run(const Operation& operation) {
  const absl::StatusOr<json::value> answer = Call(operation);
  if (!answer.ok()) return OutcomeOf(answer.status());
  Remember(operation, *answer);
  return {.code = "OK", .message = "", .body = normaliser_.Object(*answer)};
}

Outcome Session::WatchFromTheBeginning(Kind kind) {
  Watch& watch = watches_.emplace_back();
  watch.kind = kind;
  server_.Spawn(RunWatch(watch, "1"));
  const bool ended = server_.Until([&] { return watch.end.has_value(); });
  return ended ? OutcomeOf(*watch.end) : Outcome{.code = "no end", .message = "", .body = nullptr};
}

Session::Events Session::Finish() {
  for (Kind kind : kinds_) {
    const absl::StatusOr<json::value> created =
        Call({.verb = Verb::kCreate, .kind = kind, .name = kSentinel});
    if (!created.ok()) {
      return {{"sentinel", {created.status().ToString()}}};
    }
  }
  server_.Until([this] {
    return std::all_of(watches_.begin(), watches_.end(), [](const Watch& watch) {
      return watch.end.has_value() ||
             (!watch.events.empty() &&
              MetaString(watch.events.back().object.get_object(), "name") == kSentinel);
    });
  });
  Events events;
  for (const Watch& watch : watches_) {
    const std::string prefix =
        absl::StrCat(ResourceOf(watch.kind).ToString(), " ", watch.label_selector, " ");
    if (watch.end.has_value()) events[prefix + "ended"] = {watch.end->ToString()};
    // By object, so that versions get their symbols in an order that both servers have in common.
    std::map<std::string, std::vector<const kube::WatchEvent*>> by_object;
    for (const kube::WatchEvent& event : watch.events) {
      by_object[MetaString(event.object.get_object(), "name")].push_back(&event);
    }
    for (const auto& [name, list] : by_object) {
      for (const kube::WatchEvent* event : list) {
        events[prefix + name].push_back(
            absl::StrCat(Name(event->type), " ", SortedText(normaliser_.Object(event->object))));
      }
    }
  }
  return events;
}

}  // namespace outrigger::conformance
