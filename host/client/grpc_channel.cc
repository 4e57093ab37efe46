// SPDX-License-Identifier: Apache-2.0
#include "host/client/grpc_channel.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <grpc/grpc.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/async_stream.h>
#include <grpcpp/support/async_unary_call.h>
#include <grpcpp/support/channel_arguments.h>

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <climits>
#include <fstream>
#include <iterator>
#include <set>
#include <utility>

#include "grpc/health/v1/health.grpc.pb.h"
#include "host/base/event.h"
#include "host/base/grpc_status.h"
#include "host/base/mutex.h"
#include "host/base/status.h"
#include "host/client/answer_check.h"
#include "host/client/grpc_poller.h"
#include "host/client/scaler_service.h"
#include "outrigger/scaler/v1/scaler.grpc.pb.h"

namespace outrigger::host {
namespace {

namespace asio = boost::asio;
using scaler::v1::BatchGetMetricsRequest;
using scaler::v1::BatchGetMetricsResponse;
using ScalerStub = scaler::v1::Scaler::Stub;
using HealthStub = grpc::health::v1::Health::Stub;

// A span, not a point in time: gRPC adds it to its own clock, ours is never mixed with it.
gpr_timespec GrpcDeadline(absl::Duration remaining) {
  if (remaining == absl::InfiniteDuration()) return gpr_inf_future(GPR_CLOCK_MONOTONIC);
  return gpr_time_from_nanos(absl::ToInt64Nanoseconds(remaining), GPR_TIMESPAN);
}

// gRPC tells a message above the limit by its text alone; a plugin's own RESOURCE_EXHAUSTED is
// something else.
absl::Status FromCall(const grpc::Status& status) {
  absl::Status converted = FromGrpc(status);
  if (absl::IsResourceExhausted(converted) &&
      absl::StartsWith(converted.message(), "Received message larger than max")) {
    MarkMessageTooLarge(converted);
  }
  const auto delay = RetryInfoDelay(status.error_details());
  if (!converted.ok() && delay) SetRetryAfter(converted, *delay);
  return converted;
}

// The contexts of the calls under way, so that a stop can end them. Thread-safe.
class CallsUnderWay {
 public:
  void Add(grpc::ClientContext* context) {
    MutexLock lock(&mutex_);
    contexts_.insert(context);
  }
  void Remove(grpc::ClientContext* context) {
    MutexLock lock(&mutex_);
    contexts_.erase(context);
  }
  void CancelAll() {
    MutexLock lock(&mutex_);
    for (grpc::ClientContext* context : contexts_) context->TryCancel();
  }

 private:
  Mutex mutex_;
  std::set<grpc::ClientContext*> contexts_ ABSL_GUARDED_BY(mutex_);
};

// What all calls of one connection share. Its last reference is dropped on an executor of ours,
// never on the thread of the poller (grpc#37858).
struct Connection {
  Connection(std::shared_ptr<GrpcPoller> p, std::shared_ptr<grpc::Channel> c)
      : poller(std::move(p)), channel(std::move(c)), scaler(channel), health(channel) {}

  const std::shared_ptr<GrpcPoller> poller;
  const std::shared_ptr<grpc::Channel> channel;
  ScalerStub scaler;
  HealthStub health;
  CallsUnderWay calls;
};

// One call's context and messages, in one block that the operation owns: the coroutine's frame may
// be gone before gRPC has let go of them.
template <typename Request, typename Response>
struct UnaryCall {
  UnaryCall(std::shared_ptr<Connection> c, Request r, absl::Duration remaining)
      : connection(std::move(c)), request(std::move(r)) {
    context.set_deadline(GrpcDeadline(remaining));
    connection->calls.Add(&context);
  }
  ~UnaryCall() { connection->calls.Remove(&context); }

