// SPDX-License-Identifier: Apache-2.0
// Everything between the wire and the scalers, in virtual time.
#include "host/kit/dispatcher.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "host/base/fake_clock.h"
#include "host/base/status.h"

namespace outrigger::host::kit {
namespace {

using scaler::v1::BatchGetMetricsRequest;
using scaler::v1::GetMetricsRequest;
using scaler::v1::GetMetricsResponse;
using scaler::v1::Trigger;
using testing::ElementsAre;
using testing::HasSubstr;

struct NamedTrigger : public ParsedTrigger {
  std::string name;
};

// Keeps every read until the test answers it.
class HeldScaler : public TriggerScaler {
 public:
  explicit HeldScaler(std::string type) {
    schema_.type = std::move(type);
    schema_.parameters = {{.name = "name", .required = true},
                          {.name = "password",
                           .secret = true,
                           .sources = {Source::kMetadata, Source::kAuthentication}}};
  }
  const TriggerSchema& schema() const override { return schema_; }
  std::shared_ptr<const ParsedTrigger> Parse(const Parameters& parameters, const Trigger&,
                                             Violations&) const override {
    ++parsed;
    passwords.push_back(parameters.String("password"));
    auto trigger = std::make_shared<NamedTrigger>();
    trigger->name = parameters.String("name");
    return trigger;
  }
  std::vector<scaler::v1::MetricSpec> Specs(const ParsedTrigger& trigger) const override {
    scaler::v1::MetricSpec spec;
    spec.set_name(static_cast<const NamedTrigger&>(trigger).name);
    spec.set_target(5);
    return {spec};
  }
  void Read(std::vector<ReadRequest> requests) override {
    ++rounds;
    for (ReadRequest& request : requests) reads.push_back(std::move(request));
  }

  static Reading Of(const std::string& name, double value) {
    Reading reading;
    reading.active = value > 0;
    scaler::v1::MetricValue& metric = reading.values.emplace_back();
    metric.set_name(name);
    metric.set_value(value);
    return reading;
  }

  mutable int parsed = 0;
  mutable std::vector<std::string> passwords;
  int rounds = 0;
  std::vector<ReadRequest> reads;

 private:
  TriggerSchema schema_;
};

class DispatcherTest : public testing::Test {
 protected:
  DispatcherTest() { Make({}); }

  void Make(DispatcherOptions options) {
    options.name = "test";
    std::vector<std::unique_ptr<TriggerScaler>> scalers;
    scalers.push_back(std::make_unique<HeldScaler>("held"));
    scaler_ = static_cast<HeldScaler*>(scalers[0].get());
    scalers.push_back(std::make_unique<HeldScaler>("other"));
    dispatcher_ = std::make_unique<Dispatcher>(std::move(options), clock_, Logger(MakeNullSink()),
                                               std::move(scalers));
  }

  static GetMetricsRequest Request(const std::string& name, const std::string& fingerprint = "") {
    GetMetricsRequest request;
    request.mutable_trigger()->set_type("held");
    (*request.mutable_trigger()->mutable_metadata())["name"] = name;
    request.mutable_trigger()->set_fingerprint(fingerprint);
    return request;
  }

  // Collects how calls end, in order: "12 active", "CODE: message".
  void Ask(const GetMetricsRequest& request, absl::Duration timeout = absl::Seconds(3)) {
    dispatcher_->GetMetrics(request, Deadline::After(clock_, timeout),
                            [this](const absl::StatusOr<GetMetricsResponse>& answer) {
                              answers_.push_back(Text(answer));
                            });
  }

  absl::Status AskBatch(const BatchGetMetricsRequest& request,
                        absl::Duration timeout = absl::Seconds(3)) {
    return dispatcher_->BatchGetMetrics(
        request, Deadline::After(clock_, timeout),
        [this](uint32_t index, const absl::StatusOr<GetMetricsResponse>& answer) {
          answers_.push_back(absl::StrCat(index, ": ", Text(answer)));
        });
  }

  static std::string Text(const absl::StatusOr<GetMetricsResponse>& answer) {
    if (!answer.ok()) return Describe(answer.status());
    std::string text;
    for (const auto& value : answer->values()) absl::StrAppend(&text, value.value(), " ");
    return absl::StrCat(text, answer->active() ? "active" : "idle");
  }

