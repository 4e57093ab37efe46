// SPDX-License-Identifier: Apache-2.0
#include "operator/runtime/event_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/operator/support/core_loop.h"
#include "tests/operator/support/recording_faults.h"

namespace outrigger::controller::runtime {
namespace {

class EventRecorderTest : public testing::Test {
 protected:
  ~EventRecorderTest() override { loop_.Advance(absl::Minutes(1)); }
  void Record(const std::string& reason, const std::string& note = "note",
              const std::string& uid = "u1") {
    recorder_.Record({.key = {"shop", "orders"}, .uid = uid}, "Warning", reason, note);
    loop_.Settle();
  }
  size_t Published() const { return api_.Objects(kube::Events()).size(); }

  CoreLoop loop_;
  RecordingFaults faults_;
  kube::MemoryApi api_{loop_.clock(), {.faults = &faults_}};
  WriteGate gate_{loop_.clock()};
  EventRecorder recorder_{
      loop_.clock(),        api_, gate_, loop_.executor(), host::Logger(host::MakeNullSink()),
      {.instance = "pod-1"}};
};

// Case B145.
TEST_F(EventRecorderTest, AnEventNamesItsObjectAndItsReporter) {
  Record("KEDAScalerFailed", "s0-redis could not be read");
  ASSERT_EQ(Published(), 1u);
  const boost::json::object event = api_.Objects(kube::Events())[0].as_object();
  EXPECT_EQ(event.at("metadata").at("namespace"), "shop");
  EXPECT_EQ(event.at("regarding").at("namespace"), "shop");
  EXPECT_EQ(event.at("regarding").at("name"), "orders");
  EXPECT_EQ(event.at("regarding").at("uid"), "u1");
  EXPECT_EQ(event.at("regarding").at("kind"), "ScaledObject");
  EXPECT_EQ(event.at("reportingController"), "outrigger-operator");
  EXPECT_EQ(event.at("reportingInstance"), "pod-1");
  EXPECT_EQ(event.at("type"), "Warning");
  EXPECT_EQ(event.at("reason"), "KEDAScalerFailed");
  EXPECT_EQ(event.at("note"), "s0-redis could not be read");
}

// Case B146.
TEST_F(EventRecorderTest, AfterThreeAtOnceOneEveryFiveMinutes) {
  for (int i = 0; i < 6; ++i) Record("KEDAScalerFailed");
  EXPECT_EQ(Published(), 3u);
  // Each 5 s for half an hour: one per 5 minutes, never three together again.
  for (int i = 0; i < 360; ++i) {
    loop_.Advance(absl::Seconds(5));
    Record("KEDAScalerFailed");
  }
  EXPECT_EQ(Published(), 3u + 6u);
}

// Case B144.
TEST_F(EventRecorderTest, ReasonsAndObjectsDoNotShareTheirAllowance) {
  for (int i = 0; i < 9; ++i) Record("KEDAScalerFailed");
  Record("ScaledObjectReady");
  Record("KEDAScalerFailed", "note", "u2");
  EXPECT_EQ(Published(), 5u);
}

TEST_F(EventRecorderTest, ForgetsAnObjectThatIsGone) {
  for (int i = 0; i < 4; ++i) Record("A");
  Record("B");
  Record("A", "note", "u2");
  recorder_.Forget("u1");
  EXPECT_EQ(recorder_.remembered(), 1u);
}

TEST_F(EventRecorderTest, ALongNoteIsCutBetweenCharacters) {
  std::string note(1019, 'x');
  for (int i = 0; i < 10; ++i) note += "\xC3\xA4";  // ä
  Record("A", note);
  const std::string published(api_.Objects(kube::Events())[0].at("note").as_string());
  EXPECT_LE(published.size(), 1024u);
  EXPECT_EQ(published.substr(0, 1019), note.substr(0, 1019));
  EXPECT_EQ(published.substr(published.size() - 3), "...");
  EXPECT_EQ((published.size() - 3 - 1019) % 2, 0u) << "a character was split";
}

TEST_F(EventRecorderTest, AFailureIsForgotten) {
  faults_.Fail("create events", absl::UnavailableError("down"));
  Record("A");
  Record("A");
  EXPECT_EQ(Published(), 1u);
}

TEST_F(EventRecorderTest, AServerThatHangsHoldsABoundedNumberOfEvents) {
  faults_.Fail("create events", absl::OkStatus(), 1'000'000, absl::Hours(1));
  for (int i = 0; i < 1000; ++i) Record("A", "note", absl::StrCat("uid-", i));
  loop_.Advance(absl::Seconds(5));
  EXPECT_LE(faults_.Count("create events") + gate_.waiting(), 256u);
  EXPECT_EQ(faults_.Count("create events"), 32);
  faults_.StopFailing();
  loop_.Advance(absl::Minutes(5));
  EXPECT_EQ(gate_.waiting(), 0u);
}

}  // namespace
}  // namespace outrigger::controller::runtime
