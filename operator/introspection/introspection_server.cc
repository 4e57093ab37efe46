// SPDX-License-Identifier: Apache-2.0
#include "operator/introspection/introspection_server.h"

#include <absl/container/flat_hash_set.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>
#include <arpa/inet.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <boost/asio/post.hpp>
#include <utility>

#include "host/base/grpc_status.h"
#include "host/base/mutex.h"
#include "host/base/status.h"
#include "host/kit/health_service.h"
#include "outrigger/introspection/v1/introspection.grpc.pb.h"

namespace outrigger::controller::introspection {
namespace {

namespace pb = ::outrigger::introspection::v1;

constexpr char kServiceName[] = "outrigger.introspection.v1.Introspection";
constexpr int kTlsRefreshSeconds = 60;
constexpr int kMostMessageBytes = 64 * 1024;  // of a request: a namespace and a name
constexpr absl::Duration kStopGrace = absl::Seconds(1);

bool IsLoopback(const std::string& host) {
  if (host == "localhost") return true;
  in_addr v4 = {};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6 = {};
  return inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

absl::Status CheckAddress(const IntrospectionServer::Options& options) {
  if (!options.tls.empty() && !options.tls.complete()) {
    return absl::InvalidArgumentError(
        "gRPC port: want certificate, key and client CA, or none of them");
  }
  const size_t colon = options.listen_address.rfind(':');
  uint32_t number = 0;  // gRPC would take 65537 for 1
  if (colon == std::string::npos || colon == 0 ||
      !absl::SimpleAtoi(options.listen_address.substr(colon + 1), &number) || number > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("gRPC port: want host:port, got \"", options.listen_address, "\""));
  }
  absl::string_view host = absl::string_view(options.listen_address).substr(0, colon);
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  if (options.tls.complete() || IsLoopback(std::string(host))) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("gRPC port: want a loopback address, or mutual TLS, got \"",
                   options.listen_address, "\" without TLS"));
}

std::shared_ptr<grpc::ServerCredentials> Credentials(const host::kit::TlsFiles& tls) {
  if (!tls.complete()) return grpc::InsecureServerCredentials();
  const auto provider = std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
      tls.key, tls.certificate, tls.client_ca, kTlsRefreshSeconds);
  grpc::experimental::TlsServerCredentialsOptions options(provider);
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  return grpc::experimental::TlsServerCredentials(options);
}

// Calls that wait for the core strand. Either the strand answers a call or Stop() ends it, so that
// a server never waits for a strand that runs no more. Shared with the posted work, which may
// outlive the service.
class WaitingCalls {
 public:
  // False: stopped already; the call is not taken.
  bool Enter(grpc::ServerUnaryReactor* call) {
    host::MutexLock lock(&mutex_);
    if (!stopped_) calls_.insert(call);
    return !stopped_;
  }

  // Makes the answer and sends it, unless the call has ended. The lock is held meanwhile: when
  // Stop() returns, no answer is being made.
  template <typename Answer>
  void Finish(grpc::ServerUnaryReactor* call, const Answer& answer) {
    host::MutexLock lock(&mutex_);
    if (calls_.erase(call) > 0) call->Finish(answer());
  }

  void Stop() {
    host::MutexLock lock(&mutex_);
    stopped_ = true;
    for (grpc::ServerUnaryReactor* call : calls_) call->Finish(Stopping());
    calls_.clear();
  }

  static grpc::Status Stopping() {
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "the operator is stopping");
  }

 private:
  host::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_set<grpc::ServerUnaryReactor*> calls_ ABSL_GUARDED_BY(mutex_);
};

absl::Status CheckFound(const pb::ListObjectsRequest& request,
                        const pb::ListObjectsResponse& response) {
  if (request.name().empty() || response.objects_size() > 0) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat("no ScaledObject ", request.namespace_().empty() ? "*" : request.namespace_(),
                   "/", request.name(), " is tracked by this replica (the leader tracks them)"));
}

class IntrospectionService : public pb::Introspection::CallbackService {
 public:
  IntrospectionService(host::Executor core, IntrospectionServer::ListPlugins list_plugins,
                       IntrospectionServer::ListObjects list_objects)
      : core_(std::move(core)),
        list_plugins_(std::move(list_plugins)),
        list_objects_(std::move(list_objects)) {}

