// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/container/btree_map.h>
#include <absl/container/btree_set.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "host/base/event.h"
#include "host/base/status.h"
#include "operator/api/namespaced_name.h"
#include "operator/kube/reflector.h"

namespace outrigger::controller::kube {

// Of a deletion: did the event say how the object was at its end? kUnknown when it was found
// missing by a new list; then the last state that was seen is delivered.
enum class FinalState { kKnown, kUnknown };

// The cache of one kind of object: what the operator reads instead of asking the API server.
//
// T is the trimmed form of an object; the parse function keeps only what is used, so that memory
// does not grow with what other people put into their objects. Objects are immutable snapshots:
// whoever holds one sees it unchanged.
//
// An object that cannot be parsed never stops the informer: it is logged, told to on_parse_error
// and kept under ParseError(). Its last good state, if there is one, stays in the cache, so that a
// bad edit is not taken for a deletion.
//
// All on one strand: Run(), every other method and the handlers. The order of List(), ByIndex() and
// of handlers is that of keys, so that a run can be replayed. Nothing here blocks. Handlers must
// outlive Run().
// Source: requirements.md R21; design.md section 5, "Informers".
template <typename T>
class Informer : private Reflector::Sink {
 public:
  using Key = api::NamespacedName;
  using Ptr = std::shared_ptr<const T>;
  using Parse = std::function<absl::StatusOr<T>(const boost::json::value& object)>;
  // The values under which ByIndex() finds an object.
  using Index = std::function<std::vector<std::string>(const T& object)>;

  struct Handlers {
    std::function<void(const Key& key, const Ptr& now)> on_add;
    std::function<void(const Key& key, const Ptr& before, const Ptr& now)> on_update;
    // `last` is null for an object that could never be parsed.
    std::function<void(const Key& key, const Ptr& last, FinalState state)> on_delete;
    std::function<void(const Key& key, const absl::Status& error)> on_parse_error;
  };

  Informer(host::Clock& clock, Api& api, host::Random random, const host::Logger& log,
           Reflector::Options options, Parse parse)
      : clock_(clock),
        log_(log),
        parse_(std::move(parse)),
        reflector_(clock, api, random, log, std::move(options), *this) {}

  // At any time; objects that are there are indexed, or delivered as added (or as parse errors),
  // at once.
  void AddIndex(const std::string& name, Index index);
  void AddHandlers(Handlers handlers);

  // Once. Ends soon after Stop(); handlers are not called after it.
  host::Task<void> Run() { return reflector_.Run(); }
  void Stop() {
    stopped_ = true;
    reflector_.Stop();
    synced_event_.NotifyAll();
  }

  // Whether all objects of the first list are here.
  bool HasSynced() const { return synced_; }
  // OK when HasSynced(); DEADLINE_EXCEEDED with the last error of the API server; CANCELLED when
  // stopped before.
  host::Task<absl::Status> WaitForSync(host::Deadline deadline);

  // Null when there is none.
  Ptr Get(const Key& key) const;
  std::vector<Ptr> List() const;
  // Of an index that was not added: none.
  std::vector<Ptr> ByIndex(absl::string_view index, absl::string_view value) const;
  // Why the newest state of the object cannot be used; null when it can, or is not there.
  const absl::Status* ParseError(const Key& key) const;

  size_t size() const { return entries_.size(); }
  const Reflector::Counts& counts() const { return reflector_.counts(); }
  const absl::Status& last_error() const { return reflector_.last_error(); }

 private:
  struct Entry {
    Ptr object;  // null: never parsed
    std::string uid;
    std::string resource_version;
    absl::Status error;
    uint64_t list = 0;  // the last one that it came in
  };
  struct IndexTable {
    Index values_of;
    absl::btree_map<std::string, absl::btree_set<Key>> keys;
  };
  using Entries = absl::btree_map<Key, Entry>;

  void OnListBegin() override { ++list_; }
  void OnObject(const boost::json::value& object) override;
  void OnDeleted(const boost::json::value& last_state) override;
  void OnListEnd() override;

  void Keep(const Key& key, Entry& entry, T object);
  void KeepError(const Key& key, Entry& entry, const absl::Status& error);
  // Arguments must not live in the entry, which goes.
  void Remove(const Key& key, const Ptr& last, FinalState state);
  void AddToIndexes(const Key& key, const Ptr& object);
  void RemoveFromIndexes(const Key& key, const Ptr& object);