  const std::shared_ptr<Connection> connection;  // first in, last out
  grpc::ClientContext context;
  const Request request;
  Response response;
  grpc::Status status;
  std::unique_ptr<grpc::ClientAsyncResponseReader<Response>> reader;  // lives in the context's call
};

// `prepare(call)` makes the reader.
template <typename Request, typename Response, typename Prepare>
Task<absl::StatusOr<Response>> Await(std::shared_ptr<UnaryCall<Request, Response>> call,
                                     Prepare prepare) {
  using Result = absl::StatusOr<Response>;
  auto initiate = [call, prepare](auto handler) {
    asio::cancellation_slot slot = asio::get_associated_cancellation_slot(handler);
    if (slot.is_connected()) {
      slot.assign([weak = std::weak_ptr(call)](asio::cancellation_type) {
        if (auto alive = weak.lock()) alive->context.TryCancel();
      });
    }
    auto shared = std::make_shared<decltype(handler)>(std::move(handler));
    call->reader = prepare(*call);
    call->reader->StartCall();
    // Keeps the call until it has ended, and then lets go of it on the caller's executor.
    auto done = [call, shared, slot](bool) mutable {
      auto executor = asio::get_associated_executor(*shared);
      asio::post(executor, [call = std::move(call), shared = std::move(shared), slot]() mutable {
        if (slot.is_connected()) slot.clear();
        const absl::Status status = FromCall(call->status);
        Result result = status.ok() ? Result(std::move(call->response)) : Result(status);
        call.reset();
        std::move (*shared)(std::move(result));
      });
    };
    call->reader->Finish(&call->response, &call->status, GrpcPoller::Tag(std::move(done)));
  };
  Result result = co_await asio::async_initiate<const asio::use_awaitable_t<>, void(Result)>(
      std::move(initiate), asio::use_awaitable);
  co_return result;
}

// Reads as fast as the plugin sends, up to one message per entry. Each operation holds it, so that
// it lives until gRPC is done with it.
class BatchReader : public std::enable_shared_from_this<BatchReader> {
 public:
  BatchReader(std::shared_ptr<Connection> connection, Executor strand,
              BatchGetMetricsRequest request)
      : connection_(std::move(connection)),
        strand_(std::move(strand)),
        request_(std::move(request)) {}
  ~BatchReader() { connection_->calls.Remove(&context_); }

  static std::shared_ptr<BatchReader> Start(std::shared_ptr<Connection> connection, Executor strand,
                                            BatchGetMetricsRequest request,
                                            absl::Duration remaining) {
    auto reader =
        std::make_shared<BatchReader>(std::move(connection), std::move(strand), std::move(request));
    reader->context_.set_deadline(GrpcDeadline(remaining));
    reader->connection_->calls.Add(&reader->context_);
    reader->Begin();
    return reader;
  }

  BatchStream::Received Take() {
    MutexLock lock(&mutex_);
    BatchStream::Received taken{.responses = std::exchange(received_.responses, {}),
                                .end = received_.end};
    return taken;
  }

  const Event& changed() const { return changed_; }
  void Cancel() { context_.TryCancel(); }

 private:
  void Begin() {
    stream_ = connection_->scaler.PrepareAsyncBatchGetMetrics(&context_, request_,
                                                              connection_->poller->queue());
    stream_->StartCall(GrpcPoller::Tag([self = shared_from_this()](bool ok) { self->Go(ok); }));
  }

  void Go(bool ok) { ok ? Read() : Finish(); }

  void Read() {
    response_.Clear();
    stream_->Read(&response_, GrpcPoller::Tag([self = shared_from_this()](bool ok) {
      if (ok) self->Keep();
      self->Go(ok && !self->flooded_);
    }));
  }

  void Keep() {
    {
      MutexLock lock(&mutex_);
      received_.responses.push_back(std::move(response_));
    }
    changed_.Notify();
    flooded_ = ++count_ > request_.entries_size();
    if (flooded_) context_.TryCancel();
  }

