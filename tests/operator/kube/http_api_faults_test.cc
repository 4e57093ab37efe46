// SPDX-License-Identifier: Apache-2.0
// HttpApi against a server that answers what no API server should.
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/kube/http_api.h"
#include "tests/operator/kube/http_fixture.h"
#include "tests/operator/kube/scripted_http_server.h"

namespace outrigger::controller::kube {
namespace {

using testing::HasSubstr;
using tests::ScriptedHttpServer;
using Connection = ScriptedHttpServer::Connection;

struct Case {
  const char* name;
  int code;
  const char* headers;
  const char* body;
  absl::StatusCode want;
  const char* message;
};
class HttpApiAnswerTest : public testing::TestWithParam<Case>, protected HttpFixture {};

TEST_P(HttpApiAnswerTest, BecomesAStatus) {
  const ScriptedHttpServer server([](const std::string&, Connection& c) {
    c.Answer(GetParam().code, GetParam().body, GetParam().headers);
  });
  const std::unique_ptr<HttpApi> api = Client({.config = {.server = server.url()}});
  const absl::Status status = Await(api->List(Deployments(), "ns", {}, Soon())).status();
  EXPECT_EQ(status.code(), GetParam().want) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().message));
  EXPECT_LT(status.message().size(), 600U);
}

const std::string& LongHtml() {
  static const std::string* const kText = new std::string("<html>" + std::string(100'000, 'x'));
  return *kText;
}

INSTANTIATE_TEST_SUITE_P(
    Answers, HttpApiAnswerTest,
    testing::ValuesIn<Case>({
        {"Html", 200, "", "<html>", absl::StatusCode::kUnavailable,
         "list deployments.apps ns: the answer is no JSON"},
        {"LongHtmlIsCut", 503, "", LongHtml().c_str(), absl::StatusCode::kUnavailable,
         "list deployments.apps ns: HTTP 503: \"<html>xxx"},
        {"CutJson", 200, "", "{\"items\":[", absl::StatusCode::kUnavailable, "no JSON"},
        {"NoList", 200, "", "{\"kind\":\"Pod\"}", absl::StatusCode::kUnavailable,
         "want items and metadata.resourceVersion"},
        {"NoVersion", 200, "", "{\"items\":[],\"metadata\":{}}", absl::StatusCode::kUnavailable,
         "want items and metadata.resourceVersion"},
        {"Redirect", 302, "Location: https://elsewhere/\r\n", "", absl::StatusCode::kUnknown,
         "HTTP 302 to \"https://elsewhere/\", which is not followed"},
        {"BodyCannotLieAboutTheCode", 500, "",
         R"({"kind":"Status","code":404,"reason":"NotFound","message":"m"})",
         absl::StatusCode::kInternal, "list deployments.apps ns: m"},
        {"Gone", 410, "", R"({"kind":"Status","code":410,"reason":"Expired","message":"old"})",
         absl::StatusCode::kOutOfRange, "old"},
        {"Timeout", 504, "", R"({"kind":"Status","code":504,"reason":"Timeout","message":"m"})",
         absl::StatusCode::kDeadlineExceeded, "m"},
    }),
    [](const testing::TestParamInfo<Case>& info) { return std::string(info.param.name); });

class HttpApiFaultTest : public testing::Test, protected HttpFixture {
 protected:
  struct Watched {
    int events = 0;
    absl::Status status;
  };
  Watched Watch(HttpApi& api) {
    Watched watched;
    watched.status = Await(api.Watch(
        Pods(), "ns", {.resource_version = "5"}, [&](const WatchEvent&) { ++watched.events; },
        Soon()));
    return watched;
  }
  static std::string Event(int version) {
    return absl::StrCat(R"({"type":"ADDED","object":{"metadata":{"name":"p","resourceVersion":")",
                        version, "\"}}}\n");
  }
};

TEST_F(HttpApiFaultTest, RetryAfterReachesTheCaller) {
  const ScriptedHttpServer server([](const std::string&, Connection& c) {
    c.Answer(429, R"({"kind":"Status","code":429,"reason":"TooManyRequests"})",
             "Retry-After: 7\r\n");
  });
  const std::unique_ptr<HttpApi> api = Client({.config = {.server = server.url()}});
  const absl::Status status = Await(api->Get(Pods(), "ns", "a", "", Soon())).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  ASSERT_TRUE(GetApiError(status).has_value());
  EXPECT_EQ(GetApiError(status)->retry_after, absl::Seconds(7));
}

TEST_F(HttpApiFaultTest, WatchAsksForBookmarksAndATimeout) {
  const ScriptedHttpServer server([](const std::string&, Connection& c) {
    c.StartChunked();
    c.EndChunked();
  });
  const std::unique_ptr<HttpApi> api = Client({.config = {.server = server.url()}});
  EXPECT_TRUE(Watch(*api).status.ok()) << "the server closed it";
  ASSERT_EQ(server.requests().size(), 1U);
  EXPECT_THAT(server.requests()[0],
              HasSubstr("GET /api/v1/namespaces/ns/pods?watch=true&allowWatchBookmarks=true&"
                        "resourceVersion=5&timeoutSeconds=20 "));
}

TEST_F(HttpApiFaultTest, WatchReadsLinesThatAreSplitAcrossChunks) {
  const ScriptedHttpServer server([](const std::string&, Connection& c) {
    const std::string text = Event(6) + Event(7);
    c.StartChunked();
    for (size_t i = 0; i < text.size(); i += 5) c.WriteChunk(text.substr(i, 5));
    c.EndChunked();
  });
  const std::unique_ptr<HttpApi> api = Client({.config = {.server = server.url()}});
  const Watched watched = Watch(*api);
  EXPECT_EQ(watched.events, 2);
  EXPECT_TRUE(watched.status.ok()) << watched.status;
}

TEST_F(HttpApiFaultTest, WatchWithAMalformedLineKeepsWhatCameBefore) {
  const ScriptedHttpServer server([](const std::string&, Connection& c) {
    c.StartChunked();
    c.WriteChunk(Event(6) + "{\"type\":\"ADDED\",\n" + Event(7));
    c.StaySilent();
  });
  const std::unique_ptr<HttpApi> api = Client({.config = {.server = server.url()}});
  const Watched watched = Watch(*api);
  EXPECT_EQ(watched.events, 1);
  EXPECT_EQ(watched.status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(watched.status.message()), HasSubstr("watch pods: no JSON"));
}

TEST_F(HttpApiFaultTest, WatchWithAnEndlessLineIsEnded) {
  const ScriptedHttpServer server([](const std::string&, Connection& c) {
    c.StartChunked();
    const std::string piece(1 << 20, ' ');
    for (int i = 0; i < 9; ++i) c.WriteChunk(piece);
    c.StaySilent();
  });
  const std::unique_ptr<HttpApi> api = Client({.config = {.server = server.url()}});
  const absl::Status status = Watch(*api).status;
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("longer than 8388608 bytes"));
}

