// SPDX-License-Identifier: Apache-2.0
#include "host/kit/plugin_server.h"

#include <absl/strings/str_cat.h>
#include <absl/time/time.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <sys/stat.h>

#include <deque>
#include <utility>

#include "host/base/grpc_status.h"
#include "host/base/mutex.h"
#include "host/base/status.h"
#include "host/kit/health_service.h"
#include "outrigger/scaler/v1/scaler.grpc.pb.h"

namespace outrigger::host::kit {
namespace {

namespace pb = ::outrigger::scaler::v1;

constexpr char kServiceName[] = "outrigger.scaler.v1.Scaler";
constexpr int kTlsRefreshSeconds = 60;
// For the last answers to leave, once no call runs.
constexpr absl::Duration kFlushTime = absl::Milliseconds(250);

// Ends a little before the caller stops waiting, so that it hears why.
Deadline DeadlineOf(const grpc::CallbackServerContext& context, const Clock& clock) {
  const absl::Time at = absl::FromChrono(context.deadline());
  const absl::Duration remaining = at - clock.WallNow();
  if (remaining > absl::Hours(1)) return Deadline::Never();
  return Deadline::After(clock, remaining - std::min(absl::Milliseconds(100), remaining / 10));
}

void FillError(const absl::Status& status, pb::EntryError& error) {
  const grpc::Status wire = ToGrpc(status);
  error.set_code(wire.error_code());
  error.set_message(wire.error_message());
}

// The stream of one batch: sends each answer as soon as it is there and ends after the last one.
// Kept by gRPC until OnDone and by the answers that are still to come.
class BatchStream : public grpc::ServerWriteReactor<pb::BatchGetMetricsResponse> {
 public:
  explicit BatchStream(int entries) : missing_(entries) {}

  void Keep(std::shared_ptr<BatchStream> self) { self_ = std::move(self); }

  // Refuses the whole call.
  void Refuse(const absl::Status& status) {
    MutexLock lock(&mutex_);
    finished_ = true;
    Finish(ToGrpc(status));
  }

  void Answer(uint32_t index, absl::StatusOr<pb::GetMetricsResponse> response) {
    pb::BatchGetMetricsResponse message;
    message.set_index(index);
    if (response.ok()) {
      *message.mutable_answer() = *std::move(response);
    } else {
      FillError(response.status(), *message.mutable_error());
    }
    MutexLock lock(&mutex_);
    --missing_;
    ready_.push_back(std::move(message));
    Advance();
  }

  // All entries were taken over; an empty batch ends here.
  void Start() {
    MutexLock lock(&mutex_);
    Advance();
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(&mutex_);
    writing_ = false;
    ready_.pop_front();
    if (!ok) cancelled_ = true;
    Advance();
  }

  void OnCancel() override {
    MutexLock lock(&mutex_);
    cancelled_ = true;
    Advance();
  }

  void OnDone() override { const std::shared_ptr<BatchStream> last = std::move(self_); }

 private:
  // Starts the next operation if none is running.
  void Advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (writing_ || finished_) return;
    if (!cancelled_ && !ready_.empty()) {
      writing_ = true;
      grpc::WriteOptions options;
      // The next follows at once: one packet. Never the stream's first message, which would wait
      // with the headers: then there is no other yet.
      if (ready_.size() > 1) options.set_buffer_hint();
      return StartWrite(&ready_.front(), options);
    }
    if (!cancelled_ && missing_ > 0) return;
    finished_ = true;
    Finish(cancelled_ ? grpc::Status(grpc::StatusCode::CANCELLED, "cancelled") : grpc::Status::OK);
  }

  std::shared_ptr<BatchStream> self_;  // set before the stream starts, taken in OnDone
  Mutex mutex_;
  int missing_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<pb::BatchGetMetricsResponse> ready_ ABSL_GUARDED_BY(mutex_);  // front: being written
};

class ScalerService : public pb::Scaler::CallbackService {
 public:
  ScalerService(Dispatcher& dispatcher, Clock& clock) : dispatcher_(dispatcher), clock_(clock) {}

