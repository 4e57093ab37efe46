// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/answer_watch.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>
#include <google/protobuf/timestamp.pb.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "host/base/grpc_status.h"
#include "host/base/status.h"
#include "outrigger/introspection/v1/introspection.pb.h"
#include "tests/support/scripted/stamp.h"

namespace outrigger::bench {
namespace {

namespace pb = ::outrigger::introspection::v1;

constexpr char kListObjects[] = "/outrigger.introspection.v1.Introspection/ListObjects";
constexpr std::chrono::seconds kTimeout(10);

absl::Time ToTime(const google::protobuf::Timestamp& time) {
  return absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos());
}

}  // namespace

struct AnswerWatch::Channel {
  explicit Channel(uint16_t port)
      : stub(grpc::CreateChannel(absl::StrCat("127.0.0.1:", port),
                                 grpc::InsecureChannelCredentials())) {}

  absl::StatusOr<pb::ListObjectsResponse> ListObjects() {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kTimeout);
    context.set_wait_for_ready(true);
    grpc::CompletionQueue queue;
    const auto call = stub.PrepareUnaryCall(&context, kListObjects, {}, &queue);
    call->StartCall();
    pb::ListObjectsResponse response;
    grpc::Status status;
    call->Finish(&response, &status, this);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    if (!status.ok()) return host::Annotate(host::FromGrpc(status), "ListObjects");
    return response;
  }

  grpc::TemplatedGenericStub<pb::ListObjectsRequest, pb::ListObjectsResponse> stub;
};

AnswerWatch::AnswerWatch(uint16_t grpc_port, std::string prefix)
    : prefix_(std::move(prefix)), channel_(std::make_unique<Channel>(grpc_port)) {}

AnswerWatch::~AnswerWatch() = default;

absl::Status AnswerWatch::Look() {
  ASSIGN_OR_RETURN(const pb::ListObjectsResponse response, channel_->ListObjects());
  looked_ = absl::Now();
  for (const pb::Object& object : response.objects()) {
    if (!absl::StartsWith(object.name(), prefix_)) continue;
    if (object.triggers().empty() || !object.triggers(0).has_value()) continue;
    const absl::Time answered = tests::TimeOfStamp(object.triggers(0).value());
    const absl::Time decided = ToTime(object.decision().at());
    Answer& answer = objects_[object.name()][answered];
    if (answer.decided) continue;  // a later decision has another reason
    answer.decided = decided >= answered;
    answer.took = (answer.decided ? decided : looked_) - answered;
  }
  return absl::OkStatus();
}

std::vector<double> AnswerWatch::UntilDecided() const {
  std::vector<double> milliseconds;
  for (const auto& [name, answers] : objects_) {
    for (const auto& [answered, answer] : answers) {
      milliseconds.push_back(absl::ToDoubleMilliseconds(answer.took));
    }
  }
  std::sort(milliseconds.begin(), milliseconds.end());
  return milliseconds;
}

std::vector<double> AnswerWatch::Lateness(absl::Duration polling_interval) const {
  std::vector<double> milliseconds;
  for (const auto& [name, answers] : objects_) {
    for (auto it = answers.begin(); it != answers.end(); ++it) {
      const auto next = std::next(it);
      const absl::Duration late =
          (next == answers.end() ? looked_ : next->first) - it->first - polling_interval;
      if (next != answers.end() || late > absl::ZeroDuration()) {
        milliseconds.push_back(absl::ToDoubleMilliseconds(std::max(late, absl::ZeroDuration())));
      }
    }
  }
  std::sort(milliseconds.begin(), milliseconds.end());
  return milliseconds;
}

}  // namespace outrigger::bench