  FakeClock clock_;
  HeldScaler* scaler_ = nullptr;
  std::unique_ptr<Dispatcher> dispatcher_;
  std::vector<std::string> answers_;
};

constexpr char kLate[] = "DEADLINE_EXCEEDED: the source has not answered in time";

TEST_F(DispatcherTest, AnAnswerGoesOutWithTheTimeOfMeasuring) {
  Ask(Request("a"));
  scaler_->reads[0].done(HeldScaler::Of("a", 12));
  EXPECT_THAT(answers_, ElementsAre("12 active"));
}

TEST_F(DispatcherTest, AReadThatNeverEndsIsAnsweredAtItsDeadlineExactly) {
  Ask(Request("a"));
  EXPECT_LT(scaler_->reads[0].deadline.time(), clock_.SteadyNow() + absl::Seconds(3))
      << "the scaler must be done before its asker gives up";
  clock_.Advance(absl::Seconds(3) - absl::Milliseconds(1));
  EXPECT_TRUE(answers_.empty());
  clock_.Advance(absl::Milliseconds(1));
  EXPECT_THAT(answers_, ElementsAre(kLate));
  scaler_->reads[0].done(HeldScaler::Of("a", 1));
  EXPECT_EQ(answers_.size(), 1u) << "what comes later is dropped";
}

TEST_F(DispatcherTest, NoReadRunsForeverWithoutADeadlineOfItsCaller) {
  dispatcher_->GetMetrics(Request("a"), Deadline::Never(),
                          [this](const absl::StatusOr<GetMetricsResponse>& answer) {
                            answers_.push_back(Text(answer));
                          });
  clock_.Advance(absl::Seconds(60));
  EXPECT_THAT(answers_, ElementsAre(kLate));
}

TEST_F(DispatcherTest, TriggersAreParsedOncePerFingerprint) {
  Ask(Request("a", "f1"));
  Ask(Request("a", "f1"));
  EXPECT_EQ(scaler_->parsed, 1);
  Ask(Request("a", "f2"));
  Ask(Request("a"));
  Ask(Request("a"));
  EXPECT_EQ(scaler_->parsed, 4) << "without a fingerprint each call parses";
}

TEST_F(DispatcherTest, ABadTriggerIsRefusedWithEverythingThatIsWrong) {
  GetMetricsRequest request;
  request.mutable_trigger()->set_type("held");
  Ask(request);
  request.mutable_trigger()->set_type("no-such");
  Ask(request);
  EXPECT_THAT(answers_,
              ElementsAre("INVALID_ARGUMENT: held trigger: name: want a value in metadata, got "
                          "nothing",
                          "INVALID_ARGUMENT: type: want one of held, other, got \"no-such\""));
  EXPECT_EQ(scaler_->rounds, 0);
}

TEST_F(DispatcherTest, NonFiniteAndOversizedAnswersAreErrors) {
  Make({.max_answer_bytes = 1000, .max_values = 2});
  const auto answer = [this](Reading reading) {
    Ask(Request("a"));
    scaler_->reads.back().done(std::move(reading));
    return answers_.back();
  };
  EXPECT_THAT(answer(HeldScaler::Of("a", std::numeric_limits<double>::quiet_NaN())),
              HasSubstr("INTERNAL: metric \"a\": want a finite value, got nan"));
  EXPECT_THAT(answer(HeldScaler::Of("a", std::numeric_limits<double>::infinity())),
              HasSubstr("got inf"));
  Reading many = HeldScaler::Of("a", 1);
  many.values.resize(3);
  EXPECT_THAT(answer(many), HasSubstr("want at most 2 values, got 3"));
  Reading large = HeldScaler::Of("a", 1);
  (*large.values[0].mutable_labels())["x"] = std::string(2000, 'x');
  EXPECT_THAT(answer(large), HasSubstr("want at most 1000 bytes, got 20"));
  EXPECT_EQ(answer(HeldScaler::Of("a", -1)), "-1 idle")
      << "what a negative value means is not ours";
}

TEST_F(DispatcherTest, UncheckedAnswersGoOutAsTheyAre) {
  Make({.check_answers = false});
  Ask(Request("a"));
  scaler_->reads[0].done(HeldScaler::Of("a", std::numeric_limits<double>::quiet_NaN()));
  EXPECT_THAT(answers_, ElementsAre("nan idle"));
}

TEST_F(DispatcherTest, TheSelectorPicksValuesByLabel) {
  GetMetricsRequest request = Request("a");
  request.set_selector("zone=b");
  Ask(request);
  Reading reading = HeldScaler::Of("a", 1);
  reading.values.push_back(reading.values[0]);
  reading.values[1].set_value(2);
  (*reading.values[1].mutable_labels())["zone"] = "b";
  scaler_->reads[0].done(reading);
  EXPECT_THAT(answers_, ElementsAre("2 active"));
  request.set_selector("zone>");
  Ask(request);
  EXPECT_THAT(answers_.back(), HasSubstr("INVALID_ARGUMENT: selector"));
}

TEST_F(DispatcherTest, CallsAboveTheLimitAreRefusedAndAnEndedOneMakesRoom) {
  Make({.max_concurrent_calls = 2});
  Ask(Request("a"));
  Ask(Request("b"));
  Ask(Request("c"));
  EXPECT_THAT(answers_, ElementsAre("RESOURCE_EXHAUSTED: calls at once: want at most 2"));
  clock_.Advance(absl::Seconds(3));  // both end, though the scaler still sits on them
  Ask(Request("d"));
  scaler_->reads[2].done(HeldScaler::Of("d", 1));
  EXPECT_EQ(answers_.back(), "1 active");
}

TEST_F(DispatcherTest, WhileDrainingNothingNewIsTaken) {
  Ask(Request("a"));
  dispatcher_->StopAccepting();
  EXPECT_FALSE(dispatcher_->WaitUntilIdle(Deadline::After(clock_, absl::ZeroDuration())));
  Ask(Request("b"));
  EXPECT_THAT(answers_, ElementsAre("UNAVAILABLE: draining"));
  scaler_->reads[0].done(HeldScaler::Of("a", 1));
  EXPECT_TRUE(dispatcher_->WaitUntilIdle(Deadline::After(clock_, absl::Seconds(5))));
}

// ---- batches -------------------------------------------------------------------------------

TEST_F(DispatcherTest, ABatchReachesTheScalerAtOnceAndEachAnswerGoesOutWhenItIsThere) {
  BatchGetMetricsRequest request;
  for (const char* name : {"a", "b", "c"}) {
    *request.add_entries()->mutable_request() = Request(name, name);
  }
  ASSERT_TRUE(AskBatch(request).ok());
  EXPECT_EQ(scaler_->rounds, 1);
  scaler_->reads[2].done(HeldScaler::Of("c", 3));
  scaler_->reads[0].done(absl::UnavailableError("down"));
  EXPECT_THAT(answers_, ElementsAre("2: 3 active", "0: UNAVAILABLE: down"));
  clock_.Advance(absl::Seconds(3));
  EXPECT_EQ(answers_.back(), absl::StrCat("1: ", kLate));
}

TEST_F(DispatcherTest, EachEntryHasItsOwnTimeout) {
  BatchGetMetricsRequest request;
  for (const int seconds : {1, 2, 9}) {
    auto& entry = *request.add_entries();
    *entry.mutable_request() = Request("a");
    entry.mutable_timeout()->set_seconds(seconds);
  }
  ASSERT_TRUE(AskBatch(request, absl::Seconds(5)).ok());
  clock_.Advance(absl::Seconds(1));
  EXPECT_THAT(answers_, ElementsAre(absl::StrCat("0: ", kLate)));
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(answers_.size(), 2u);
  clock_.Advance(absl::Seconds(3));
  EXPECT_EQ(answers_.size(), 3u) << "none outlives the call";
}

TEST_F(DispatcherTest, EqualQuestionsOfABatchAreAskedOnce) {
  BatchGetMetricsRequest request;
  for (int i = 0; i < 3; ++i) *request.add_entries()->mutable_request() = Request("a", "f");
  *request.add_entries()->mutable_request() = Request("a", "g");
  *request.add_entries()->mutable_request() = Request("a", "f");
  request.mutable_entries(4)->mutable_request()->set_poll(true);
  request.mutable_entries(0)->mutable_timeout()->set_seconds(1);
  ASSERT_TRUE(AskBatch(request).ok());
  ASSERT_EQ(scaler_->reads.size(), 3u) << "f, g, and f as a poll";
  clock_.Advance(absl::Seconds(1));
  EXPECT_THAT(answers_, ElementsAre(absl::StrCat("0: ", kLate))) << "the others wait on";
  scaler_->reads[0].done(HeldScaler::Of("a", 7));
  EXPECT_THAT(answers_, ElementsAre(absl::StrCat("0: ", kLate), "1: 7 active", "2: 7 active"));
}

TEST_F(DispatcherTest, SharedCredentialsAreTakenByIndex) {
  BatchGetMetricsRequest request;
  for (const char* password : {"one", "two"}) {
    (*request.add_credentials()->mutable_authentication())["password"] = password;
  }
  for (const uint32_t index : {1u, 0u}) {
    auto& entry = *request.add_entries()->mutable_request();
    entry = Request("a");
    entry.mutable_trigger()->set_credentials_index(index);
  }
  ASSERT_TRUE(AskBatch(request).ok());
  EXPECT_THAT(scaler_->passwords, ElementsAre("two", "one"));
}

TEST_F(DispatcherTest, ABadEntryCostsItselfOnly) {
  BatchGetMetricsRequest request;
  request.add_entries()->mutable_request()->mutable_trigger()->set_type("held");
  *request.add_entries()->mutable_request() = Request("a");
  ASSERT_TRUE(AskBatch(request).ok());
  scaler_->reads[0].done(HeldScaler::Of("a", 1));
  ASSERT_EQ(answers_.size(), 2u);
  EXPECT_THAT(answers_[0], HasSubstr("0: INVALID_ARGUMENT"));
  EXPECT_EQ(answers_[1], "1: 1 active");
}

TEST_F(DispatcherTest, ABatchThatIsTooLongOrPointsNowhereIsRefusedWhole) {
  BatchGetMetricsRequest request;
  for (int i = 0; i < 201; ++i) *request.add_entries()->mutable_request() = Request("a");
  EXPECT_EQ(AskBatch(request), absl::InvalidArgumentError("entries: want at most 200, got 201"));
  request.clear_entries();
  *request.add_entries()->mutable_request() = Request("a");
  request.mutable_entries(0)->mutable_request()->mutable_trigger()->set_credentials_index(0);
  EXPECT_EQ(AskBatch(request),
            absl::InvalidArgumentError("entries[0].credentials_index: want below 0, got 0"));
  EXPECT_TRUE(answers_.empty());
}

}  // namespace
}  // namespace outrigger::host::kit
