// SPDX-License-Identifier: Apache-2.0
#include "host/kit/health_service.h"

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <map>
#include <optional>
#include <set>

#include "grpc/health/v1/health.grpc.pb.h"
#include "host/base/mutex.h"

namespace outrigger::host::kit {
namespace {

namespace pb = ::grpc::health::v1;
using ServingStatus = pb::HealthCheckResponse::ServingStatus;

}  // namespace

// gRPC runs reactions on its own threads, never inside the call that starts an operation, so the
// mutex may be held while one is started.
class HealthService::Implementation : public pb::Health::CallbackService {
 public:
  explicit Implementation(const std::vector<std::string>& names) {
    for (const std::string& name : names) states_[name] = pb::HealthCheckResponse::SERVING;
  }

  grpc::ServerUnaryReactor* Check(grpc::CallbackServerContext* context,
                                  const pb::HealthCheckRequest* request,
                                  pb::HealthCheckResponse* response) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    const ServingStatus status = StatusOf(request->service());
    response->set_status(status);
    reactor->Finish(status == pb::HealthCheckResponse::SERVICE_UNKNOWN
                        ? grpc::Status(grpc::StatusCode::NOT_FOUND, "no such service")
                        : grpc::Status::OK);
    return reactor;
  }

  grpc::ServerWriteReactor<pb::HealthCheckResponse>* Watch(
      grpc::CallbackServerContext*, const pb::HealthCheckRequest* request) override;

  void Set(const std::string& name, bool serving) {
    MutexLock lock(&mutex_);
    if (draining_) return;
    states_[name] =
        serving ? pb::HealthCheckResponse::SERVING : pb::HealthCheckResponse::NOT_SERVING;
    TellWatchers();
  }

  void Drain() {
    MutexLock lock(&mutex_);
    draining_ = true;
    for (auto& [name, state] : states_) state = pb::HealthCheckResponse::NOT_SERVING;
    TellWatchers();
  }

 private:
  class Watcher;

  ServingStatus StatusOf(const std::string& name) {
    MutexLock lock(&mutex_);
    return Find(name);
  }

  ServingStatus Find(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto it = states_.find(name);
    return it == states_.end() ? pb::HealthCheckResponse::SERVICE_UNKNOWN : it->second;
  }

  void TellWatchers() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, ServingStatus> states_ ABSL_GUARDED_BY(mutex_);
  std::set<Watcher*> watchers_ ABSL_GUARDED_BY(mutex_);
};

// One Watch stream. Sends a status when it differs from the one sent last; a slow reader gets the
// newest only. All fields are guarded by the service's mutex.
class HealthService::Implementation::Watcher
    : public grpc::ServerWriteReactor<pb::HealthCheckResponse> {
 public:
  Watcher(Implementation& service, std::string name) : service_(service), name_(std::move(name)) {
    MutexLock lock(&service_.mutex_);
    service_.watchers_.insert(this);
    Advance();
  }

  const std::string& name() const { return name_; }

  // Starts the next operation if none is running. The service's mutex is held.
  void Advance() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (writing_ || finished_) return;
    const ServingStatus now = service_.Find(name_);
    if (!cancelled_ && sent_ != now) {
      sent_ = now;
      writing_ = true;
      response_.set_status(now);
      return StartWrite(&response_);
    }
    if (!cancelled_ && !service_.draining_) return;
    finished_ = true;
    Finish(grpc::Status(cancelled_ ? grpc::StatusCode::CANCELLED : grpc::StatusCode::UNAVAILABLE,
                        cancelled_ ? "cancelled" : "draining"));
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(&service_.mutex_);
    writing_ = false;
    if (!ok) cancelled_ = true;
    Advance();
  }

  void OnCancel() override {
    MutexLock lock(&service_.mutex_);
    cancelled_ = true;
    Advance();
  }

  void OnDone() override {
    {
      MutexLock lock(&service_.mutex_);
      service_.watchers_.erase(this);
    }
    delete this;
  }

 private:
  Implementation& service_;
  const std::string name_;
  pb::HealthCheckResponse response_;
  std::optional<ServingStatus> sent_;
  bool writing_ = false;
  bool cancelled_ = false;
  bool finished_ = false;
};

grpc::ServerWriteReactor<pb::HealthCheckResponse>* HealthService::Implementation::Watch(
    grpc::CallbackServerContext*, const pb::HealthCheckRequest* request) {
  return new Watcher(*this, request->service());  // deletes itself in OnDone
}

void HealthService::Implementation::TellWatchers() {
  for (Watcher* watcher : watchers_) watcher->Advance();
}

HealthService::HealthService(const std::vector<std::string>& names)
    : implementation_(std::make_unique<Implementation>(names)) {}
HealthService::~HealthService() = default;
grpc::Service& HealthService::service() { return *implementation_; }
void HealthService::Set(const std::string& name, bool serving) {
  implementation_->Set(name, serving);
}
void HealthService::Drain() { implementation_->Drain(); }

}  // namespace outrigger::host::kit
