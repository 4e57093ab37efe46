// SPDX-License-Identifier: Apache-2.0
//
// A scaler that does what each trigger's metadata say, to see what the client makes of it:
//   say: <number> | nan | inf | hang | big | many | flaky | flood | code:<gRPC code> | other-name
//
// outrigger-test-faulty-scaler ADDRESS LOG TYPE[,TYPE] MODE: serves ADDRESS ("unix:/path" or
// "127.0.0.1:0") and appends one line per call to LOG: "<rpc> <peer> <entries>", after a first line
// "port <port>". MODE is "batch", "no-batch" (announces what it lacks) or "tls:<folder>" with
// ca.pem, cert.pem and key.pem: mutual TLS.
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_context.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "grpc/health/v1/health.grpc.pb.h"
#include "outrigger/scaler/v1/scaler.grpc.pb.h"

namespace {

using namespace outrigger::scaler::v1;  // NOLINT(google-build-using-namespace): a test program

class CallLog {
 public:
  explicit CallLog(const char* path) : file_(std::fopen(path, "ae")) {}
  void Line(const std::string& text) {
    const std::lock_guard lock(mutex_);
    std::fprintf(file_, "%s\n", text.c_str());
    std::fflush(file_);
  }
  void Call(const char* rpc, const grpc::ServerContext& context, int entries = 1) {
    Line(absl::StrCat(rpc, " ", context.peer(), " ", entries));
  }

 private:
  std::mutex mutex_;
  std::FILE* file_;
};

void HangUntilCancelled(const grpc::ServerContext& context) {
  while (!context.IsCancelled()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

std::string Said(const Trigger& trigger) {
  auto it = trigger.metadata().find("say");
  return it == trigger.metadata().end() ? "" : it->second;
}

class FaultyScaler final : public Scaler::Service {
 public:
  FaultyScaler(CallLog& log, std::vector<std::string> types, bool batch)
      : log_(log), types_(std::move(types)), batch_(batch) {}

  grpc::Status Describe(grpc::ServerContext* context, const DescribeRequest*,
                        DescribeResponse* response) override {
    log_.Call("Describe", *context);
    response->set_name("faulty");
    response->set_version("1.2.3");
    response->add_revisions(1);
    for (const std::string& type : types_) response->add_trigger_types()->set_name(type);
    response->mutable_capabilities()->set_batch(true);  // "no-batch" lies
    return grpc::Status::OK;
  }

  grpc::Status GetMetricSpecForScaling(grpc::ServerContext* context,
                                       const GetMetricSpecForScalingRequest*,
                                       GetMetricSpecForScalingResponse* response) override {
    log_.Call("GetMetricSpecForScaling", *context);
    MetricSpec* spec = response->add_specs();
    spec->set_name("depth");
    spec->set_target(5);
    return grpc::Status::OK;
  }

  grpc::Status GetMetrics(grpc::ServerContext* context, const GetMetricsRequest* request,
                          GetMetricsResponse* response) override {
    log_.Call("GetMetrics", *context);
    if (Said(request->trigger()) == "hang") HangUntilCancelled(*context);
    return Answer(*request, *response);
  }

  grpc::Status BatchGetMetrics(grpc::ServerContext* context, const BatchGetMetricsRequest* request,
                               grpc::ServerWriter<BatchGetMetricsResponse>* writer) override {
    log_.Call("BatchGetMetrics", *context, request->entries_size());
    if (!batch_) return grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "no batches here");
    bool hangs = false;
    for (int i = 0; i < request->entries_size(); ++i) {
      if (Said(request->entries(i).request().trigger()) == "hang") {
        hangs = true;
        continue;
      }
      BatchGetMetricsResponse response;
      response.set_index(i);
      const grpc::Status status = Answer(request->entries(i).request(), *response.mutable_answer());
      if (!status.ok()) {
        response.mutable_error()->set_code(status.error_code());
        response.mutable_error()->set_message(status.error_message());
      }
      const int times = Said(request->entries(i).request().trigger()) == "flood" ? 100'000 : 1;
      for (int n = 0; n < times && writer->Write(response); ++n) {
      }
    }
    if (hangs) HangUntilCancelled(*context);
    return grpc::Status::OK;
  }

 private:
  grpc::Status Answer(const GetMetricsRequest& request, GetMetricsResponse& response) {
    const std::string said = Said(request.trigger());
    int code = 0;
    if (absl::StartsWith(said, "code:") && absl::SimpleAtoi(said.substr(5), &code)) {
      return grpc::Status(static_cast<grpc::StatusCode>(code), "as told");
    }
    if (said == "flaky" && calls_++ % 2 == 0) {
      return grpc::Status(grpc::StatusCode::UNAVAILABLE, "the source blinked");
    }
    response.set_active(true);
    for (int i = 0; i < (said == "many" ? 1001 : 1); ++i) {
      MetricValue* value = response.add_values();
      value->set_name(said == "other-name" ? "width" : "depth");
      value->set_value(Number(said));
      if (said == "big") (*value->mutable_labels())["text"] = std::string(1 << 20, 'x');
    }
    return grpc::Status::OK;
  }

  static double Number(const std::string& said) {
    if (said == "nan") return std::nan("");
    if (said == "inf") return std::numeric_limits<double>::infinity();
    double number = 7;
    if (!absl::SimpleAtod(said, &number)) number = 7;
    return number;
  }

  CallLog& log_;
  const std::vector<std::string> types_;
  const bool batch_;
  std::atomic<int> calls_ = 0;
};

class FaultyHealth final : public grpc::health::v1::Health::Service {
 public:
  explicit FaultyHealth(CallLog& log) : log_(log) {}
  grpc::Status Check(grpc::ServerContext* context, const grpc::health::v1::HealthCheckRequest*,
                     grpc::health::v1::HealthCheckResponse* response) override {
    log_.Call("Check", *context);
    response->set_status(grpc::health::v1::HealthCheckResponse::SERVING);
    return grpc::Status::OK;
  }

 private:
  CallLog& log_;
};

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::shared_ptr<grpc::ServerCredentials> CredentialsFor(const std::string& mode) {
  if (!absl::StartsWith(mode, "tls:")) return grpc::InsecureServerCredentials();
  const std::string folder = mode.substr(4);
  grpc::SslServerCredentialsOptions options(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = ReadFile(folder + "/ca.pem");
  options.pem_key_cert_pairs.push_back(
      {ReadFile(folder + "/key.pem"), ReadFile(folder + "/cert.pem")});
  return grpc::SslServerCredentials(options);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const std::string mode = argv[4];
  CallLog log(argv[2]);
  FaultyScaler scaler(log, absl::StrSplit(argv[3], ','), mode != "no-batch");
  FaultyHealth health(log);
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(argv[1], CredentialsFor(mode), &port);
  builder.RegisterService(&scaler);
  builder.RegisterService(&health);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  log.Line(absl::StrCat("port ", port));
  server->Wait();
  return 0;
}
