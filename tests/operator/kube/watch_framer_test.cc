// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/watch_framer.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>
#include <string>
#include <vector>

namespace outrigger::controller::kube {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kAdded[] =
    R"({"type":"ADDED","object":{"metadata":{"name":"a\nb","resourceVersion":"7"}}})";
constexpr char kBookmark[] = R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}})";

struct Seen {
  std::vector<std::string> events;
  absl::Status status;
};

// Feeds `pieces` one after the other; the status is the first error, or that of the end.
Seen FeedAll(const std::vector<absl::string_view>& pieces, size_t max_line = 1000) {
  WatchFramer framer("pods", max_line);
  Seen seen;
  for (const absl::string_view piece : pieces) {
    seen.status = framer.Feed(piece, [&](const WatchEvent& event) {
      seen.events.push_back(
          absl::StrCat(static_cast<int>(event.type), " ",
                       std::string(event.object.at("metadata").at("resourceVersion").as_string())));
    });
    if (!seen.status.ok()) return seen;
  }
  seen.status = framer.Finish();
  return seen;
}

TEST(WatchFramerTest, ReadsEventsSplitAtEveryByte) {
  const std::string text = absl::StrCat(kAdded, "\n", kBookmark, "\n");
  for (size_t first = 0; first <= text.size(); ++first) {
    for (size_t second = first; second <= text.size(); ++second) {
      const absl::string_view whole = text;
      const Seen seen = FeedAll(
          {whole.substr(0, first), whole.substr(first, second - first), whole.substr(second)});
      ASSERT_THAT(seen.events, ElementsAre("0 7", "3 9")) << "split at " << first << ", " << second;
      ASSERT_TRUE(seen.status.ok()) << seen.status;
    }
  }
}

TEST(WatchFramerTest, ReadsEventsFedByteByByte) {
  const std::string text = absl::StrCat(kAdded, "\n", kBookmark, "\n");
  std::vector<absl::string_view> bytes;
  bytes.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) bytes.emplace_back(text.data() + i, 1);
  const Seen seen = FeedAll(bytes);
  EXPECT_THAT(seen.events, ElementsAre("0 7", "3 9"));
  EXPECT_TRUE(seen.status.ok()) << seen.status;
}

TEST(WatchFramerTest, StreamThatEndsInsideALineIsUnavailable) {
  const std::string line = kAdded;
  for (size_t length = 1; length <= line.size(); ++length) {
    const Seen seen = FeedAll({absl::string_view(line).substr(0, length)});
    ASSERT_EQ(seen.status.code(), absl::StatusCode::kUnavailable) << "cut at " << length;
    ASSERT_THAT(std::string(seen.status.message()), HasSubstr("watch pods: the stream ended"));
    ASSERT_TRUE(seen.events.empty());
  }
}

TEST(WatchFramerTest, LineOfTruncatedJsonIsUnavailable) {
  const std::string line = kAdded;
  for (size_t length = 1; length < line.size(); ++length) {
    const std::string cut = line.substr(0, length) + "\n";
    const Seen seen = FeedAll({kBookmark, "\n", cut, kBookmark, "\n"});
    ASSERT_EQ(seen.status.code(), absl::StatusCode::kUnavailable) << "cut at " << length;
    ASSERT_THAT(std::string(seen.status.message()), HasSubstr("watch pods: "));
    ASSERT_THAT(seen.events, ElementsAre("3 9")) << "events before the fault count, later do not";
  }
}

TEST(WatchFramerTest, LineLongerThanTheLimitIsUnavailableBeforeItEnds) {
  WatchFramer framer("pods", 100);
  const std::string half(60, 'x');
  const auto ignore = [](const WatchEvent&) { FAIL() << "no event came"; };
  EXPECT_TRUE(framer.Feed(half, ignore).ok());
  const absl::Status status = framer.Feed(half, ignore);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(), "watch pods: a line is longer than 100 bytes");
  EXPECT_EQ(framer.Feed("\n", ignore), status) << "the first error is final";
}

