// SPDX-License-Identifier: Apache-2.0
#include "operator/adapter/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "host/base/event.h"
#include "host/base/fake_clock.h"
#include "host/base/real_clock.h"
#include "tests/operator/adapter/http_client.h"
#include "tests/operator/adapter/threads.h"
#include "tests/support/certificates.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wait_for.h"

namespace outrigger::controller::adapter {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using tests::CertificateAuthority;
using tests::HttpAnswer;
using tests::HttpClient;
using tests::KeyPair;
using tests::WaitFor;

constexpr char kServerName[] = "first.example";

// An HttpServer over TLS or plain whose handler prints what it was asked, and waits at /wait until
// the test says so.
class HttpServerTest : public testing::Test {
 protected:
  HttpServerTest() : authority_(*CertificateAuthority::Create("test-ca")) {
    WritePair(*authority_->Issue({.common_name = kServerName}));
  }
  ~HttpServerTest() override { StopServer(); }

  void WritePair(const KeyPair& pair) {
    dir_.Write("tls.crt", pair.certificate);
    dir_.Write("tls.key", pair.key);
  }

  HttpServer& Start(bool tls, HttpServer::Options options = {}) {
    return StartWith(real_clock_, tls, std::move(options));
  }

  HttpServer& StartWith(host::Clock& clock, bool tls, HttpServer::Options options = {}) {
    options.name = "test";
    options.address = "127.0.0.1";
    if (tls) {
      options.cert_file = dir_.File("tls.crt");
      options.key_file = dir_.File("tls.key");
    }
    server_ = std::make_unique<HttpServer>(
        threads_.executor(), clock, host::Logger(host::MakeNullSink()),
        [this](std::shared_ptr<const HttpRequest> request) { return Answer(std::move(request)); },
        std::move(options));
    const absl::Status started = server_->Start();
    EXPECT_TRUE(started.ok()) << started;
    return *server_;
  }

  void StopServer() {
    if (server_ == nullptr) return;
    release_.NotifyAll();
    threads_.Run(threads_.strand(), server_->Stop());
    server_.reset();
  }

  std::unique_ptr<HttpClient> Connect(bool tls = true) {
    absl::StatusOr<std::unique_ptr<HttpClient>> client =
        tls ? HttpClient::ConnectTls(server_->port(), {}) : HttpClient::Connect(server_->port());
    EXPECT_TRUE(client.ok()) << client.status();
    return *std::move(client);
  }

  host::Task<HttpResponse> Answer(std::shared_ptr<const HttpRequest> request) {
    if (request->target == "/wait") {
      ++waiting_;
      co_await release_.Wait(real_clock_);
    }
    co_return HttpResponse{.body = absl::StrCat(request->method, " ", request->target),
                           .content_type = "text/plain",
                           .close = request->target == "/close"};
  }

  const tests::TempDir dir_;
  const std::unique_ptr<CertificateAuthority> authority_;
  host::RealClock real_clock_;
  host::Event release_;
  std::atomic<int> waiting_ = 0;
  tests::Threads threads_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, AnswersManyRequestsOnOneConnection) {
  Start(/*tls=*/true);
  const std::unique_ptr<HttpClient> client = Connect();
  for (int i = 0; i < 100; ++i) {
    const absl::StatusOr<HttpAnswer> answer = client->Get(absl::StrCat("/", i, "?a=b"));
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->code, 200);
    EXPECT_EQ(answer->body, absl::StrCat("GET /", i, "?a=b"));
  }
}

TEST_F(HttpServerTest, AnswersRequestsThatWereSentTogetherInTheirOrder) {
  Start(/*tls=*/false);
  const std::unique_ptr<HttpClient> client = Connect(/*tls=*/false);
  ASSERT_TRUE(client->Send("GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\n\r\n").ok());
  EXPECT_EQ(client->Receive()->body, "GET /1");
  EXPECT_EQ(client->Receive()->body, "GET /2");
}

TEST_F(HttpServerTest, AnswersRequestsThatComeByteByByte) {
  Start(/*tls=*/false);
  const std::unique_ptr<HttpClient> client = Connect(/*tls=*/false);
  for (char byte : std::string("GET /slow HTTP/1.1\r\nHost: test\r\n\r\n"))
    ASSERT_TRUE(client->Send(absl::string_view(&byte, 1)).ok());
  EXPECT_EQ(client->Receive()->body, "GET /slow");
}

