// SPDX-License-Identifier: Apache-2.0
#include "operator/local/deployment_controller.h"

#include <boost/asio/this_coro.hpp>
#include <boost/json/array.hpp>
#include <utility>

#include "host/base/status.h"

namespace outrigger::controller::local {
namespace {

namespace json = boost::json;
using host::Task;

int64_t IntAt(const json::value& object, const char* pointer) {
  json::error_code error;
  const json::value* found = object.find_pointer(pointer, error);
  return found != nullptr && found->is_int64() ? found->get_int64() : 0;
}

// Whether the status says already what `wanted` says. Zeros are left out by the API server.
bool IsIn(const json::object& wanted, const json::value& deployment) {
  for (const json::key_value_pair& member : wanted) {
    const std::string pointer = "/status/" + std::string(member.key());
    if (member.value().is_int64()) {
      if (IntAt(deployment, pointer.c_str()) != member.value().get_int64()) return false;
      continue;
    }
    json::error_code error;
    const json::value* found = deployment.find_pointer(pointer, error);
    const bool absent = found == nullptr || found->is_null();
    if (member.value().is_null() ? !absent : absent || *found != member.value()) return false;
  }
  return true;
}

}  // namespace

DeploymentController::DeploymentController(kube::Api& api, host::Clock& clock,
                                           const host::Logger& log, host::Random random,
                                           WorkloadFactory factory, Options options)
    : api_(api),
      clock_(clock),
      log_(log),
      factory_(std::move(factory)),
      options_(options),
      informer_(clock, api, random, log, {.resource = kube::Deployments()},
                [](const json::value& object) -> absl::StatusOr<json::value> { return object; }) {
  informer_.AddHandlers(
      {.on_add = [this](const Key& key, const auto&) { MarkDirty(key); },
       .on_update = [this](const Key& key, const auto&, const auto&) { MarkDirty(key); },
       .on_delete = [this](const Key& key, const auto&, kube::FinalState) { MarkDirty(key); },
       .on_parse_error = {}});
}

void DeploymentController::MarkDirty(const Key& key) {
  dirty_.insert(key);
  wake_.Notify();
}

void DeploymentController::Stop() {
  stopping_ = true;
  wake_.Notify();
}

void DeploymentController::Kill() {
  for (auto& [key, entry] : entries_) entry.workload->Kill();
  Stop();
}

Workload::Counts DeploymentController::CountsOf(const Key& key) const {
  const auto it = entries_.find(key);
  return it == entries_.end() ? Workload::Counts() : it->second.workload->counts();
}

Task<void> DeploymentController::Run() {
  tasks_ = std::make_unique<host::TaskGroup>(clock_, co_await boost::asio::this_coro::executor);
  tasks_->Spawn(informer_.Run());
  while (!stopping_) {
    const std::set<Key> keys = std::exchange(dirty_, {});
    for (const Key& key : keys) co_await SyncOne(key);
    if (!stopping_ && dirty_.empty()) co_await wake_.WaitUntil(clock_, retry_at_);
    if (clock_.SteadyNow() < retry_at_) continue;
    retry_at_ = host::SteadyTime::InfiniteFuture();
    dirty_.merge(retries_);
    retries_.clear();
  }
  informer_.Stop();
  for (auto& [key, entry] : entries_) entry.workload->Stop();
  co_await tasks_->Join();
}

Task<void> DeploymentController::RunWorkload(Key key, Workload& workload) {
  co_await workload.Run();
  entries_.erase(key);
  MarkDirty(key);  // a Deployment of the same name may have come meanwhile
}

void DeploymentController::Apply(const Key& key, const json::object& deployment) {
  auto [it, added] = entries_.try_emplace(key);
  Entry& entry = it->second;
  if (added) {
    entry.workload = factory_(key, [this, key] { MarkDirty(key); });
    tasks_->Spawn(RunWorkload(key, *entry.workload));
  }
  const int64_t generation = IntAt(deployment, "/metadata/generation");
  std::string uid = kube::IdentityOf(deployment).uid;
  if (entry.applied_uid == uid && entry.applied_generation == generation) return;
  entry.applied_uid = std::move(uid);
  entry.applied_generation = generation;
  const json::value* spec = deployment.if_contains("spec");
  entry.applied = entry.workload->Apply(spec != nullptr && spec->is_object() ? spec->get_object()
                                                                             : json::object());
  if (!entry.applied.ok()) {
    log_.Error("a Deployment cannot be run",
               {{"deployment", key.ToString()}, {"error", host::Describe(entry.applied)}});
  }
}

json::object DeploymentController::StatusOf(const Entry& entry) const {
  const Workload::Counts counts = entry.workload->counts();
  json::object status{
      {"observedGeneration", entry.applied_generation}, {"replicas", int64_t{counts.replicas}},
      {"updatedReplicas", int64_t{counts.replicas}},    {"readyReplicas", int64_t{counts.ready}},
      {"availableReplicas", int64_t{counts.ready}},     {"conditions", nullptr}};
  if (!entry.applied.ok()) {
    const absl::string_view message = entry.applied.message();
    status["conditions"] = json::array{json::object{{"type", "ReplicaFailure"},
                                                    {"status", "True"},
                                                    {"reason", "FailedCreate"},
                                                    {"message", std::string(message)}}};
  }
  return status;
}

Task<void> DeploymentController::SyncOne(Key key) {
  const std::shared_ptr<const json::value> object = informer_.Get(key);
  const auto it = entries_.find(key);
  if (it != entries_.end() && it->second.stopping) co_return;  // until it has ended
  if (object == nullptr) {
    if (it == entries_.end()) co_return;
    it->second.stopping = true;
    it->second.workload->Stop();
    co_return;
  }
  Apply(key, object->get_object());
  json::object status = StatusOf(entries_.at(key));
  if (IsIn(status, *object)) co_return;
  kube::WriteOptions options{.subresource = "status"};
  json::object patch{{"status", std::move(status)}};
  const absl::Status written =
      (co_await api_.Patch(kube::Deployments(), key.namespace_name, key.name,
                           kube::PatchType::kMerge, std::move(patch), std::move(options),
                           host::Deadline::After(clock_, options_.call_timeout)))
          .status();
  if (written.ok() || absl::IsNotFound(written)) co_return;
  log_.Warning("a Deployment's status was not written",
               {{"deployment", key.ToString()}, {"error", host::Describe(written)}});
  retries_.insert(key);
  retry_at_ = clock_.SteadyNow() + options_.retry_after;
}

}  // namespace outrigger::controller::local