  grpc::ServerUnaryReactor* ListPlugins(grpc::CallbackServerContext* context,
                                        const pb::ListPluginsRequest*,
                                        pb::ListPluginsResponse* response) override {
    return OnCore(context, [this, response] {
      *response = list_plugins_();
      return grpc::Status::OK;
    });
  }

  grpc::ServerUnaryReactor* ListObjects(grpc::CallbackServerContext* context,
                                        const pb::ListObjectsRequest* request,
                                        pb::ListObjectsResponse* response) override {
    return OnCore(context, [this, request, response] {
      *response = list_objects_(request->namespace_(), request->name());
      return host::ToGrpc(CheckFound(*request, *response));
    });
  }

  void Stop() { waiting_->Stop(); }

 private:
  // `answer` uses request, response and this service only while the call waits, that is before
  // Stop().
  template <typename Answer>
  grpc::ServerUnaryReactor* OnCore(grpc::CallbackServerContext* context, Answer answer) {
    grpc::ServerUnaryReactor* call = context->DefaultReactor();
    if (!waiting_->Enter(call)) {
      call->Finish(WaitingCalls::Stopping());
      return call;
    }
    boost::asio::post(core_, [waiting = waiting_, call, answer = std::move(answer)] {
      waiting->Finish(call, answer);
    });
    return call;
  }

  const host::Executor core_;
  const IntrospectionServer::ListPlugins list_plugins_;
  const IntrospectionServer::ListObjects list_objects_;
  const std::shared_ptr<WaitingCalls> waiting_ = std::make_shared<WaitingCalls>();
};

}  // namespace

class IntrospectionServer::Implementation {
 public:
  Implementation(host::Clock& clock, host::Executor core, ListPlugins list_plugins,
                 ListObjects list_objects)
      : clock_(clock),
        service_(std::move(core), std::move(list_plugins), std::move(list_objects)),
        health_({"", kServiceName}) {}
  ~Implementation() { Stop(); }

  absl::Status Start(const Options& options) {
    RETURN_IF_ERROR(CheckAddress(options));
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort(options.listen_address, Credentials(options.tls), &port);
    builder.SetMaxReceiveMessageSize(kMostMessageBytes);
    // Two operators on one port must fail, not share it.
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    // Only reflection uses the synchronous API.
    builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::NUM_CQS, 1);
    builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::MAX_POLLERS, 2);
    builder.RegisterService(&service_);
    builder.RegisterService(&health_.service());
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || port == 0) {
      return absl::UnavailableError(
          absl::StrCat("gRPC port: cannot listen on ", options.listen_address));
    }
    address_ = absl::StrCat(options.listen_address.substr(0, options.listen_address.rfind(':')),
                            ":", port);
    return absl::OkStatus();
  }

  void Stop() {
    if (server_ == nullptr) return;
    health_.Drain();
    service_.Stop();
    server_->Shutdown(absl::ToChronoTime(clock_.WallNow() + kStopGrace));
    server_->Wait();
    server_.reset();
  }

  const std::string& address() const { return address_; }

 private:
  host::Clock& clock_;
  IntrospectionService service_;
  host::kit::HealthService health_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

IntrospectionServer::IntrospectionServer(std::unique_ptr<Implementation> implementation)
    : implementation_(std::move(implementation)) {}
IntrospectionServer::~IntrospectionServer() = default;

absl::StatusOr<std::unique_ptr<IntrospectionServer>> IntrospectionServer::Start(
    const Options& options, host::Executor core, host::Clock& clock, ListPlugins list_plugins,
    ListObjects list_objects) {
  auto implementation = std::make_unique<Implementation>(
      clock, std::move(core), std::move(list_plugins), std::move(list_objects));
  RETURN_IF_ERROR(implementation->Start(options));
  return std::unique_ptr<IntrospectionServer>(new IntrospectionServer(std::move(implementation)));
}

const std::string& IntrospectionServer::address() const { return implementation_->address(); }
void IntrospectionServer::Stop() { implementation_->Stop(); }

}  // namespace outrigger::controller::introspection