  void Finish() {
    stream_->Finish(&status_, GrpcPoller::Tag([self = shared_from_this()](bool) mutable {
      // Known on the strand only: whoever hears that it has ended may be the last to need it.
      const Executor strand = self->strand_;
      asio::post(strand, [last = std::move(self)] { last->End(); });
    }));
  }

  void End() {
    {
      MutexLock lock(&mutex_);
      received_.end = flooded_ ? absl::InternalError(absl::StrCat(
                                     "BatchGetMetrics: want at most one answer per entry, got ",
                                     count_, " for ", request_.entries_size()))
                               : FromCall(status_);
    }
    changed_.Notify();
  }

  const std::shared_ptr<Connection> connection_;
  const Executor strand_;
  grpc::ClientContext context_;
  const BatchGetMetricsRequest request_;
  std::unique_ptr<grpc::ClientAsyncReader<BatchGetMetricsResponse>> stream_;  // in context_'s call
  // Of the poller's thread, until the stream has ended.
  BatchGetMetricsResponse response_;
  grpc::Status status_;
  int count_ = 0;
  bool flooded_ = false;

  const Event changed_;
  Mutex mutex_;
  BatchStream::Received received_ ABSL_GUARDED_BY(mutex_);
};

class GrpcBatchStream : public BatchStream {
 public:
  GrpcBatchStream(Clock& clock, std::shared_ptr<BatchReader> reader)
      : clock_(clock), reader_(std::move(reader)) {}
  ~GrpcBatchStream() override { reader_->Cancel(); }  // nothing to cancel once it has ended

  Task<Received> Next(SteadyTime until) override {
    while (true) {
      Received received = reader_->Take();
      if (received.end || !received.responses.empty()) co_return received;
      const bool notified = co_await reader_->changed().WaitUntil(clock_, until);
      if (!notified) co_return reader_->Take();
    }
  }
  void Cancel() override { reader_->Cancel(); }

 private:
  Clock& clock_;
  const std::shared_ptr<BatchReader> reader_;
};

class GrpcChannel : public PluginChannel {
 public:
  GrpcChannel(Clock& clock, Executor strand, std::shared_ptr<GrpcPoller> poller,
              std::shared_ptr<grpc::Channel> channel)
      : clock_(clock),
        strand_(std::move(strand)),
        connection_(std::make_shared<Connection>(std::move(poller), std::move(channel))) {}

  bool Ready() const override {
    return connection_->channel->GetState(false) == GRPC_CHANNEL_READY;
  }
  void CancelAll() override { connection_->calls.CancelAll(); }

  Task<absl::StatusOr<scaler::v1::DescribeResponse>> Describe(scaler::v1::DescribeRequest request,
                                                              Deadline deadline) override {
    return Call<scaler::v1::DescribeResponse>(std::move(request), deadline, [](auto& call) {
      return call.connection->scaler.PrepareAsyncDescribe(&call.context, call.request,
                                                          call.connection->poller->queue());
    });
  }
  Task<absl::StatusOr<scaler::v1::ValidateTriggerResponse>> ValidateTrigger(
      scaler::v1::ValidateTriggerRequest request, Deadline deadline) override {
    return Call<scaler::v1::ValidateTriggerResponse>(std::move(request), deadline, [](auto& call) {
      return call.connection->scaler.PrepareAsyncValidateTrigger(&call.context, call.request,
                                                                 call.connection->poller->queue());
    });
  }
  Task<absl::StatusOr<scaler::v1::GetMetricSpecForScalingResponse>> GetMetricSpecForScaling(
      scaler::v1::GetMetricSpecForScalingRequest request, Deadline deadline) override {
    return Call<scaler::v1::GetMetricSpecForScalingResponse>(
        std::move(request), deadline, [](auto& call) {
          return call.connection->scaler.PrepareAsyncGetMetricSpecForScaling(
              &call.context, call.request, call.connection->poller->queue());
        });
  }
  Task<absl::StatusOr<scaler::v1::GetMetricsResponse>> GetMetrics(
      scaler::v1::GetMetricsRequest request, Deadline deadline) override {
    return Call<scaler::v1::GetMetricsResponse>(std::move(request), deadline, [](auto& call) {
      return call.connection->scaler.PrepareAsyncGetMetrics(&call.context, call.request,
                                                            call.connection->poller->queue());
    });
  }
  std::unique_ptr<BatchStream> BatchGetMetrics(BatchGetMetricsRequest request,
                                               Deadline deadline) override {
    return std::make_unique<GrpcBatchStream>(
        clock_,
        BatchReader::Start(connection_, strand_, std::move(request), deadline.Remaining(clock_)));
  }
  Task<bool> AnswersCheck(Deadline deadline) override {
    const auto result = co_await Call<grpc::health::v1::HealthCheckResponse>(
        grpc::health::v1::HealthCheckRequest(), deadline, [](auto& call) {
          return call.connection->health.PrepareAsyncCheck(&call.context, call.request,
                                                           call.connection->poller->queue());
        });
    co_return !absl::IsDeadlineExceeded(result.status()) && !absl::IsUnavailable(result.status()) &&
        !absl::IsCancelled(result.status());
  }

