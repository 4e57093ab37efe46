// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/reflector.h"

#include <algorithm>
#include <boost/json/object.hpp>
#include <optional>
#include <utility>

#include "host/base/status.h"

namespace outrigger::controller::kube {
namespace {

// A server that ends each watch at once would be asked without a pause.
constexpr absl::Duration kShortestGoodWatch = absl::Seconds(1);

std::string Text(const boost::json::object& object, const char* key) {
  const boost::json::value* member = object.if_contains(key);
  const boost::json::string* text = member == nullptr ? nullptr : member->if_string();
  return text == nullptr ? "" : std::string(*text);
}

}  // namespace

ObjectIdentity IdentityOf(const boost::json::value& object) {
  const boost::json::object* root = object.if_object();
  const boost::json::value* metadata = root == nullptr ? nullptr : root->if_contains("metadata");
  const boost::json::object* fields = metadata == nullptr ? nullptr : metadata->if_object();
  if (fields == nullptr) return {};
  return {.key = {.namespace_name = Text(*fields, "namespace"), .name = Text(*fields, "name")},
          .uid = Text(*fields, "uid"),
          .resource_version = Text(*fields, "resourceVersion")};
}

Reflector::Reflector(host::Clock& clock, Api& api, host::Random random, const host::Logger& log,
                     Options options, Sink& sink)
    : clock_(clock),
      api_(api),
      random_(random),
      log_(log.With(
          {{"resource", options.resource.ToString()}, {"namespace", options.namespace_name}})),
      options_(std::move(options)),
      sink_(sink),
      backoff_(options_.first_backoff) {}

void Reflector::Stop() {
  stop_.request_stop();
  wake_.NotifyAll();
}

host::Task<void> Reflector::Run() {
  while (!stopped()) {
    const bool list = version_.empty();
    absl::Status status;
    if (list) {
      status = co_await ListAll();
    } else {
      status = co_await WatchOnce();
    }
    if (stopped()) break;
    Judge(status);
    const bool go_on = list ? status.ok() : watch_worked_ && (status.ok() || version_.empty());
    if (!go_on) co_await BackOff(std::move(status));
  }
}

// What the end of a list or watch means for the next step.
void Reflector::Judge(const absl::Status& status) {
  last_error_ = status;
  if (watch_worked_) backoff_ = options_.first_backoff;
  if (status.ok()) return;
  if (absl::IsOutOfRange(status)) {  // the way of things after a long silence, no fault
    version_.clear();
    return;
  }
  ++counts_.errors;
}

host::Task<absl::Status> Reflector::ListAll() {
  watch_worked_ = false;
  ListOptions options = {.label_selector = options_.label_selector,
                         .field_selector = options_.field_selector,
                         .metadata_only = options_.metadata_only,
                         .limit = options_.page_size};
  sink_.OnListBegin();
  std::string version;
  do {
    absl::StatusOr<ObjectList> page =
        co_await api_.List(options_.resource, options_.namespace_name, options,
                           host::Deadline::After(clock_, options_.page_timeout));
    if (stopped()) co_return absl::CancelledError("stopped");
    CO_RETURN_IF_ERROR(page.status());
    for (const boost::json::value& object : page->items) sink_.OnObject(object);
    version = std::move(page->resource_version);
    options.continue_token = std::move(page->continue_token);
  } while (!options.continue_token.empty());
  version_ = std::move(version);
  ++counts_.lists;
  sink_.OnListEnd();
  co_return absl::OkStatus();
}

host::Task<absl::Status> Reflector::WatchOnce() {
  const absl::Duration spread = options_.longest_watch - options_.shortest_watch;
  const absl::Duration life = options_.shortest_watch + spread * random_.Fraction();
  const host::SteadyTime started = clock_.SteadyNow();
  const int64_t events_before = counts_.events;
  ++counts_.watches;
  WatchOptions options = {.label_selector = options_.label_selector,
                          .field_selector = options_.field_selector,
                          .metadata_only = options_.metadata_only,
                          .resource_version = version_,
                          .cancel = stop_.get_token()};
  std::function<void(WatchEvent)> on_event = [this](const WatchEvent& event) { OnEvent(event); };
  absl::Status status =
      co_await api_.Watch(options_.resource, options_.namespace_name, std::move(options),
                          std::move(on_event), host::Deadline::After(clock_, life));
  watch_worked_ = counts_.events > events_before ||
                  (status.ok() && clock_.SteadyNow() - started >= kShortestGoodWatch);
  co_return status;
}

void Reflector::OnEvent(const WatchEvent& event) {
  if (stopped()) return;
  ++counts_.events;
  version_ = IdentityOf(event.object).resource_version;
  switch (event.type) {
    case WatchEventType::kAdded:
    case WatchEventType::kModified:
      sink_.OnObject(event.object);
      break;
    case WatchEventType::kDeleted:
      sink_.OnDeleted(event.object);
      break;
    case WatchEventType::kBookmark:
      return;
  }
  if (options_.on_event_taken) options_.on_event_taken(clock_.SteadyNow() - event.received_at);
}

host::Task<void> Reflector::BackOff(absl::Status status) {
  absl::Duration wait = random_.Jitter(backoff_);
  const std::optional<ApiError> error = GetApiError(status);
  if (error && error->retry_after) {
    wait = std::min(std::max(wait, *error->retry_after), options_.longest_backoff);
  }
  backoff_ = std::min(2 * backoff_, options_.longest_backoff);
  if (!status.ok()) {
    log_.Warning("cannot read from the API server; trying again",
                 {{"error", host::Describe(status)}, {"after", absl::FormatDuration(wait)}});
  }
  const host::SteadyTime until = clock_.SteadyNow() + wait;
  while (!stopped() && clock_.SteadyNow() < until) co_await wake_.WaitUntil(clock_, until);
}

}  // namespace outrigger::controller::kube