// The API server sends no bookmark of a kind before its first event.
TEST_F(HttpApiFaultTest, AWatchThatFallsSilentIsEndedToBeResumed) {
  const ScriptedHttpServer server([](const std::string&, Connection& c) {
    c.StartChunked();
    c.WriteChunk(Event(6));
    c.StaySilent();
  });
  const std::unique_ptr<HttpApi> api =
      Client({.config = {.server = server.url()}, .watch_silence = absl::Milliseconds(200)});
  const Watched watched = Watch(*api);
  EXPECT_EQ(watched.events, 1);
  EXPECT_TRUE(watched.status.ok()) << watched.status;
}

TEST_F(HttpApiFaultTest, AWatchThatFallsSilentInsideAnEventIsUnavailable) {
  const ScriptedHttpServer server([](const std::string&, Connection& c) {
    c.StartChunked();
    c.WriteChunk(Event(6).substr(0, 20));
    c.StaySilent();
  });
  const std::unique_ptr<HttpApi> api =
      Client({.config = {.server = server.url()}, .watch_silence = absl::Milliseconds(200)});
  const Watched watched = Watch(*api);
  EXPECT_EQ(watched.status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(watched.status.message()), HasSubstr("watch pods ns: no byte for 200ms"));
}

TEST_F(HttpApiFaultTest, AWatchThatIsNeverAnsweredIsUnavailable) {
  const ScriptedHttpServer server([](const std::string&, Connection& c) { c.StaySilent(); });
  const std::unique_ptr<HttpApi> api =
      Client({.config = {.server = server.url()}, .watch_silence = absl::Milliseconds(200)});
  const Watched watched = Watch(*api);
  EXPECT_EQ(watched.status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(watched.status.message()), HasSubstr("watch pods ns: no byte for 200ms"));
}

// The consumer gets what is queued, then goes on from the last version it has seen.
TEST_F(HttpApiFaultTest, WatchThatOutrunsItsQueueIsDropped) {
  const ScriptedHttpServer server([](const std::string&, Connection& c) {
    std::string events;
    for (int i = 0; i < 1000; ++i) events += Event(6 + i);
    c.StartChunked();
    c.WriteChunk(events);
    c.StaySilent();
  });
  const std::unique_ptr<HttpApi> api =
      Client({.config = {.server = server.url()}, .watch_queue_events = 4});
  const Watched watched = Watch(*api);
  EXPECT_TRUE(watched.status.ok()) << watched.status;
  EXPECT_GE(watched.events, 4);
  EXPECT_LT(watched.events, 1000);
}

// A hung watch or call must not keep the lease from being renewed.
TEST_F(HttpApiFaultTest, LeaseHasAConnectionOfItsOwn) {
  const ScriptedHttpServer server([](const std::string& request, Connection& c) {
    if (absl::StrContains(request, "/leases/")) return c.Answer(200, "{}");
    c.StaySilent();
  });
  const std::unique_ptr<HttpApi> api = Client({.config = {.server = server.url()}});
  absl::Status hung;
  const auto ask_for_a_pod = [&]() -> host::Task<void> {
    hung = (co_await api->Get(Pods(), "ns", "a", "", host::Deadline::Never())).status();
  };
  runner_.Spawn(ask_for_a_pod());
  runner_.RunReady();
  EXPECT_TRUE(Await(api->Get(Leases(), "ns", "l", "", Soon())).ok());
  EXPECT_EQ(server.connections(), 2);
  api->Stop();
  runner_.RunReady();
  EXPECT_EQ(hung.code(), absl::StatusCode::kUnavailable) << hung;
  EXPECT_EQ(runner_.running(), 0);
}

}  // namespace
}  // namespace outrigger::controller::kube