 private:
  template <typename Response, typename Request, typename Prepare>
  Task<absl::StatusOr<Response>> Call(Request request, Deadline deadline, Prepare prepare) {
    return Await(std::make_shared<UnaryCall<Request, Response>>(connection_, std::move(request),
                                                                deadline.Remaining(clock_)),
                 prepare);
  }

  Clock& clock_;
  const Executor strand_;
  const std::shared_ptr<Connection> connection_;
};

absl::StatusOr<std::string> ReadPem(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file || text.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("mutual TLS: want a PEM file at ", path, ", got nothing readable"));
  }
  return text;
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> CredentialsFor(
    const PluginAddress& address, const GrpcChannelOptions& options) {
  if (address.is_unix() || address.is_loopback()) return grpc::InsecureChannelCredentials();
  if (options.ca_file.empty() || options.cert_file.empty() || options.key_file.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("address ", address.target,
                     ": want mutual TLS (CA, certificate and key files) for a plugin that is "
                     "neither on a Unix socket nor on loopback, got none"));
  }
  grpc::SslCredentialsOptions tls;
  ASSIGN_OR_RETURN(tls.pem_root_certs, ReadPem(options.ca_file));
  ASSIGN_OR_RETURN(tls.pem_cert_chain, ReadPem(options.cert_file));
  ASSIGN_OR_RETURN(tls.pem_private_key, ReadPem(options.key_file));
  return grpc::SslCredentials(tls);
}

grpc::ChannelArguments ArgumentsFor(const PluginAddress& address,
                                    const GrpcChannelOptions& options) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(options.max_receive_bytes);
  arguments.SetMaxSendMessageSize(2 << 20);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);  // who retries, and when, is decided above
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  arguments.SetInt(GRPC_ARG_CLIENT_IDLE_TIMEOUT_MS, INT_MAX);
  // The channel is dropped when its connection fails; these only keep gRPC from dialling first.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 10'000);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 10'000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 10'000);
  if (address.is_unix()) arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  return arguments;
}

}  // namespace

PluginConnector MakeGrpcConnector(Clock& clock, Executor strand, GrpcChannelOptions options) {
  return [&clock, strand = std::move(strand), options = std::move(options),
          poller = std::make_shared<GrpcPoller>()](
             const PluginAddress& address) -> absl::StatusOr<std::shared_ptr<PluginChannel>> {
    ASSIGN_OR_RETURN(const auto credentials, CredentialsFor(address, options));
    return std::make_shared<GrpcChannel>(
        clock, strand, poller,
        grpc::CreateCustomChannel(address.target, credentials, ArgumentsFor(address, options)));
  };
}

}  // namespace outrigger::host