  grpc::ServerUnaryReactor* Describe(grpc::CallbackServerContext* context,
                                     const pb::DescribeRequest*,
                                     pb::DescribeResponse* response) override {
    *response = dispatcher_.Describe();
    return Done(context, grpc::Status::OK);
  }

  grpc::ServerUnaryReactor* ValidateTrigger(grpc::CallbackServerContext* context,
                                            const pb::ValidateTriggerRequest* request,
                                            pb::ValidateTriggerResponse* response) override {
    return Reply(context, dispatcher_.ValidateTrigger(request->trigger()), response);
  }

  grpc::ServerUnaryReactor* GetMetricSpecForScaling(
      grpc::CallbackServerContext* context, const pb::GetMetricSpecForScalingRequest* request,
      pb::GetMetricSpecForScalingResponse* response) override {
    return Reply(context, dispatcher_.GetSpecs(request->trigger()), response);
  }

  grpc::ServerUnaryReactor* GetMetrics(grpc::CallbackServerContext* context,
                                       const pb::GetMetricsRequest* request,
                                       pb::GetMetricsResponse* response) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    dispatcher_.GetMetrics(*request, DeadlineOf(*context, clock_),
                           [reactor, response](absl::StatusOr<pb::GetMetricsResponse> answer) {
                             const grpc::Status status = ToGrpc(answer.status());
                             if (answer.ok()) *response = *std::move(answer);
                             reactor->Finish(status);
                           });
    return reactor;
  }

  grpc::ServerWriteReactor<pb::BatchGetMetricsResponse>* BatchGetMetrics(
      grpc::CallbackServerContext* context, const pb::BatchGetMetricsRequest* request) override {
    auto stream = std::make_shared<BatchStream>(request->entries_size());
    stream->Keep(stream);
    const absl::Status admitted = dispatcher_.BatchGetMetrics(
        *request, DeadlineOf(*context, clock_),
        [stream](uint32_t index, absl::StatusOr<pb::GetMetricsResponse> answer) {
          stream->Answer(index, std::move(answer));
        });
    if (admitted.ok()) {
      stream->Start();
    } else {
      stream->Refuse(admitted);
    }
    return stream.get();
  }

 private:
  static grpc::ServerUnaryReactor* Done(grpc::CallbackServerContext* context,
                                        const grpc::Status& status) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(status);
    return reactor;
  }

  template <typename Response>
  static grpc::ServerUnaryReactor* Reply(grpc::CallbackServerContext* context,
                                         absl::StatusOr<Response> answer, Response* response) {
    const grpc::Status status = ToGrpc(answer.status());
    if (answer.ok()) *response = *std::move(answer);
    return Done(context, status);
  }

  Dispatcher& dispatcher_;
  Clock& clock_;
};

std::vector<std::string> HealthNames(const Dispatcher& dispatcher) {
  std::vector<std::string> names = {"", kServiceName};
  for (const std::string& type : dispatcher.TriggerTypes()) names.push_back(type);
  return names;
}

std::shared_ptr<grpc::ServerCredentials> Credentials(const TlsFiles& tls) {
  if (!tls.complete()) return grpc::InsecureServerCredentials();
  const auto provider = std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
      tls.key, tls.certificate, tls.client_ca, kTlsRefreshSeconds);
  grpc::experimental::TlsServerCredentialsOptions options(provider);
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  return grpc::experimental::TlsServerCredentials(options);
}

// gRPC creates the socket with the process's mask. Only at start, before there are threads of ours
// that make files.
class SocketMask {
 public:
  SocketMask() : before_(umask(0117)) {}
  ~SocketMask() { umask(before_); }

 private:
  const mode_t before_;
};

}  // namespace