TEST_F(HttpServerTest, ManyConnectionsAtOnceAreAllAnswered) {
  Start(/*tls=*/true);
  std::atomic<int> good = 0;
  {
    std::vector<std::jthread> clients;
    for (int i = 0; i < 32; ++i) {
      clients.emplace_back([&, i] {
        const std::unique_ptr<HttpClient> client = Connect();
        for (int j = 0; j < 20; ++j) {
          const absl::StatusOr<HttpAnswer> answer = client->Get(absl::StrCat("/", i, "/", j));
          if (answer.ok() && answer->body == absl::StrCat("GET /", i, "/", j)) ++good;
        }
      });
    }
  }
  EXPECT_EQ(good, 32 * 20);
}

TEST_F(HttpServerTest, ASlowAnswerHoldsNoOtherConnectionUp) {
  Start(/*tls=*/true);
  std::vector<std::unique_ptr<HttpClient>> slow;
  for (int i = 0; i < 20; ++i) {
    slow.push_back(Connect());
    ASSERT_TRUE(slow.back()->Send("GET /wait HTTP/1.1\r\n\r\n").ok());
  }
  ASSERT_TRUE(WaitFor([&] { return waiting_ == 20; }, absl::Seconds(10), "20 waiting requests",
                      [&] { return absl::StrCat(waiting_.load()); })
                  .ok());
  EXPECT_EQ(Connect()->Get("/fast")->body, "GET /fast");
  // One Notify() wakes those who wait at that moment.
  release_.NotifyAll();
  for (const std::unique_ptr<HttpClient>& client : slow)
    EXPECT_EQ(client->Receive()->body, "GET /wait");
}

TEST_F(HttpServerTest, ConnectionsAboveTheLimitAreClosed) {
  Start(/*tls=*/false, {.most_connections = 2});
  const std::unique_ptr<HttpClient> first = Connect(/*tls=*/false);
  const std::unique_ptr<HttpClient> second = Connect(/*tls=*/false);
  EXPECT_TRUE(first->Get("/").ok());
  EXPECT_TRUE(second->Get("/").ok());
  EXPECT_TRUE(Connect(/*tls=*/false)->ServerCloses());
}

TEST_F(HttpServerTest, AnIdleConnectionIsClosed) {
  Start(/*tls=*/true, {.idle_timeout = absl::Seconds(1)});
  EXPECT_TRUE(Connect()->ServerCloses());
}

struct BadRequest {
  const char* name;
  std::string bytes;
  int want;
  const char* message;
};
class BadRequestTest : public HttpServerTest, public testing::WithParamInterface<BadRequest> {};

TEST_P(BadRequestTest, IsAnsweredAndTheConnectionCloses) {
  for (bool tls : {false, true}) {
    Start(tls);
    const std::unique_ptr<HttpClient> client = Connect(tls);
    ASSERT_TRUE(client->Send(GetParam().bytes).ok());
    const absl::StatusOr<HttpAnswer> answer = client->Receive();
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->code, GetParam().want);
    EXPECT_THAT(answer->body, HasSubstr(GetParam().message));
    EXPECT_EQ(answer->headers.at("connection"), "close");
    EXPECT_TRUE(client->ServerCloses());
    StopServer();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Requests, BadRequestTest,
    testing::ValuesIn<BadRequest>({
        {"OversizedHeaders",
         absl::StrCat("GET / HTTP/1.1\r\nX: ", std::string(40000, 'a'), "\r\n\r\n"), 431,
         "want headers of at most 32768 bytes in all, got more"},
        {"ManyHeaders",
         [] {
           std::string text = "GET / HTTP/1.1\r\n";
           for (int i = 0; i < 5000; ++i) absl::StrAppend(&text, "X-", i, ": a\r\n");
           return text + "\r\n";
         }(),
         431, "want headers of at most"},
        {"NoHttp", "\x16\x03\x01garbage\r\n\r\n", 400, "bad request"},
        {"NoVersion", "GET /\r\n\r\n", 400, "bad request"},
        {"BadHeader", "GET / HTTP/1.1\r\nbad header\r\n\r\n", 400, "bad request"},
        // What follows a body would be the next request: it is not read, and the connection ends.
        {"Body", "POST /x HTTP/1.1\r\nContent-Length: 5\r\n\r\nGET /", 200, "POST /x"},
        {"ChunkedBody",
         "GET /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", 200,
         "GET /x"},
        {"HandlerCloses", "GET /close HTTP/1.1\r\n\r\n", 200, "GET /close"},
        {"ClientCloses", "GET /x HTTP/1.1\r\nConnection: close\r\n\r\n", 200, "GET /x"},
    }),
    [](const testing::TestParamInfo<BadRequest>& info) { return std::string(info.param.name); });

