// SPDX-License-Identifier: Apache-2.0
#include "operator/runtime/status_writer.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

#include "host/base/status.h"

namespace outrigger::controller::runtime {
namespace {

using api::NamespacedName;
namespace json = boost::json;

// RFC 7386: what turns `from` into `to`. Empty: nothing differs.
json::object MergePatch(const json::object& from, const json::object& to) {
  json::object patch;
  for (const auto& [key, wanted] : to) {
    const json::value* found = from.if_contains(key);
    if (found != nullptr && *found == wanted) continue;
    if (found != nullptr && found->is_object() && wanted.is_object()) {
      patch[key] = MergePatch(found->get_object(), wanted.get_object());
    } else {
      patch[key] = wanted;
    }
  }
  for (const auto& [key, found] : from) {
    if (!to.contains(key)) patch[key] = nullptr;
  }
  return patch;
}

// resourceVersions of one resource are numbers that grow; a text that is no number is taken as new.
bool IsNewer(const std::string& version, const std::string& than) {
  uint64_t a = 0;
  uint64_t b = 0;
  if (!absl::SimpleAtoi(version, &a) || !absl::SimpleAtoi(than, &b)) return version != than;
  return a > b;
}

constexpr char kConditionPrefix[] = "conditions[].";

}  // namespace

StatusWriter::StatusWriter(host::Clock& clock, kube::Api& api, WriteGate& gate,
                           host::Executor strand, host::Logger log, Options options,
                           Observer observer)
    : clock_(clock),
      api_(api),
      gate_(gate),
      writes_(clock, std::move(strand)),
      log_(std::move(log)),
      options_(options),
      observer_(std::move(observer)) {}

StatusWriter::EntryPtr StatusWriter::Find(const NamespacedName& key) const {
  auto it = objects_.find(key);
  return it == objects_.end() ? nullptr : it->second;
}

json::object StatusWriter::ToJson(const api::ScaledObjectStatus& status) const {
  json::object object = api::StatusToJson(status);
  for (const std::string& path : pruned_) {
    if (!path.starts_with(kConditionPrefix)) {
      object.stable_erase(path);  // Print() compares texts: the order stays
      continue;
    }
    json::value* conditions = object.if_contains("conditions");
    if (conditions == nullptr) continue;
    for (json::value& condition : conditions->get_array()) {
      condition.get_object().stable_erase(path.substr(sizeof(kConditionPrefix) - 1));
    }
  }
  return object;
}

std::string StatusWriter::Print(const api::ScaledObjectStatus& status) const {
  return json::serialize(ToJson(status));
}

bool StatusWriter::Differs(const Entry& entry) const {
  return entry.cluster && Print(entry.wanted) != *entry.cluster;
}

void StatusWriter::Adopt(const api::ScaledObject& object) {
  EntryPtr entry = Find(object.Key());
  if (entry != nullptr && entry->uid == object.meta.uid) {
    if (!IsNewer(object.meta.resource_version, entry->resource_version)) return;
    entry->seen = {.version = object.meta.resource_version, .cluster = Print(object.status)};
    // While a patch is on its way this may be its own echo or older than its answer: judged then.
    if (entry->writing && !entry->pausing) return;
    TakeSeen(*entry);
    if (Differs(*entry)) StartWriting(entry);  // somebody else changed what is ours
    return;
  }
  Forget(object.Key());
  entry = std::make_shared<Entry>();
  entry->key = object.Key();
  entry->uid = object.meta.uid;
  entry->resource_version = object.meta.resource_version;
  entry->wanted = object.status;
  objects_[object.Key()] = std::move(entry);
}

void StatusWriter::TakeSeen(Entry& entry) {
  if (entry.seen && IsNewer(entry.seen->version, entry.resource_version)) {
    entry.resource_version = std::move(entry.seen->version);
    SetCluster(entry, std::move(entry.seen->cluster));
  }
  entry.seen.reset();
}

void StatusWriter::SetCluster(Entry& entry, std::string printed) const {
  entry.cluster.reset();
  if (printed != Print(entry.wanted)) entry.cluster = std::move(printed);
}

void StatusWriter::Forget(const NamespacedName& key) {
  EntryPtr entry = Find(key);
  if (entry == nullptr) return;
  entry->forgotten = true;
  entry->written.NotifyAll();
  objects_.erase(key);
}

void StatusWriter::Clear() {
  while (!objects_.empty()) Forget(NamespacedName(objects_.begin()->first));
}

const api::ScaledObjectStatus* StatusWriter::Wanted(const NamespacedName& key) const {
  const EntryPtr entry = Find(key);
  return entry == nullptr ? nullptr : &entry->wanted;
}

void StatusWriter::Update(const NamespacedName& key,
                          const std::function<void(api::ScaledObjectStatus&)>& change) {
  EntryPtr entry = Find(key);
  if (entry == nullptr) return;
  // Each poll of each object comes here, and nearly none changes anything.
  const api::ScaledObjectStatus before = entry->wanted;
  change(entry->wanted);
  const bool changed = entry->wanted != before;
  if (changed && !entry->cluster) entry->cluster = Print(before);
  if (entry->writing || (!changed && !entry->unwritten)) return;
  if (Differs(*entry)) StartWriting(entry);
}

void StatusWriter::StartWriting(const EntryPtr& entry) {
  if (entry->writing) return;
  entry->writing = true;
  entry->pausing = entry->next_write > clock_.SteadyNow();
  entry->last_error = absl::OkStatus();
  writes_.Spawn(WriteLoop(entry));
}

host::Task<absl::Status> StatusWriter::Flush(NamespacedName key, host::Deadline deadline) {
  EntryPtr entry = Find(key);
  if (entry == nullptr)
    co_return absl::NotFoundError(absl::StrCat("ScaledObject ", key.ToString(), ": is gone"));
  if (!entry->writing && !Differs(*entry)) co_return absl::OkStatus();
  StartWriting(entry);
  ++entry->flushes;
  while (entry->writing && !entry->pausing && !entry->forgotten && !deadline.Expired(clock_)) {
    co_await entry->written.WaitUntil(clock_, deadline.time());
  }
  --entry->flushes;
  if (entry->forgotten)
    co_return absl::NotFoundError(absl::StrCat("ScaledObject ", key.ToString(), ": is gone"));
  if (entry->pausing) co_return absl::OkStatus();
  if (entry->writing) {
    co_return absl::DeadlineExceededError(
        absl::StrCat("ScaledObject ", key.ToString(), ": status write waits still"));
  }
  co_return entry->last_error;
}

// One loop per object at most: writes until nothing differs, or a write failed. NOT_FOUND, deleted
// meanwhile, ends it too: the informer will say so.
host::Task<void> StatusWriter::WriteLoop(EntryPtr entry) {
  while (!entry->forgotten && Differs(*entry)) {
    if (entry->next_write > clock_.SteadyNow()) {
      entry->pausing = true;
      entry->written.NotifyAll();
      co_await clock_.SleepUntil(entry->next_write);
      entry->pausing = false;
      continue;  // much may have changed
    }
    entry->next_write = clock_.SteadyNow() + options_.shortest_interval;
    entry->last_error = co_await Write(entry);
    TakeSeen(*entry);
    if (!entry->last_error.ok()) break;
  }
  if (!Differs(*entry)) entry->cluster.reset();
  entry->unwritten = !entry->last_error.ok();
  entry->writing = false;
  entry->pausing = false;
  entry->written.NotifyAll();
  const bool unheard = entry->flushes == 0 && !entry->forgotten;
  if (!entry->last_error.ok() && !absl::IsNotFound(entry->last_error) && unheard &&
      observer_.on_failed) {
    observer_.on_failed(entry->key);
  }
}

host::Task<absl::Status> StatusWriter::Write(EntryPtr entry) {
  while (learning_) co_await learned_.Wait(clock_);
  if (knows_crd_) co_return co_await WriteWithRetries(std::move(entry));
  learning_ = true;
  absl::Status status = co_await WriteWithRetries(std::move(entry));
  learning_ = false;
  learned_.NotifyAll();
  co_return status;
}

host::Task<absl::Status> StatusWriter::WriteWithRetries(EntryPtr entry) {
  WriteGate::Permit permit = co_await gate_.Acquire(WriteLane::kStatus);
  const host::SteadyTime start = clock_.SteadyNow();
  const host::Deadline deadline = host::Deadline::After(clock_, options_.write_timeout);
  absl::Status status;
  for (int attempt = 0; attempt <= options_.conflict_retries; ++attempt) {
    if (entry->forgotten || !Differs(*entry)) co_return absl::OkStatus();
    status = co_await PatchOnce(entry, deadline);
    if (!absl::IsAborted(status)) break;
    if (observer_.on_conflict) observer_.on_conflict();
    const absl::Status read = co_await ReadAgain(entry, deadline);
    if (!read.ok()) {
      status = read;
      break;
    }
  }
  if (status.ok() && observer_.on_written) observer_.on_written(clock_.SteadyNow() - start);
  co_return host::Annotate(status, "ScaledObject ", entry->key.ToString(), " status");
}

host::Task<absl::Status> StatusWriter::PatchOnce(EntryPtr entry, host::Deadline deadline) {
  const json::object wanted = ToJson(entry->wanted);
  json::object metadata;
  metadata["uid"] = entry->uid;
  metadata["resourceVersion"] = entry->resource_version;
  json::object patch;
  patch["metadata"] = std::move(metadata);
  const json::value cluster = json::parse(*entry->cluster);
  patch["status"] = MergePatch(cluster.get_object(), wanted);
  kube::WriteOptions options;
  options.subresource = "status";
  absl::StatusOr<json::value> answer =
      co_await api_.Patch(kube::ScaledObjects(), entry->key.namespace_name, entry->key.name,
                          kube::PatchType::kMerge, std::move(patch), std::move(options), deadline);
  if (!answer.ok()) co_return answer.status();
  FindPruned(*entry, wanted, *answer);
  co_return Learn(*entry, *answer);
}

host::Task<absl::Status> StatusWriter::ReadAgain(EntryPtr entry, host::Deadline deadline) {
  absl::StatusOr<json::value> object = co_await api_.Get(
      kube::ScaledObjects(), entry->key.namespace_name, entry->key.name, "", deadline);
  if (!object.ok()) co_return object.status();
  co_return Learn(*entry, *object);
}

absl::Status StatusWriter::Learn(Entry& entry, const json::value& object) {
  absl::StatusOr<api::ScaledObject> parsed = api::ParseScaledObject(object);
  if (!parsed.ok()) return parsed.status();
  if (parsed->meta.uid != entry.uid) return absl::NotFoundError("was deleted and made again");
  entry.resource_version = parsed->meta.resource_version;
  SetCluster(entry, Print(parsed->status));
  return absl::OkStatus();
}

void StatusWriter::FindPruned(const Entry& entry, const json::object& sent,
                              const json::value& answer) {
  knows_crd_ = true;
  const json::value* status =
      answer.is_object() ? answer.get_object().if_contains("status") : nullptr;
  if (status == nullptr || !status->is_object()) return;
  std::set<std::string> found;
  for (const auto& [key, value] : sent) {
    if (!status->get_object().contains(key)) found.insert(std::string(key));
  }
  const json::value* kept = status->get_object().if_contains("conditions");
  const json::value* given = sent.if_contains("conditions");
  if (kept != nullptr && given != nullptr && kept->is_array()) {
    const json::array& kept_list = kept->get_array();
    const json::array& given_list = given->get_array();
    for (size_t i = 0; i < std::min(kept_list.size(), given_list.size()); ++i) {
      if (!kept_list[i].is_object()) continue;
      for (const auto& [key, value] : given_list[i].get_object()) {
        if (!kept_list[i].get_object().contains(key))
          found.insert(absl::StrCat(kConditionPrefix, std::string(key)));
      }
    }
  }
  for (const std::string& path : found) {
    if (!pruned_.insert(path).second) continue;
    log_.Warning("the served CRD does not keep a status field; it is left out from now on",
                 {{"field", "status." + path}, {"object", entry.key.ToString()}});
  }
}

}  // namespace outrigger::controller::runtime