TEST(WatchFramerTest, TakesAnObjectOfOneAndAHalfMebibytes) {
  const std::string event =
      absl::StrCat(R"({"type":"MODIFIED","object":{"metadata":{"resourceVersion":"8"},"data":")",
                   std::string(3 << 19, 'x'), "\"}}\n");
  const Seen seen = FeedAll({event}, WatchFramer::kMaxLineBytes);
  EXPECT_THAT(seen.events, ElementsAre("1 8"));
  EXPECT_TRUE(seen.status.ok()) << seen.status;
}

TEST(WatchFramerTest, DeeplyNestedObjectIsReadAndAnAbyssIsRefused) {
  const auto nested = [](int depth) {
    return absl::StrCat(R"({"type":"ADDED","object":{"metadata":{"resourceVersion":"1"},"a":)",
                        std::string(depth, '['), std::string(depth, ']'), "}}\n");
  };
  EXPECT_TRUE(FeedAll({nested(200)}).status.ok());
  EXPECT_EQ(FeedAll({nested(100'000)}, 1 << 20).status.code(), absl::StatusCode::kUnavailable);
}

struct Case {
  const char* name;
  const char* text;
  absl::StatusCode want;
  const char* message;
};
class WatchFramerLineTest : public testing::TestWithParam<Case> {};

TEST_P(WatchFramerLineTest, IsJudged) {
  const Seen seen = FeedAll({GetParam().text});
  EXPECT_EQ(seen.status.code(), GetParam().want) << seen.status;
  EXPECT_THAT(std::string(seen.status.message()), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Lines, WatchFramerLineTest,
    testing::ValuesIn<Case>({
        {"Nothing", "", absl::StatusCode::kOk, ""},
        {"BlankLines", "\n\r\n  \n", absl::StatusCode::kOk, ""},
        {"CarriageReturn",
         "{\"type\":\"DELETED\",\"object\":{\"metadata\":{\"resourceVersion\":\"1\"}}}\r\n",
         absl::StatusCode::kOk, ""},
        {"Gone",
         "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\","
         "\"message\":\"too old resource version: 1 (5)\"}}\n",
         absl::StatusCode::kOutOfRange, "watch pods: too old resource version"},
        {"InternalError",
         "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":500,\"message\":\"boom\"}}"
         "\n",
         absl::StatusCode::kInternal, "watch pods: boom"},
        {"TooManyRequests", "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":429}}\n",
         absl::StatusCode::kResourceExhausted, "HTTP 429"},
        {"ErrorWithoutStatus", "{\"type\":\"ERROR\",\"object\":{}}\n",
         absl::StatusCode::kUnavailable, "want a Status"},
        {"UnknownType",
         "{\"type\":\"RENAMED\",\"object\":{\"metadata\":{\"resourceVersion\":\"1\"}}}\n",
         absl::StatusCode::kUnavailable, "type: want ADDED"},
        {"TypeIsANumber", "{\"type\":1,\"object\":{\"metadata\":{\"resourceVersion\":\"1\"}}}\n",
         absl::StatusCode::kUnavailable, "type: want ADDED"},
        {"NoObject", "{\"type\":\"ADDED\"}\n", absl::StatusCode::kUnavailable,
         "object: want an object"},
        {"ObjectIsAList", "{\"type\":\"ADDED\",\"object\":[]}\n", absl::StatusCode::kUnavailable,
         "object: want an object"},
        {"NoResourceVersion", "{\"type\":\"ADDED\",\"object\":{\"metadata\":{}}}\n",
         absl::StatusCode::kUnavailable, "resourceVersion: want a string"},
        {"NotAnObject", "[1]\n", absl::StatusCode::kUnavailable, "want an object, got \"[1]\""},
        {"Html", "<html>\n", absl::StatusCode::kUnavailable, "no JSON"},
        {"TwoValues", "{} {}\n", absl::StatusCode::kUnavailable, "no JSON"},
        {"BinaryIsEscaped", "\x01\xff\n", absl::StatusCode::kUnavailable, "\\x01\\xff"},
        {"NoUtf8", "{\"type\":\"\xff\",\"object\":{\"metadata\":{\"resourceVersion\":\"1\"}}}\n",
         absl::StatusCode::kUnavailable, "watch pods: "},
    }),
    [](const testing::TestParamInfo<Case>& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace outrigger::controller::kube