  host::Clock& clock_;
  const host::Logger log_;
  const Parse parse_;
  Reflector reflector_;
  Entries entries_;
  absl::btree_map<std::string, IndexTable> indexes_;
  std::vector<Handlers> handlers_;
  uint64_t list_ = 0;  // number of the present list
  bool synced_ = false;
  bool stopped_ = false;
  host::Event synced_event_;
};

template <typename T>
void Informer<T>::AddIndex(const std::string& name, Index index) {
  IndexTable& table = indexes_[name];
  table = {.values_of = std::move(index)};
  for (const auto& [key, entry] : entries_) {
    if (entry.object == nullptr) continue;
    for (std::string& value : table.values_of(*entry.object)) table.keys[value].insert(key);
  }
}

template <typename T>
void Informer<T>::AddHandlers(Handlers handlers) {
  handlers_.push_back(std::move(handlers));
  const Handlers& added = handlers_.back();
  for (const auto& [key, entry] : entries_) {
    if (entry.object != nullptr && added.on_add) added.on_add(key, entry.object);
    if (!entry.error.ok() && added.on_parse_error) added.on_parse_error(key, entry.error);
  }
}

template <typename T>
host::Task<absl::Status> Informer<T>::WaitForSync(host::Deadline deadline) {
  while (!synced_) {
    if (stopped_) co_return absl::CancelledError("stopped");
    if (deadline.Expired(clock_)) {
      const absl::Status& why = reflector_.last_error();
      co_return absl::DeadlineExceededError(
          absl::StrCat("the cache of ", reflector_.options().resource.ToString(),
                       " is not complete: ", why.ok() ? "listing" : host::Describe(why)));
    }
    co_await synced_event_.WaitUntil(clock_, deadline.time());
  }
  co_return absl::OkStatus();
}

template <typename T>
typename Informer<T>::Ptr Informer<T>::Get(const Key& key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : found->second.object;
}

template <typename T>
std::vector<typename Informer<T>::Ptr> Informer<T>::List() const {
  std::vector<Ptr> objects;
  objects.reserve(entries_.size());
  for (const auto& [key, entry] : entries_) {
    if (entry.object != nullptr) objects.push_back(entry.object);
  }
  return objects;
}

template <typename T>
std::vector<typename Informer<T>::Ptr> Informer<T>::ByIndex(absl::string_view index,
                                                            absl::string_view value) const {
  std::vector<Ptr> objects;
  const auto table = indexes_.find(index);
  if (table == indexes_.end()) return objects;
  const auto keys = table->second.keys.find(value);
  if (keys == table->second.keys.end()) return objects;
  for (const Key& key : keys->second) objects.push_back(entries_.at(key).object);
  return objects;
}

template <typename T>
const absl::Status* Informer<T>::ParseError(const Key& key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() || found->second.error.ok() ? nullptr : &found->second.error;
}

template <typename T>
void Informer<T>::OnObject(const boost::json::value& object) {
  ObjectIdentity identity = IdentityOf(object);
  if (identity.key.name.empty()) {
    log_.Error("an object of the API server has no metadata.name; it is left out",
               {{"resource", reflector_.options().resource.ToString()}});
    return;
  }
  const auto known = entries_.find(identity.key);
  if (known != entries_.end() && known->second.uid != identity.uid) {
    // Deleted and made anew while nobody watched: another object of the same name.
    const Ptr last = known->second.object;
    Remove(identity.key, last, FinalState::kUnknown);
  }
  Entry& entry = entries_[identity.key];
  entry.list = list_;
  if (!entry.resource_version.empty() && entry.resource_version == identity.resource_version) {
    return;  // nothing new
  }
  entry.uid = std::move(identity.uid);
  entry.resource_version = std::move(identity.resource_version);
  absl::StatusOr<T> parsed = parse_(object);
  if (parsed.ok()) {
    Keep(identity.key, entry, *std::move(parsed));
  } else {
    KeepError(identity.key, entry, parsed.status());
  }
}

template <typename T>
void Informer<T>::Keep(const Key& key, Entry& entry, T object) {
  const Ptr before = std::exchange(entry.object, std::make_shared<const T>(std::move(object)));
  const Ptr now = entry.object;  // a handler may change the map
  entry.error = absl::OkStatus();
  RemoveFromIndexes(key, before);
  AddToIndexes(key, now);
  for (const Handlers& handlers : handlers_) {
    if (before == nullptr && handlers.on_add) handlers.on_add(key, now);
    if (before != nullptr && handlers.on_update) handlers.on_update(key, before, now);
  }
}

template <typename T>
void Informer<T>::KeepError(const Key& key, Entry& entry, const absl::Status& error) {
  entry.error = error;
  log_.Warning("an object cannot be read", {{"resource", reflector_.options().resource.ToString()},
                                            {"object", key.ToString()},
                                            {"error", host::Describe(error)}});
  for (const Handlers& handlers : handlers_) {
    if (handlers.on_parse_error) handlers.on_parse_error(key, error);
  }
}

template <typename T>
void Informer<T>::OnDeleted(const boost::json::value& last_state) {
  const Key key = IdentityOf(last_state).key;
  const auto known = entries_.find(key);
  if (known == entries_.end()) return;
  absl::StatusOr<T> parsed = parse_(last_state);
  const FinalState state = parsed.ok() ? FinalState::kKnown : FinalState::kUnknown;
  Ptr last = known->second.object;
  if (parsed.ok()) last = std::make_shared<const T>(*std::move(parsed));
  Remove(key, last, state);
}

template <typename T>
void Informer<T>::OnListEnd() {
  std::vector<Key> gone;
  for (const auto& [key, entry] : entries_) {
    if (entry.list != list_) gone.push_back(key);
  }
  for (const Key& key : gone) Remove(key, Get(key), FinalState::kUnknown);
  synced_ = true;
  synced_event_.NotifyAll();
}

template <typename T>
void Informer<T>::Remove(const Key& key, const Ptr& last, FinalState state) {
  const auto known = entries_.find(key);
  if (known == entries_.end()) return;
  RemoveFromIndexes(key, known->second.object);
  entries_.erase(known);
  for (const Handlers& handlers : handlers_) {
    if (handlers.on_delete) handlers.on_delete(key, last, state);
  }
}

template <typename T>
void Informer<T>::AddToIndexes(const Key& key, const Ptr& object) {
  for (auto& [name, table] : indexes_) {
    for (const std::string& value : table.values_of(*object)) table.keys[value].insert(key);
  }
}

template <typename T>
void Informer<T>::RemoveFromIndexes(const Key& key, const Ptr& object) {
  if (object == nullptr) return;
  for (auto& [name, table] : indexes_) {
    for (const std::string& value : table.values_of(*object)) {
      const auto keys = table.keys.find(value);
      if (keys == table.keys.end()) continue;
      keys->second.erase(key);
      if (keys->second.empty()) table.keys.erase(keys);
    }
  }
}

}  // namespace outrigger::controller::kube
