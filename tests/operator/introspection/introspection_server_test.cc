// SPDX-License-Identifier: Apache-2.0
#include "operator/introspection/introspection_server.h"

#include <gmock/gmock.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <future>
#include <thread>

#include "grpc/health/v1/health.grpc.pb.h"
#include "host/base/real_clock.h"
#include "outrigger/introspection/v1/introspection.grpc.pb.h"
#include "tests/support/certificates.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wait_for.h"

namespace outrigger::controller::introspection {
namespace {

namespace pb = ::outrigger::introspection::v1;
using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using testing::HasSubstr;

// A server whose core strand is an io_context that the test runs when it wants to.
class IntrospectionServerTest : public testing::Test {
 protected:
  ~IntrospectionServerTest() override {
    if (server_ != nullptr) server_->Stop();
    StopCore();
  }

  absl::Status Start(const IntrospectionServer::Options& options) {
    absl::StatusOr<std::unique_ptr<IntrospectionServer>> server = IntrospectionServer::Start(
        options, core_.get_executor(), clock_,
        [this] {
          answered_on_ = std::this_thread::get_id();
          pb::ListPluginsResponse response;
          response.add_plugins()->set_name("redis");
          return response;
        },
        [](const std::string& namespace_name, const std::string& name) {
          pb::ListObjectsResponse response;
          if (name != "absent") {
            response.add_objects()->set_namespace_(namespace_name);
            response.mutable_objects(0)->set_name(name);
          }
          return response;
        });
    if (!server.ok()) return server.status();
    server_ = *std::move(server);
    return absl::OkStatus();
  }
  void StartCore() {
    core_thread_ = std::jthread([this] {
      auto work = boost::asio::make_work_guard(core_);
      core_.run();
    });
  }
  void StopCore() { core_.stop(); }

  std::shared_ptr<grpc::Channel> Channel() {
    return grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials());
  }
  std::unique_ptr<pb::Introspection::Stub> Client() {
    return pb::Introspection::NewStub(Channel());
  }
  static void SetDeadline(grpc::ClientContext& context) {
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
  }
  static bool IsServing(const std::shared_ptr<grpc::Channel>& channel,
                        const std::string& service = "") {
    grpc::ClientContext context;
    SetDeadline(context);
    HealthCheckRequest request;
    request.set_service(service);
    HealthCheckResponse response;
    return Health::NewStub(channel)->Check(&context, request, &response).ok() &&
           response.status() == HealthCheckResponse::SERVING;
  }
  grpc::Status ListObjects(const std::string& namespace_name, const std::string& name,
                           pb::ListObjectsResponse& response) {
    grpc::ClientContext context;
    SetDeadline(context);
    pb::ListObjectsRequest request;
    request.set_namespace_(namespace_name);
    request.set_name(name);
    return Client()->ListObjects(&context, request, &response);
  }

  host::RealClock clock_;
  boost::asio::io_context core_;
  std::atomic<std::thread::id> answered_on_;
  std::unique_ptr<IntrospectionServer> server_;
  std::jthread core_thread_;
};

constexpr char kAnyPort[] = "127.0.0.1:0";

TEST_F(IntrospectionServerTest, AnswersOnTheCoreStrand) {
  ASSERT_TRUE(Start({.listen_address = kAnyPort}).ok());
  StartCore();
  grpc::ClientContext context;
  SetDeadline(context);
  pb::ListPluginsResponse response;
  const grpc::Status status = Client()->ListPlugins(&context, {}, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.plugins(0).name(), "redis");
  EXPECT_EQ(answered_on_.load(), core_thread_.get_id());
}

TEST_F(IntrospectionServerTest, AnObjectThatIsNamedAndNotKnownIsNotFound) {
  ASSERT_TRUE(Start({.listen_address = kAnyPort}).ok());
  StartCore();
  pb::ListObjectsResponse response;
  ASSERT_TRUE(ListObjects("shop", "orders", response).ok());
  EXPECT_EQ(response.objects(0).namespace_(), "shop");
  EXPECT_EQ(response.objects(0).name(), "orders");
  const grpc::Status absent = ListObjects("shop", "absent", response);
  EXPECT_EQ(absent.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(absent.error_message(), HasSubstr("no ScaledObject shop/absent is tracked"));
}

TEST_F(IntrospectionServerTest, HealthIsServedWithoutTheCore) {
  ASSERT_TRUE(Start({.listen_address = kAnyPort}).ok());
  EXPECT_TRUE(IsServing(Channel()));
  EXPECT_TRUE(IsServing(Channel(), "outrigger.introspection.v1.Introspection"));
  EXPECT_FALSE(IsServing(Channel(), "outrigger.scaler.v1.Scaler"));
}

// The strand may run no more when the server stops: that must not hold the process up.
TEST_F(IntrospectionServerTest, StopEndsQuestionsThatTheCoreNeverAnswers) {
  ASSERT_TRUE(Start({.listen_address = kAnyPort}).ok());
  std::promise<void> free_the_core;
  std::promise<void> core_is_busy;
  StartCore();
  boost::asio::post(core_, [&] {
    core_is_busy.set_value();
    free_the_core.get_future().wait();
  });
  core_is_busy.get_future().wait();
  const std::shared_ptr<grpc::Channel> channel = Channel();
  const std::unique_ptr<pb::Introspection::Stub> client = pb::Introspection::NewStub(channel);
  struct Asked {
    grpc::ClientContext context;
    pb::ListPluginsRequest request;
    pb::ListPluginsResponse response;
    std::promise<grpc::Status> status;
  };
  std::vector<Asked> asked(5);
  for (Asked& one : asked) {
    SetDeadline(one.context);
    client->async()->ListPlugins(
        &one.context, &one.request, &one.response,
        [&one](const grpc::Status& status) { one.status.set_value(status); });
  }
  // An answer that came later on the same connection: the questions are with the server.
  EXPECT_TRUE(IsServing(channel));
  const absl::Time start = absl::Now();
  server_->Stop();
  EXPECT_LT(absl::Now() - start, absl::Seconds(3));
  for (Asked& one : asked) {
    const grpc::Status status = one.status.get_future().get();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
    EXPECT_EQ(status.error_message(), "the operator is stopping");
  }
  free_the_core.set_value();  // what was posted finds no question any more
}

TEST_F(IntrospectionServerTest, StopEndsHealthWatchesAndClosesThePort) {
  ASSERT_TRUE(Start({.listen_address = kAnyPort}).ok());
  grpc::ClientContext context;
  SetDeadline(context);
  const std::unique_ptr<Health::Stub> health = Health::NewStub(Channel());
  const auto watch = health->Watch(&context, HealthCheckRequest());
  HealthCheckResponse response;
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::SERVING);
  const absl::Time start = absl::Now();
  server_->Stop();
  EXPECT_LT(absl::Now() - start, absl::Seconds(3));
  EXPECT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::NOT_SERVING);
  EXPECT_FALSE(watch->Read(&response));
  pb::ListObjectsResponse objects;
  EXPECT_FALSE(ListObjects("", "", objects).ok());
}