class PluginServer::Implementation {
 public:
  Implementation(Dispatcher& dispatcher, Clock& clock)
      : clock_(clock),
        dispatcher_(dispatcher),
        scaler_(dispatcher, clock),
        health_(HealthNames(dispatcher)) {}

  absl::Status Start(const PluginServerOptions& options) {
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    grpc::ServerBuilder builder;
    int socket_port = 0;
    int tcp_port = 0;
    if (!options.socket_path.empty()) {
      RETURN_IF_ERROR(PrepareSocketPath(options.socket_path));
      builder.AddListeningPort(absl::StrCat("unix:", options.socket_path),
                               grpc::InsecureServerCredentials(), &socket_port);
    }
    if (!options.listen_address.empty()) {
      RETURN_IF_ERROR(CheckListenAddress(options.listen_address, options.tls));
      if (options.tls.complete()) RETURN_IF_ERROR(CheckTlsFiles(options.tls));
      builder.AddListeningPort(options.listen_address, Credentials(options.tls), &tcp_port);
    }
    Limit(options, builder);
    builder.RegisterService(&scaler_);
    builder.RegisterService(&health_.service());
    for (grpc::Service* extra : options.extra_services) builder.RegisterService(extra);
    {
      const SocketMask mask;
      server_ = builder.BuildAndStart();
    }
    if (!options.socket_path.empty() && socket_port == 0) return CannotBind(options.socket_path);
    if (!options.listen_address.empty() && tcp_port == 0) {
      return CannotBind(options.listen_address);
    }
    if (server_ == nullptr) return absl::UnavailableError("gRPC could not start the server");
    if (socket_port != 0) addresses_.push_back(absl::StrCat("unix:", options.socket_path));
    if (tcp_port != 0) addresses_.push_back(WithPort(options.listen_address, tcp_port));
    return absl::OkStatus();
  }

  void Drain(absl::Duration grace) {
    health_.Drain();
    dispatcher_.StopAccepting();
    dispatcher_.WaitUntilIdle(Deadline::After(clock_, grace));
    // gRPC would wait for clients to close idle connections, too.
    server_->Shutdown(absl::ToChronoTime(clock_.WallNow() + kFlushTime));
    server_->Wait();
  }

  const std::vector<std::string>& addresses() const { return addresses_; }

 private:
  static void Limit(const PluginServerOptions& options, grpc::ServerBuilder& builder) {
    builder.SetMaxReceiveMessageSize(static_cast<int>(options.max_message_bytes));
    // Two plugins on one port must fail, not share it.
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    // The operator pings an idle channel to notice a dead peer.
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5000);
    // Only reflection uses the synchronous API.
    builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::NUM_CQS, 1);
    builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::MAX_POLLERS, 2);
  }

  static absl::Status CannotBind(absl::string_view address) {
    return absl::UnavailableError(absl::StrCat("cannot listen on ", address));
  }

  static std::string WithPort(const std::string& address, int port) {
    return absl::StrCat(address.substr(0, address.rfind(':')), ":", port);
  }

  Clock& clock_;
  Dispatcher& dispatcher_;
  ScalerService scaler_;
  HealthService health_;
  std::unique_ptr<grpc::Server> server_;
  std::vector<std::string> addresses_;
};

PluginServer::PluginServer(std::unique_ptr<Implementation> implementation)
    : implementation_(std::move(implementation)) {}
PluginServer::~PluginServer() = default;

absl::StatusOr<std::unique_ptr<PluginServer>> PluginServer::Start(
    const PluginServerOptions& options, Dispatcher& dispatcher, Clock& clock) {
  auto implementation = std::make_unique<Implementation>(dispatcher, clock);
  RETURN_IF_ERROR(implementation->Start(options));
  return std::unique_ptr<PluginServer>(new PluginServer(std::move(implementation)));
}

const std::vector<std::string>& PluginServer::addresses() const {
  return implementation_->addresses();
}

void PluginServer::Drain(absl::Duration grace) { implementation_->Drain(grace); }

}  // namespace outrigger::host::kit