TEST_F(HttpServerTest, HeadHasTheHeadersOnly) {
  Start(/*tls=*/false);
  const std::unique_ptr<HttpClient> client = Connect(/*tls=*/false);
  ASSERT_TRUE(client->Send("HEAD /x HTTP/1.1\r\n\r\n").ok());
  EXPECT_EQ(client->Receive(/*head=*/true)->headers.at("content-length"), "7");
  EXPECT_EQ(client->Get("/next")->body, "GET /next");
}

TEST_F(HttpServerTest, AClientThatSpeaksPlainHttpToTheTlsPortHurtsNobody) {
  Start(/*tls=*/true);
  const std::unique_ptr<HttpClient> plain = Connect(/*tls=*/false);
  EXPECT_FALSE(plain->Get("/").ok());
  EXPECT_TRUE(Connect()->Get("/").ok());
}

// A certificate is swapped without a restart (design.md section 5, Certificates).
class RotationTest : public HttpServerTest {
 protected:
  // A new connection, after the files were looked at again.
  std::string NameOfNewConnection() {
    clock_.Advance(absl::Seconds(2));
    return Connect()->server_name();
  }
  host::FakeClock clock_;
};

TEST_F(RotationTest, NewConnectionsGetTheNewCertificateAndOpenOnesGoOn) {
  StartWith(clock_, /*tls=*/true);
  const std::unique_ptr<HttpClient> open = Connect();
  EXPECT_EQ(open->server_name(), kServerName);
  WritePair(*authority_->Issue({.common_name = "second.example"}));
  EXPECT_EQ(NameOfNewConnection(), "second.example");
  EXPECT_EQ(open->Get("/still")->body, "GET /still");
}

TEST_F(RotationTest, ABrokenNewFileLeavesTheOldCertificateInUse) {
  StartWith(clock_, /*tls=*/true);
  dir_.Write("tls.crt", "-----BEGIN CERTIFICATE-----\nhalf a fi");
  EXPECT_EQ(NameOfNewConnection(), kServerName);
  const KeyPair second = *authority_->Issue({.common_name = "second.example"});
  dir_.Write("tls.crt", second.certificate);  // the key is still the first one's
  EXPECT_EQ(NameOfNewConnection(), kServerName);
  dir_.Write("tls.key", second.key);
  EXPECT_EQ(NameOfNewConnection(), "second.example");
}

TEST_F(HttpServerTest, AfterDrainEachAnswerClosesItsConnection) {
  HttpServer& server = Start(/*tls=*/true);
  const std::unique_ptr<HttpClient> open = Connect();
  EXPECT_EQ(open->Get("/before")->headers.count("connection"), 0u);
  server.Drain();
  const absl::StatusOr<HttpAnswer> answer = open->Get("/after");
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->headers.at("connection"), "close");
  EXPECT_TRUE(open->ServerCloses());
  // It goes on serving: the Endpoints may still name us.
  EXPECT_EQ(Connect()->Get("/new")->body, "GET /new");
}

TEST_F(HttpServerTest, StopEndsIdleConnectionsAndTakesNoNewOnes) {
  HttpServer& server = Start(/*tls=*/true);
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 10; ++i) clients.push_back(Connect());
  const std::unique_ptr<HttpClient> in_handshake = Connect(/*tls=*/false);
  const uint16_t port = server.port();
  const absl::Time start = absl::Now();
  StopServer();
  EXPECT_LT(absl::Now() - start, absl::Seconds(3)) << "idle connections need no grace";
  for (const std::unique_ptr<HttpClient>& client : clients) EXPECT_TRUE(client->ServerCloses());
  EXPECT_TRUE(in_handshake->ServerCloses());
  EXPECT_FALSE(HttpClient::Connect(port).ok());
}

TEST_F(HttpServerTest, StopLetsAnAnswerUnderWayArrive) {
  Start(/*tls=*/true);
  const std::unique_ptr<HttpClient> client = Connect();
  ASSERT_TRUE(client->Send("GET /wait HTTP/1.1\r\n\r\n").ok());
  ASSERT_TRUE(WaitFor([&] { return waiting_ == 1; }, absl::Seconds(10), "a waiting request",
                      [&] { return absl::StrCat(waiting_.load()); })
                  .ok());
  std::future<void> stopped =
      std::async(std::launch::async, [&] { threads_.Run(threads_.strand(), server_->Stop()); });
  // It takes no new connections any more; the one that waits is not cut.
  ASSERT_TRUE(WaitFor([&] { return !HttpClient::Connect(server_->port()).ok(); }, absl::Seconds(10),
                      "a closed port", [] { return "it is open"; })
                  .ok());
  release_.NotifyAll();
  const absl::StatusOr<HttpAnswer> answer = client->Receive();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->body, "GET /wait");
  stopped.get();
}