struct Address {
  const char* name;
  const char* address;
  absl::StatusCode want;
  const char* message;
};
class ListenAddressTest : public IntrospectionServerTest,
                          public testing::WithParamInterface<Address> {};

TEST_P(ListenAddressTest, IsLoopbackWithoutTls) {
  const absl::Status status = Start({.listen_address = GetParam().address});
  EXPECT_EQ(status.code(), GetParam().want) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Addresses, ListenAddressTest,
    testing::ValuesIn<Address>({
        {"Loopback", "127.0.0.1:0", absl::StatusCode::kOk, ""},
        {"LoopbackOfAnotherNumber", "127.1.2.3:0", absl::StatusCode::kOk, ""},
        {"Localhost", "localhost:0", absl::StatusCode::kOk, ""},
        {"AllAddresses", "0.0.0.0:0", absl::StatusCode::kInvalidArgument,
         "gRPC port: want a loopback address, or mutual TLS, got \"0.0.0.0:0\" without TLS"},
        {"AllAddressesOfV6", "[::]:0", absl::StatusCode::kInvalidArgument, "without TLS"},
        {"NoHost", ":9666", absl::StatusCode::kInvalidArgument, "want host:port, got \":9666\""},
        {"PortTooHigh", "127.0.0.1:99999", absl::StatusCode::kInvalidArgument,
         "want host:port, got \"127.0.0.1:99999\""},
        {"NoPort", "127.0.0.1", absl::StatusCode::kInvalidArgument, "want host:port"},
    }),
    [](const testing::TestParamInfo<Address>& info) { return std::string(info.param.name); });

TEST_F(IntrospectionServerTest, APortThatIsTakenIsUnavailable) {
  ASSERT_TRUE(Start({.listen_address = kAnyPort}).ok());
  const std::unique_ptr<IntrospectionServer> first = std::move(server_);
  const absl::Status second = Start({.listen_address = first->address()});
  EXPECT_EQ(second.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.message()), HasSubstr(first->address()));
}

TEST_F(IntrospectionServerTest, HalfOfTheTlsFilesIsRefused) {
  const absl::Status status = Start({.listen_address = kAnyPort, .tls = {.certificate = "a.crt"}});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("want certificate, key and client CA"));
}

TEST_F(IntrospectionServerTest, WithMutualTlsOnlyClientsOfTheAuthorityAreServed) {
  const tests::TempDir dir;
  const auto authority = *tests::CertificateAuthority::Create("ca");
  const auto stranger = *tests::CertificateAuthority::Create("stranger");
  const tests::KeyPair serving = *authority->Issue({.common_name = "op", .ips = {"127.0.0.1"}});
  ASSERT_TRUE(Start({.listen_address = kAnyPort,
                     .tls = {.certificate = dir.Write("tls.crt", serving.certificate),
                             .key = dir.Write("tls.key", serving.key),
                             .client_ca = dir.Write("ca.crt", authority->certificate())}})
                  .ok());
  const auto check_as = [&](const tests::CertificateAuthority& of) {
    const tests::KeyPair identity = *of.Issue({.common_name = "client"});
    const auto channel = grpc::CreateChannel(
        server_->address(), grpc::SslCredentials({.pem_root_certs = authority->certificate(),
                                                  .pem_private_key = identity.key,
                                                  .pem_cert_chain = identity.certificate}));
    return IsServing(channel);
  };
  EXPECT_TRUE(check_as(*authority));
  EXPECT_FALSE(check_as(*stranger));
}

}  // namespace
}  // namespace outrigger::controller::introspection
