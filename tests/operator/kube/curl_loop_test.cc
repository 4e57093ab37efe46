// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/curl_loop.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "host/base/fake_clock.h"
#include "host/base/real_clock.h"
#include "tests/operator/kube/scripted_http_server.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wait_for.h"

namespace outrigger::controller::kube {
namespace {

using testing::HasSubstr;
using tests::ScriptedHttpServer;
using Connection = ScriptedHttpServer::Connection;

class CurlLoopTest : public testing::Test {
 protected:
  CurlLoop::Options Options(const ScriptedHttpServer& server) {
    return {.config = {.server = server.url()}, .user_agent = "test/1"};
  }

  HttpRequest Get(absl::Duration timeout = absl::Seconds(20)) {
    return {.method = "GET", .path = "/x", .deadline = host::Deadline::After(clock_, timeout)};
  }

  static HttpAnswer Wait(CurlLoop& loop, HttpRequest request, CurlLoop::OnBytes on_bytes = {}) {
    std::promise<HttpAnswer> answered;
    loop.Start(std::move(request), std::move(on_bytes),
               [&](HttpAnswer answer) { answered.set_value(std::move(answer)); });
    return answered.get_future().get();
  }

  host::RealClock clock_;
};

TEST_F(CurlLoopTest, SendsMethodHeadersBodyAndReusesItsConnection) {
  ScriptedHttpServer server([](const std::string&, Connection& c) { c.Answer(201, "made"); });
  CurlLoop::Options options = Options(server);
  options.config.token.text = host::Secret("secret-token");
  CurlLoop loop(clock_, std::move(options));
  HttpRequest request = Get();
  request.method = "PATCH";
  request.headers = {"Content-Type: a/b"};
  request.body = "{\"a\":1}";
  const HttpAnswer answer = Wait(loop, request);
  EXPECT_TRUE(answer.transport.ok()) << answer.transport;
  EXPECT_EQ(answer.code, 201);
  EXPECT_EQ(answer.body, "made");
  (void)Wait(loop, Get());
  ASSERT_EQ(server.requests().size(), 2U);
  const std::string first = server.requests()[0];
  EXPECT_THAT(first, HasSubstr("PATCH /x HTTP/1.1\r\n"));
  EXPECT_THAT(first, HasSubstr("Content-Type: a/b\r\n"));
  EXPECT_THAT(first, HasSubstr("User-Agent: test/1\r\n"));
  EXPECT_THAT(first, HasSubstr("Authorization: Bearer secret-token\r\n"));
  EXPECT_THAT(first, HasSubstr("\r\n\r\n{\"a\":1}"));
  EXPECT_EQ(server.connections(), 1);
}

TEST_F(CurlLoopTest, TokenFileIsReadAgainWhenItIsReplaced) {
  ScriptedHttpServer server([](const std::string&, Connection& c) { c.Answer(200, ""); });
  tests::TempDir dir;
  CurlLoop::Options options = Options(server);
  options.config.token.file = dir.Write("token", "first\n");
  CurlLoop loop(clock_, std::move(options));
  (void)Wait(loop, Get());
  dir.Write("token", "rotated\n");
  (void)Wait(loop, Get());
  EXPECT_THAT(server.requests()[0], HasSubstr("Bearer first\r\n"));
  EXPECT_THAT(server.requests()[1], HasSubstr("Bearer rotated\r\n"));
}

TEST_F(CurlLoopTest, RedirectIsAnAnswerAndTheTokenStaysHere) {
  ScriptedHttpServer elsewhere([](const std::string&, Connection& c) { c.Answer(200, "got it"); });
  ScriptedHttpServer server([&](const std::string&, Connection& c) {
    c.Answer(302, "", absl::StrCat("Location: ", elsewhere.url(), "/y\r\n"));
  });
  CurlLoop::Options options = Options(server);
  options.config.token.text = host::Secret("secret-token");
  CurlLoop loop(clock_, std::move(options));
  const HttpAnswer answer = Wait(loop, Get());
  EXPECT_EQ(answer.code, 302);
  EXPECT_EQ(answer.location, elsewhere.url() + "/y");
  EXPECT_EQ(elsewhere.connections(), 0);
}

TEST_F(CurlLoopTest, NothingIsSentAfterTheDeadline) {
  ScriptedHttpServer server([](const std::string&, Connection& c) { c.Answer(200, ""); });
  CurlLoop loop(clock_, Options(server));
  const HttpAnswer answer = Wait(loop, Get(-absl::Milliseconds(1)));
  EXPECT_EQ(answer.transport.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(server.connections(), 0);
}

// A process that was stopped (SIGSTOP) wakes in the middle of a request: the time that the loop
// itself has measured does not count, only the clock's.
TEST_F(CurlLoopTest, DeadlineIsJudgedByTheClockThatCountsWhileStopped) {
  host::FakeClock clock;
  ScriptedHttpServer server([](const std::string&, Connection& c) { c.StaySilent(); });
  CurlLoop loop(clock, Options(server));
  std::promise<HttpAnswer> answered;
  std::future<HttpAnswer> answer = answered.get_future();
  HttpRequest request = Get();
  request.deadline = host::Deadline::After(clock, absl::Seconds(15));
  loop.Start(std::move(request), nullptr,
             [&](HttpAnswer done) { answered.set_value(std::move(done)); });
  ASSERT_TRUE(tests::WaitFor([&] { return server.requests().size() == 1; }, absl::Seconds(20),
                             "the first request", [] { return "none"; })
                  .ok());
  clock.Advance(absl::Seconds(25));
  loop.Cancel(0);  // nobody: wakes the loop
  EXPECT_EQ(answer.get().transport.code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(CurlLoopTest, SilentServerEndsAtTheDeadline) {
  ScriptedHttpServer server([](const std::string&, Connection& c) { c.StaySilent(); });
  CurlLoop loop(clock_, Options(server));
  const host::SteadyTime before = clock_.SteadyNow();
  const HttpAnswer answer = Wait(loop, Get(absl::Milliseconds(200)));
  EXPECT_EQ(answer.transport.code(), absl::StatusCode::kDeadlineExceeded) << answer.transport;
  EXPECT_GE(clock_.SteadyNow() - before, absl::Milliseconds(200));
  EXPECT_LT(clock_.SteadyNow() - before, absl::Seconds(10));
}

TEST_F(CurlLoopTest, SlowAnswerDelaysNoOther) {
  ScriptedHttpServer server([](const std::string& request, Connection& c) {
    if (absl::StrContains(request, "/slow")) return c.StaySilent();
    c.Answer(200, "quick");
  });
  CurlLoop loop(clock_, Options(server));
  HttpRequest slow = Get();
  slow.path = "/slow";
  std::promise<HttpAnswer> slow_answer;
  loop.Start(std::move(slow), nullptr,
             [&](HttpAnswer answer) { slow_answer.set_value(std::move(answer)); });
  EXPECT_EQ(Wait(loop, Get()).body, "quick");
  loop.Stop();
  EXPECT_EQ(slow_answer.get_future().get().transport.code(), absl::StatusCode::kUnavailable);
}

TEST_F(CurlLoopTest, StreamWithoutAByteForTooLongIsUnavailable) {
  ScriptedHttpServer server([](const std::string&, Connection& c) {
    c.StartChunked();
    c.WriteChunk("hello");
    c.StaySilent();
  });
  CurlLoop loop(clock_, Options(server));
  HttpRequest request = Get();
  request.deadline = host::Deadline::Never();
  request.longest_silence = absl::Milliseconds(200);
  std::string got;
  const HttpAnswer answer = Wait(loop, std::move(request), [&](absl::string_view bytes) {
    got.append(bytes.data(), bytes.size());
    return true;
  });
  EXPECT_EQ(answer.transport.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(answer.transport.message()), HasSubstr("no byte for 200ms"));
  EXPECT_EQ(got, "hello");
}

TEST_F(CurlLoopTest, StreamEndsWhenItsReaderWantsNoMore) {
  ScriptedHttpServer server([](const std::string&, Connection& c) {
    c.StartChunked();
    c.WriteChunk("hello");
    c.StaySilent();
  });
  CurlLoop loop(clock_, Options(server));
  const HttpAnswer answer = Wait(loop, Get(), [](absl::string_view) { return false; });
  EXPECT_EQ(answer.transport.code(), absl::StatusCode::kCancelled);
}

TEST_F(CurlLoopTest, RefusedStreamHasItsBodyInTheAnswer) {
  ScriptedHttpServer server([](const std::string&, Connection& c) { c.Answer(410, "too old"); });
  CurlLoop loop(clock_, Options(server));
  const HttpAnswer answer = Wait(loop, Get(), [](absl::string_view) { return true; });
  EXPECT_EQ(answer.code, 410);
  EXPECT_EQ(answer.body, "too old");
}

TEST_F(CurlLoopTest, AnswerLongerThanTheLimitIsUnavailable) {
  ScriptedHttpServer server(
      [](const std::string&, Connection& c) { c.Answer(200, std::string(5000, 'x')); });
  CurlLoop::Options options = Options(server);
  options.max_body_bytes = 4000;
  CurlLoop loop(clock_, std::move(options));
  const HttpAnswer answer = Wait(loop, Get());
  EXPECT_EQ(answer.transport.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(answer.transport.message()), HasSubstr("longer than 4000 bytes"));
}

TEST_F(CurlLoopTest, AnswerThatBreaksOffIsUnavailable) {
  ScriptedHttpServer server([](const std::string&, Connection& c) {
    c.Write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"a\":");
    c.Close();
  });
  CurlLoop loop(clock_, Options(server));
  EXPECT_EQ(Wait(loop, Get()).transport.code(), absl::StatusCode::kUnavailable);
}

TEST_F(CurlLoopTest, ErrorAnswerThatBreaksOffIsThatError) {
  ScriptedHttpServer server([](const std::string&, Connection& c) {
    c.Write("HTTP/1.1 401 Unauthorized\r\nContent-Length: 100\r\n\r\n{");
    c.Close();
  });
  CurlLoop loop(clock_, Options(server));
  const HttpAnswer answer = Wait(loop, Get());
  EXPECT_TRUE(answer.transport.ok()) << answer.transport;
  EXPECT_EQ(answer.code, 401);
}

TEST_F(CurlLoopTest, NobodyListeningIsUnavailableAndNamesTheServer) {
  std::string url;
  {
    ScriptedHttpServer gone([](const std::string&, Connection&) {});
    url = gone.url();
  }
  CurlLoop loop(clock_, {.config = {.server = url}, .user_agent = "test/1"});
  const HttpAnswer answer = Wait(loop, Get());
  EXPECT_EQ(answer.transport.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(answer.transport.message()), HasSubstr(url));
}

TEST_F(CurlLoopTest, MissingTokenFileIsNamedAndNothingIsSent) {
  ScriptedHttpServer server([](const std::string&, Connection& c) { c.Answer(200, ""); });
  CurlLoop::Options options = Options(server);
  options.config.token.file = "/absent/token";
  CurlLoop loop(clock_, std::move(options));
  const HttpAnswer answer = Wait(loop, Get());
  EXPECT_EQ(answer.transport.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(answer.transport.message()), HasSubstr("/absent/token"));
  EXPECT_EQ(server.connections(), 0);
}

TEST_F(CurlLoopTest, StartAfterStopIsUnavailable) {
  ScriptedHttpServer server([](const std::string&, Connection& c) { c.Answer(200, ""); });
  CurlLoop loop(clock_, Options(server));
  loop.Stop();
  EXPECT_EQ(Wait(loop, Get()).transport.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(server.connections(), 0);
}

}  // namespace
}  // namespace outrigger::controller::kube