TEST_F(HttpServerTest, WhoeverStillWaitsAfterTheGraceIsToldThatTheServerStops) {
  for (bool tls : {false, true}) {
    Start(tls, {.stop_grace = absl::Milliseconds(200)});
    const std::unique_ptr<HttpClient> client = Connect(tls);
    const int before = waiting_;
    ASSERT_TRUE(client->Send("GET /wait HTTP/1.1\r\n\r\n").ok());
    ASSERT_TRUE(WaitFor([&] { return waiting_ == before + 1; }, absl::Seconds(10),
                        "a waiting request", [&] { return absl::StrCat(waiting_.load()); })
                    .ok());
    // Though the handler goes on.
    threads_.Run(threads_.strand(), server_->EndConnections());
    const absl::StatusOr<HttpAnswer> answer = client->Receive();
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->code, 503);
    EXPECT_EQ(answer->body, "the server is stopping\n");
    EXPECT_EQ(answer->headers.at("connection"), "close");
    EXPECT_TRUE(client->ServerCloses());
    StopServer();
  }
}

TEST_F(HttpServerTest, StopReturnsWhenNoHandlerRunsAnyMore) {
  Start(/*tls=*/false, {.stop_grace = absl::ZeroDuration()});
  const std::unique_ptr<HttpClient> client = Connect(/*tls=*/false);
  ASSERT_TRUE(client->Send("GET /wait HTTP/1.1\r\n\r\n").ok());
  ASSERT_TRUE(WaitFor([&] { return waiting_ == 1; }, absl::Seconds(10), "a waiting request",
                      [&] { return absl::StrCat(waiting_.load()); })
                  .ok());
  std::future<void> stopped =
      std::async(std::launch::async, [&] { threads_.Run(threads_.strand(), server_->Stop()); });
  EXPECT_EQ(client->Receive()->code, 503);
  EXPECT_NE(stopped.wait_for(std::chrono::milliseconds(50)), std::future_status::ready);
  release_.NotifyAll();
  stopped.get();
}

struct BadStart {
  const char* name;
  HttpServer::Options options;
  absl::StatusCode want;
  const char* message;
};
class BadStartTest : public HttpServerTest, public testing::WithParamInterface<BadStart> {};

TEST_P(BadStartTest, SaysWhatIsWrong) {
  HttpServer::Options options = GetParam().options;
  options.name = "metrics API";
  if (!options.cert_file.empty()) {
    options.cert_file = dir_.File(options.cert_file);
    options.key_file = dir_.File(options.key_file);
  }
  dir_.Write("other.key", authority_->key());
  HttpServer server(threads_.executor(), real_clock_, host::Logger(host::MakeNullSink()), nullptr,
                    std::move(options));
  const absl::Status started = server.Start();
  EXPECT_EQ(started.code(), GetParam().want);
  EXPECT_THAT(std::string(started.message()), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(Options, BadStartTest,
                         testing::ValuesIn<BadStart>({
                             {"Address",
                              {.address = "localhost"},
                              absl::StatusCode::kInvalidArgument,
                              "metrics API: want an IP address to listen on, got \"localhost\""},
                             {"AddressOfSomebodyElse",
                              {.address = "192.0.2.1"},
                              absl::StatusCode::kUnavailable,
                              "metrics API: listen on 192.0.2.1:0"},
                             {"NoCertificate",
                              {.cert_file = "absent.crt", .key_file = "tls.key"},
                              absl::StatusCode::kInvalidArgument,
                              "--tls-cert-file"},
                             {"NoKey",
                              {.cert_file = "tls.crt", .key_file = "absent.key"},
                              absl::StatusCode::kInvalidArgument,
                              "--tls-key-file"},
                             {"KeyOfAnother",
                              {.cert_file = "tls.crt", .key_file = "other.key"},
                              absl::StatusCode::kInvalidArgument,
                              "--tls-key-file"},
                         }),
                         [](const testing::TestParamInfo<BadStart>& info) {
                           return std::string(info.param.name);
                         });

TEST_F(HttpServerTest, APortThatIsTakenIsUnavailable) {
  HttpServer& first = Start(/*tls=*/false);
  HttpServer second(threads_.executor(), real_clock_, host::Logger(host::MakeNullSink()), nullptr,
                    {.name = "second", .address = "127.0.0.1", .port = first.port()});
  EXPECT_EQ(second.Start().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace outrigger::controller::adapter
