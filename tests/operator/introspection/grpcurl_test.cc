// SPDX-License-Identifier: Apache-2.0
// The operator's own port seen from outside: grpcurl and grpc_health_probe, which know nothing but
// reflection and health.
#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdlib>
#include <thread>

#include "host/base/real_clock.h"
#include "operator/introspection/introspection_server.h"
#include "tests/support/process.h"

namespace outrigger::controller::introspection {
namespace {

namespace pb = ::outrigger::introspection::v1;
using testing::AllOf;
using testing::HasSubstr;

std::string GoTool(const std::string& name) {
  const char* cache = std::getenv("OUTRIGGER_CACHE");
  const char* home = std::getenv("HOME");
  const std::string root =
      cache != nullptr ? cache : absl::StrCat(home == nullptr ? "" : home, "/.cache/outrigger");
  return absl::StrCat(root, "/go-tools/", name);
}

std::string RunTool(std::vector<std::string> argv) {
  tests::Process::Options process;
  process.argv = std::move(argv);
  const auto result = tests::RunCommand(std::move(process), "", absl::Seconds(20));
  if (!result.ok()) return result.status().ToString();
  return result->ok() ? result->stdout_text + result->stderr_text : result->Describe();
}

class OperatorGrpcurlTest : public testing::Test {
 protected:
  OperatorGrpcurlTest() {
    auto server = IntrospectionServer::Start(
        {.listen_address = "127.0.0.1:0"}, core_.get_executor(), clock_,
        [] {
          pb::ListPluginsResponse response;
          response.add_plugins()->set_name("redis");
          return response;
        },
        [](const std::string&, const std::string& name) {
          pb::ListObjectsResponse response;
          if (name != "absent") response.add_objects()->set_name("orders");
          return response;
        });
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  ~OperatorGrpcurlTest() override {
    server_->Stop();
    work_.reset();
  }

  std::string Grpcurl(std::vector<std::string> what) {
    std::vector<std::string> argv = {GoTool("grpcurl"), "-plaintext", server_->address()};
    argv.insert(argv.end(), what.begin(), what.end());
    return RunTool(std::move(argv));
  }
  std::string Call(const std::string& method, const std::string& request = "{}") {
    return RunTool({GoTool("grpcurl"), "-plaintext", "-d", request, server_->address(), method});
  }

  host::RealClock clock_;
  boost::asio::io_context core_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{
      core_.get_executor()};
  std::unique_ptr<IntrospectionServer> server_;
  std::jthread core_thread_{[this] { core_.run(); }};
};

// Shows R30.
TEST_F(OperatorGrpcurlTest, ListsAndDescribesEveryService) {
  EXPECT_THAT(Grpcurl({"list"}), AllOf(HasSubstr("outrigger.introspection.v1.Introspection\n"),
                                       HasSubstr("grpc.health.v1.Health\n")));
  EXPECT_THAT(Grpcurl({"describe", "outrigger.introspection.v1.Introspection"}),
              AllOf(HasSubstr("rpc ListPlugins"), HasSubstr("rpc ListObjects")));
  EXPECT_THAT(Grpcurl({"describe", "outrigger.introspection.v1.Decision"}),
              HasSubstr("explanation"));
}

// Shows R30.
TEST_F(OperatorGrpcurlTest, CallsEveryService) {
  EXPECT_THAT(Call("outrigger.introspection.v1.Introspection/ListPlugins"),
              HasSubstr(R"("name": "redis")"));
  EXPECT_THAT(Call("outrigger.introspection.v1.Introspection/ListObjects"),
              HasSubstr(R"("name": "orders")"));
  EXPECT_THAT(Call("outrigger.introspection.v1.Introspection/ListObjects", R"({"name":"absent"})"),
              HasSubstr("NotFound"));
}

// Shows R30.
TEST_F(OperatorGrpcurlTest, ReadsItsHealth) {
  for (const char* service : {"", "outrigger.introspection.v1.Introspection"}) {
    EXPECT_THAT(
        Call("grpc.health.v1.Health/Check", absl::StrCat(R"({"service":")", service, "\"}")),
        HasSubstr(R"("status": "SERVING")"));
  }
  EXPECT_THAT(RunTool({GoTool("grpc_health_probe"), "-addr", server_->address()}),
              HasSubstr("SERVING"));
}

}  // namespace
}  // namespace outrigger::controller::introspection
